package statemachine

import "time"

// left: the StatefulSet is being deleted or its label is gone.
func left(v *view) bool {
	if !v.o.Deleting && v.o.Mode != ModeOff {
		return false
	}
	if v.s.Name != New && v.o.UID == v.s.UID && v.s.Mode != ModeOff {
		v.leave()
	}
	handedBack := v.s.Mode == ModeOff && v.s.Reason == ReasonUnmanaged && v.o.UID == v.s.UID && v.s.Partition == 0
	if handedBack && v.o.Strategy == rollingUpdate && v.unwritten() && v.releasesNone() {
		v.intent = Intent{Kind: SetPartition, Partition: 0}
	}
	return true
}

// leave hands the StatefulSet back: finished, it gets partition 0, as it would have without Pawl; in the middle of a
// rollout it is left as it is, because partition 0 would release every pod at once.
func (v *view) leave() {
	if v.o.Deleting {
		v.emit(Event{Type: Abandoned, Reason: ReasonDeleted})
		return
	}
	e := Event{Type: Abandoned, Reason: ReasonUnmanaged}
	switch {
	case v.s.Mode == ModeEnforce && v.o.Strategy == rollingUpdate && v.s.Name == Done && v.o.Partition > 0 && v.releasesNone():
		e = v.leaving(0, e)
	case v.unwritten():
		e = v.leaving(v.o.Partition, e) // what was recorded is not written any more
	}
	v.emit(e)
}

// releasesNone reports whether partition 0 would release no pod: with a new template, seen or not yet in the status, it
// would release every one.
func (v *view) releasesNone() bool {
	return !v.due() && v.o.TemplateDigest == v.s.TemplateDigest && v.o.TemplateRevision == v.o.UpdateRevision
}

// adopted: first sight, another StatefulSet of this name, or another mode.
func adopted(v *view) bool {
	var e Event
	switch {
	case v.s.Name == New && v.s.UID == v.o.UID:
		e.Origin, e.Reason = OriginFirstSeen, ReasonLogRestarted // the log was lost, its records are there
	case v.s.Name == New && v.s.UID == "":
		e.Origin = v.origin()
		e.Reason = ReasonFirstSeen
		if e.Origin != OriginFirstSeen {
			e.Reason = ReasonCreated
		}
	case v.o.UID != v.s.UID:
		e.Origin, e.Reason = OriginRecreated, ReasonRecreated
	case v.o.Mode != v.s.Mode:
		e.Origin, e.Reason = v.s.Origin, ReasonModeChanged
	default:
		return false
	}
	e.Type, e.StatefulSetUID, e.Mode = Adopted, v.o.UID, v.o.Mode
	e.TemplateDigest, e.Replicas, e.Start = v.o.TemplateDigest, &v.o.Replicas, &v.o.Start
	e.StableRevision, e.Number = v.s.StableRevision, v.s.Rollout.Number
	e.Ordinals = v.finishedNow()
	if v.settled() {
		e.Revision = v.o.UpdateRevision
		if len(v.o.Pods) > 0 && v.allFinished() {
			e.StableRevision = e.Revision
		}
	}
	v.emit(v.leaving(max(v.adoptedAt(e.Reason), v.o.Partition), e))
	return false
}

// adoptedAt is the partition that Pawl begins with.
func (v *view) adoptedAt(why Reason) int32 {
	if !v.enforce() {
		return v.o.Partition
	}
	// What is absent is not being replaced: it is still to come, or to be adopted from the earlier one. That is sure only
	// while it comes at the same revision below the partition and above; else it may come back at one that nobody ran.
	current := v.o.CurrentRevision == v.o.TemplateRevision && v.o.UpdateRevision == v.o.TemplateRevision
	comesUp := why == ReasonCreated || why == ReasonRecreated && v.nonePresent()
	if comesUp && (current || v.o.UpdateRevision == "") {
		return Parked
	}
	return v.parkAt()
}

// origin tells a StatefulSet that was just created, so that nothing it ever had can be lost, from one that was there
// before Pawl. In doubt it was there before.
func (v *view) origin() Origin {
	if v.o.ObservedGeneration == 0 || v.o.CurrentRevision == "" {
		return OriginCreated
	}
	if v.o.Now.Sub(v.o.Created) > time.Minute {
		return OriginFirstSeen
	}
	seen := OriginCreated
	for i := range v.o.Pods {
		switch p := &v.o.Pods[i]; {
		case !p.Present:
		case p.Created.Before(v.o.Created):
			return OriginFirstSeen // orphans of an earlier one
		case !neverReady(p):
			seen = OriginCameUp
		}
	}
	return seen
}

func (v *view) nonePresent() bool {
	return !v.anyPod(func(i int) bool { return v.o.Pods[i].Present })
}

// settled: the status is current and nothing of an update can be seen.
func (v *view) settled() bool {
	if v.o.Generation != v.o.ObservedGeneration || v.o.UpdateRevision == "" || v.o.CurrentRevision != v.o.UpdateRevision {
		return false
	}
	return !v.anyPod(v.off)
}
