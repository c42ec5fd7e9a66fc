package statemachine

import "time"

// fact is one thing that may have happened since the log was written.
type fact struct {
	name  string
	stops func(*view) bool // records it; true: nothing else may be recorded or done now
}

// whatHappened is part (a) of the decision: all that apply, in this order, each seen by the next.
var whatHappened = []fact{
	{"a0 stale read", staleRead},
	{"a1 left", left},
	{"a1 adopted", adopted},
	{"a2 template changed", templateChanged},
	{"a3 first ready", firstReady},
	{"a3 status is behind", statusBehind},
	{"a4 scaled", scaled},
	{"a5 due", startRollout},
	{"a6 partition overridden", overridden},
	{"a6 pod regressed", regressed},
	{"a6 step ended", stepEnded},
	{"a6 park not written", unwrittenPark},
}

// staleRead: an older generation than recorded is a cache that lags, nobody's edit (I8).
func staleRead(v *view) bool {
	return v.s.Name != New && v.o.UID == v.s.UID && v.o.Generation < v.s.Generation
}

// left: the StatefulSet is being deleted or its label is gone.
func left(v *view) bool {
	if !v.o.Deleting && v.o.Mode != ModeOff {
		return false
	}
	if v.s.Name != New && v.o.UID == v.s.UID && v.s.Mode != ModeOff {
		v.leave()
	}
	if v.s.Mode == ModeOff && v.s.Reason == ReasonUnmanaged && v.unwritten() {
		v.intent = Intent{Kind: SetPartition, Partition: v.s.Partition}
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
	if v.s.Mode == ModeEnforce && v.s.Name == Done && !v.due() && v.o.Partition > 0 {
		e = v.leaving(0, e)
	}
	v.emit(e)
}

// adopted: first sight, another StatefulSet of this name, or another mode.
func adopted(v *view) bool {
	var e Event
	switch {
	case v.s.Name == New:
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
	e.Ordinals = v.atTargetNow()
	if v.settled() {
		e.Revision = v.o.UpdateRevision
		if e.Origin == OriginFirstSeen && v.allFinished() {
			e.StableRevision = e.Revision
		}
	}
	to := v.o.Partition
	if v.enforce() {
		to = v.parkAt()
		if e.Reason == ReasonCreated {
			to = Parked // there is no pod yet that could lose anything
		}
	}
	v.emit(v.leaving(max(to, v.o.Partition), e))
	return false
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

// settled: the status is current and nothing of an update can be seen.
func (v *view) settled() bool {
	if v.o.Generation != v.o.ObservedGeneration || v.o.UpdateRevision == "" || v.o.CurrentRevision != v.o.UpdateRevision {
		return false
	}
	for i := range v.o.Pods {
		if v.off(i) {
			return false
		}
	}
	return true
}

// atTargetNow is the ordinals of the pods that have the update revision.
func (v *view) atTargetNow() Ordinals {
	var at []int32
	for i := range v.o.Pods {
		if v.atTarget(i) {
			at = append(at, v.ordinal(i))
		}
	}
	return OrdinalsOf(at...)
}

func (v *view) allFinished() bool {
	for i := range v.o.Pods {
		if !v.finished(i) {
			return false
		}
	}
	return true
}

// templateChanged: park at once, before the StatefulSet controller's status catches up; it may be moving already (I5).
func templateChanged(v *view) bool {
	if !v.enforce() || v.o.TemplateDigest == v.s.TemplateDigest {
		return false
	}
	if to := v.parkAt(); to > v.o.Partition {
		v.emit(v.leaving(to, Event{Type: PartitionParked, TemplateDigest: v.o.TemplateDigest}))
	}
	return false
}

// parkAt is where to park: past every pod, but not past one that the StatefulSet controller is already replacing,
// which would come back at the old revision. Never lower than the partition is (I11).
func (v *view) parkAt() int32 {
	template := v.o.TemplateRevision
	replacing := false
	for i := len(v.o.Pods) - 1; i >= 0; i-- {
		p := &v.o.Pods[i]
		switch {
		case !p.Present || p.Terminating:
			replacing = true
		case template == "" || p.Revision != template:
			if i == len(v.o.Pods)-1 {
				return Parked
			}
			return max(v.o.Partition, int32(i)+1) //nolint:gosec // an index of replicas
		}
	}
	if replacing {
		return v.o.Partition
	}
	return Parked
}

// firstReady: from now on there is something to protect, and present pods cannot tell that later.
func firstReady(v *view) bool {
	if v.s.Origin != OriginCreated {
		return false
	}
	for i := range v.o.Pods {
		if p := &v.o.Pods[i]; p.Present && !neverReady(p) {
			v.emit(v.about(i, Event{Type: Released, Reason: ReasonFirstReady}))
			return false
		}
	}
	return false
}

// statusBehind: the status speaks of an older template, so nothing can be judged by it. Only a park may be written.
func statusBehind(v *view) bool {
	if v.o.Generation == v.o.ObservedGeneration && v.o.UpdateRevision != "" {
		return false
	}
	if v.unwritten() && v.s.Partition > v.o.Partition && v.enforce() {
		v.intent = Intent{Kind: SetPartition, Partition: v.s.Partition}
		return true
	}
	v.stalledWithout(ReasonStatusStale)
	return true
}

func scaled(v *view) bool {
	if v.o.Replicas == v.s.Replicas && v.o.Start == v.s.Start {
		return false
	}
	v.emit(Event{Type: Scaled, Replicas: &v.o.Replicas, Start: &v.o.Start})
	if v.s.Step.Open() && v.s.Step.Ordinals.keep(v.inRange) == "" {
		v.abort(ReasonScaled)
	}
	return false
}

// due: a pod is off target, the controller has not promoted the revision, or it changed while nobody looked. Equal
// revisions alone prove nothing: they are equal at once after a re-creation, and after a revert.
func (v *view) due() bool {
	if v.o.CurrentRevision != v.o.UpdateRevision || v.s.Revision != "" && v.s.Revision != v.o.UpdateRevision {
		return true
	}
	for i := range v.o.Pods {
		if v.off(i) {
			return true
		}
	}
	return false
}

func startRollout(v *view) bool {
	if v.o.Strategy != rollingUpdate {
		return false
	}
	open, due := v.s.Rollout.Open(), v.due()
	created := (v.s.Origin == OriginCreated || v.s.Origin == OriginCameUp) && !open
	switch {
	case open && v.s.Rollout.ToRevision != v.o.UpdateRevision, !open && due, created:
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
	e.Ordinals = v.atTargetNow()
	to := v.o.Partition
	if v.enforce() {
		to = max(to, v.parkAt())
	}
	v.emit(v.leaving(to, e))
	return false
}

// rolloutReason is why a rollout starts.
func (v *view) rolloutReason(due bool) Reason {
	before := v.s.Rollout
	switch {
	case (v.s.Origin == OriginCreated || v.s.Origin == OriginCameUp) && !before.Open() && !due:
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

const (
	rollingUpdate   = "RollingUpdate"
	unstableWindow  = 10 * time.Minute
	contestedWindow = 10 * time.Minute
)

// unwritten reports whether the recorded partition was never written: the partition is still what it was then, and
// there was at most one edit since.
func (v *view) unwritten() bool {
	if v.o.Partition == v.s.Partition || v.o.Partition != v.s.PreviousPartition {
		return false
	}
	return v.o.Generation <= v.s.PartitionAt+1
}

// overridden: someone else wrote the partition.
func overridden(v *view) bool {
	untouched := v.s.Partition == v.recorded.Partition && v.s.PartitionAt == v.recorded.PartitionAt
	if !untouched || v.o.Partition == v.s.Partition || v.o.Generation <= v.s.PartitionAt || v.unwritten() {
		return false
	}
	v.emit(v.leaving(v.o.Partition, Event{Type: PartitionOverridden}))
	if v.s.Step.Open() && v.o.Partition > v.s.Step.Partition {
		v.abort(ReasonNotInEffect) // it is started anew: a write to come needs its own event (I6)
	}
	return false
}

// regressed: a pod that was finished came back older.
func regressed(v *view) bool {
	for i := range v.o.Pods {
		if v.has(v.s.Finished, i) && v.off(i) {
			v.emit(v.about(i, Event{Type: PodRegressed, Revision: v.o.Pods[i].Revision}))
		}
	}
	return false
}

func stepEnded(v *view) bool {
	if !v.s.Step.Open() {
		return false
	}
	complete, idle := true, false
	for n := range v.s.Step.Ordinals.All() {
		if !v.inRange(n) {
			continue
		}
		i := v.index(n)
		if v.finished(i) {
			continue
		}
		complete = false
		// A repair whose pod recovered where it stands: nobody will replace it, its turn comes later.
		idle = idle || !v.released(i) && v.o.Partition <= v.s.Step.Partition && v.healthy(i)
	}
	switch {
	case complete:
		v.emit(v.about(v.stepPod(), Event{Type: StepCompleted, Ordinals: v.s.Step.Ordinals}))
	case idle:
		v.abort(ReasonRecovered)
	}
	return false
}

// stepPod is the index of the highest pod of the open step that is in range, or -1.
func (v *view) stepPod() int {
	highest := -1
	for n := range v.s.Step.Ordinals.All() {
		if v.inRange(n) {
			highest = v.index(n)
		}
	}
	return highest
}

// unwrittenPark: a park that was recorded before a crash is written before anything else is decided.
func unwrittenPark(v *view) bool {
	if !v.enforce() || v.s.Partition <= v.o.Partition || !v.unwritten() {
		return false
	}
	v.intent = Intent{Kind: SetPartition, Partition: v.s.Partition}
	return true
}
