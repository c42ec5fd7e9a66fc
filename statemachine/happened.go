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

// finishedNow is the ordinals of the pods that are at the update revision and healthy.
func (v *view) finishedNow() Ordinals {
	var at []int32
	for i := range v.o.Pods {
		if v.finished(i) {
			at = append(at, v.ordinal(i))
		}
	}
	return OrdinalsOf(at...)
}

func (v *view) allFinished() bool { return v.everyPod(v.finished) }

// firstReady: from now on there is something to protect, and present pods cannot tell that later.
func firstReady(v *view) bool {
	if v.s.Origin != OriginCreated {
		return false
	}
	for i := range v.o.Pods {
		if p := &v.o.Pods[i]; p.Present && (!neverReady(p) || p.Created.Before(v.o.Created)) {
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
	if v.s.Name != Blocked || v.s.Block.Reason == ReasonStatusStale {
		v.stalledWithout(ReasonStatusStale)
	}
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

const (
	rollingUpdate   = "RollingUpdate"
	unstableWindow  = 10 * time.Minute
	contestedWindow = 10 * time.Minute
)

// regressed: a pod that was finished, in this rollout or in one that it superseded, came back older.
func regressed(v *view) bool {
	if !v.s.Rollout.Open() {
		return false
	}
	for i := range v.o.Pods {
		if v.has(v.s.Finished, i) && v.off(i) || v.has(v.s.Prior, i) && v.off(i) && v.current(i) {
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
