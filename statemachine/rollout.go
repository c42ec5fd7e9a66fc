package statemachine

// due: a pod is off target, the controller has not promoted the revision, or it changed while nobody looked. Equal
// revisions alone prove nothing: they are equal at once after a re-creation, and after a revert.
func (v *view) due() bool {
	if v.o.CurrentRevision != v.o.UpdateRevision || v.s.Revision != "" && v.s.Revision != v.o.UpdateRevision {
		return true
	}
	return v.anyPod(v.off)
}

func startRollout(v *view) bool {
	if v.o.Strategy != rollingUpdate {
		return false
	}
	open, due := v.s.Rollout.Open(), v.due()
	switch {
	case open && v.s.Rollout.ToRevision != v.o.UpdateRevision, !open && due, !open && v.comingUp():
	default:
		return false
	}
	e := Event{
		Type: RolloutStarted, Reason: v.rolloutReason(due), Revision: v.o.UpdateRevision, FromRevision: v.s.Revision,
		Number: v.s.Rollout.Number + 1, Actor: v.o.ChangedBy, Cause: v.o.Cause, Starts: v.starts(),
		TemplateDigest: v.o.TemplateDigest, Replicas: &v.o.Replicas, Start: &v.o.Start,
		StatefulSetUID: v.o.UID, Mode: v.o.Mode, Origin: v.s.Origin, StableRevision: v.s.StableRevision,
	}
	if e.FromRevision == "" && v.o.CurrentRevision != v.o.UpdateRevision {
		e.FromRevision = v.o.CurrentRevision
	}
	if i := v.forgotten(); i >= 0 {
		e.FromRevision = v.o.Pods[i].Revision // the status does not know it
	}
	e.Ordinals = v.finishedNow()
	if open {
		past := func(n int32) bool { return v.inRange(n) && !v.current(v.index(n)) && !v.atTarget(v.index(n)) }
		e.Prior = v.s.Finished.Union(v.s.Prior).keep(past)
	}
	to := v.o.Partition
	if v.enforce() {
		to = max(to, v.parkAt())
	}
	if v.unwritten() {
		to = max(to, v.s.Partition) // a park that was recorded and is still to be written
	}
	v.emit(v.leaving(to, e))
	return false
}

// comingUp: its pods were never all seen available, so there is a first rollout to follow, without steps.
func (v *view) comingUp() bool {
	switch v.s.Origin {
	case OriginCreated, OriginCameUp:
		return true
	case OriginRecreated:
		return v.s.Rollout.StartedAt.IsZero() && !v.allFinished()
	case OriginFirstSeen:
		return v.s.Rollout.StartedAt.IsZero() && v.s.StableRevision == "" && !v.allFinished()
	default:
		return false
	}
}

// rolloutReason is why a rollout starts.
func (v *view) rolloutReason(due bool) Reason {
	before := v.s.Rollout
	switch {
	case !before.Open() && !due:
		return ReasonBringUp
	case v.s.StableRevision != "" && v.o.UpdateRevision == v.s.StableRevision && before.Open():
		return ReasonRollback
	case v.s.Origin == OriginRecreated && before.StartedAt.IsZero():
		return ReasonRecreated
	case before.StartedAt.IsZero() && (v.s.Revision == "" || v.s.Revision == v.o.UpdateRevision):
		return ReasonAdopted
	default:
		return ReasonNewRevision
	}
}

// starts counts rollouts that follow each other with one template: the revision changes by itself.
func (v *view) starts() int32 {
	last := v.s.Rollout
	if last.StartedAt.IsZero() || v.recorded.TemplateDigest != v.o.TemplateDigest || v.o.Now.Sub(last.StartedAt) > unstableWindow {
		return 0
	}
	return v.s.Starts + 1
}
