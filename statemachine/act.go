package statemachine

import (
	"iter"
	"time"
)

const (
	// settleTime is how long nothing may have happened before a soft reason is worth an event.
	settleTime = 5 * time.Second
	// changeTime is how long a reason stays before another soft one replaces it: what flickers is no event.
	changeTime = 30 * time.Second
)

// startStep releases the pods from index to up to the next one. One write.
func (v *view) startStep(why Reason, to int) {
	var released []int32
	for i := to; i <= v.nextPod(); i++ {
		released = append(released, v.ordinal(i))
	}
	e := v.about(v.nextPod(), Event{Type: StepStarted, Reason: why, Ordinals: OrdinalsOf(released...), Revision: v.o.UpdateRevision})
	v.emit(v.leaving(int32(to), e)) //nolint:gosec // an index of replicas
	v.setPartition()
}

// setPartition asks for the partition that the record says. A write that changes nothing is never asked for.
func (v *view) setPartition() {
	if v.enforce() && v.s.Partition != v.o.Partition {
		v.intent = Intent{Kind: SetPartition, Partition: v.s.Partition}
	}
}

// park parks a StatefulSet that has nothing to do, so that the next template moves no pod before Pawl has seen it.
func (v *view) park() {
	if !v.enforce() || v.o.Partition == Parked {
		return
	}
	if v.s.Partition != Parked {
		v.emit(v.leaving(Parked, Event{Type: PartitionParked}))
	}
	v.setPartition()
}

// blame is who stands in the way.
type blame struct {
	index   int
	finding finding
	blocked bool // past its grace or its deadline
}

func (v *view) allPods() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range v.o.Pods {
			if !v.healthy(i) && !yield(i) {
				return
			}
		}
	}
}

// blame looks for the culprit among pods that are not as they should be: hard before soft, past its time before not
// yet, the lowest first, because the StatefulSet controller stops there.
func (v *view) blame(candidates iter.Seq[int]) blame {
	best, rank := blame{index: -1}, 0
	for i := range candidates {
		f := v.finding(i)
		hard, late := v.hardStalled(i), v.late(i)
		r := 1
		switch {
		case hard:
			r = 5
		case late:
			r = 4
		case f.reason.class().hard():
			r = 3
		case f.reason != "" && !f.quiet:
			r = 2
		}
		if f.reason == "" {
			f = finding{reason: ReasonUnknown, what: "has not been replaced by the StatefulSet controller"}
		}
		if r > rank {
			best, rank = blame{index: i, finding: f, blocked: r >= 4}, r
		}
	}
	best.finding.quiet = rank == 1
	return best
}

// judge holds or blocks the next step for an unhealthy pod in the way.
func (v *view) judge(b blame) {
	if b.index < 0 {
		v.release()
		return
	}
	if b.blocked && v.superseded(b.index) && v.dead(b.index) {
		b.finding.reason = ReasonSupersededPodStuck
	}
	if b.blocked {
		v.block(b.finding.reason, b.index, b.finding)
		return
	}
	if b.finding.quiet {
		b.finding.reason = ReasonStarting
	}
	v.hold(b.finding.reason, b.index, b.finding)
}

// unfinishedOfStep yields the pods of the open step that are not at the target and healthy yet, lowest first.
func (v *view) unfinishedOfStep() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range v.s.Step.Ordinals.All() {
			if v.inRange(n) && !v.finished(v.index(n)) && !yield(v.index(n)) {
				return
			}
		}
	}
}

// stepBlame is what the open step is stuck on. The culprit is the pod at which the StatefulSet controller stops: under
// OrderedReady any unhealthy one below, and as long as the open one is Ready off target any unhealthy one at all;
// under Parallel any, while the open one is Ready off target or absent.
func (v *view) stepBlame() blame {
	top, waits := 0, false
	for i := range v.unfinishedOfStep() {
		top = max(top, i)
		if v.healthy(i) {
			top = len(v.o.Pods)
		}
		waits = waits || !v.o.Parallel || v.healthy(i) || !v.o.Pods[i].Present
	}
	b := v.blame(func(yield func(int) bool) {
		for i := range v.o.Pods {
			mine := v.has(v.s.Step.Ordinals, i) && !v.finished(i)
			others := waits && (i < top || v.o.Parallel) && !v.healthy(i)
			if (mine || others) && !yield(i) {
				return
			}
		}
	})
	if !b.blocked && b.finding.quiet {
		b.finding = finding{} // the ordinary course of a start
	}
	return b
}

// hold says why the next step waits. A hard reason starts its grace and is told at once, like what a person asked for;
// a soft one only when nothing has happened for a while.
func (v *view) hold(why Reason, i int, f finding) {
	if v.s.Name == Blocked {
		if !v.causeGone() {
			return
		}
		v.unblock()
	}
	h, n := v.s.Hold, v.ordinalOrNone(i)
	class := why.class()
	if h.Reason != "" && h.Ordinal == n && (h.Reason == why || class.hard() && h.Reason.class() == class && why.specific() <= h.Reason.specific()) {
		return
	}
	if !class.hard() && !v.quiet() {
		return
	}
	if class != classNone {
		first := class.hard() && !h.Reason.class().hard()
		if h.Reason != "" && !first && !v.reached(h.Changed.Add(changeTime)) {
			return
		}
		if !class.hard() && !v.reached(v.s.LastEvent.Add(settleTime)) {
			return
		}
	}
	v.emit(v.about(i, Event{Type: Held, Reason: why, Message: v.explainStall(why, i, f)}))
}

// release says that what held the step is gone.
func (v *view) release() {
	if v.s.Hold.Reason == "" || v.s.Name == Blocked {
		return
	}
	if v.s.Hold.Reason.class() != classNone && !v.reached(v.s.Hold.Changed.Add(changeTime)) || !v.quiet() {
		return
	}
	v.emit(v.about(v.stepPod(), Event{Type: Released}))
}

// block says that nothing goes on without help. As long as the same pod is to blame, the first reason stays, unless a
// harder one comes.
func (v *view) block(why Reason, i int, f finding) {
	if c := v.s.Clock; i >= 0 && v.named(i) && c.Reason.class() == why.class() && c.Reason.specific() > why.specific() {
		why = c.Reason
	}
	if b := v.s.Block; v.s.Name == Blocked {
		if same := b.Ordinal == v.ordinalOrNone(i); same && (b.Reason == why || !why.class().hard() || b.Reason.class() == why.class()) {
			return
		}
		if !v.reached(b.Changed.Add(changeTime)) {
			return
		}
	}
	v.emit(v.about(i, Event{Type: BlockedEvent, Reason: why, Message: v.explainStall(why, i, f)}))
}

func (v *view) unblock() {
	if v.s.Step.Open() {
		v.emit(v.about(v.stepPod(), Event{Type: StepResumed}))
		return
	}
	v.emit(Event{Type: Unblocked})
}

// stalledWithout holds for a reason that is about no pod, and blocks once it has held past the deadline.
func (v *view) stalledWithout(why Reason) {
	if b := v.s.Block; v.s.Name == Blocked && b.Reason == why && b.Ordinal == noOrdinal {
		return
	}
	if h := v.s.Hold; h.Reason == why && h.Ordinal == noOrdinal && v.reached(h.Changed.Add(v.o.ProgressDeadline)) {
		v.block(why, -1, finding{})
		return
	}
	v.hold(why, -1, finding{})
}

// causeGone reports whether what blocks has been absent for flapWindow. Past the deadline only the end of the pod's
// update counts.
func (v *view) causeGone() bool {
	b := v.s.Block
	if b.Ordinal == noOrdinal || !v.inRange(b.Ordinal) {
		return true
	}
	i := v.index(b.Ordinal)
	return v.healthy(i) || !v.late(i) && v.quietFor(i, b.Reason.class())
}

// quiet reports whether the hard reason that holds, if one does, is over. A pod that crashes shows other faces in
// between; its clock must not begin again with each of them.
func (v *view) quiet() bool {
	h := v.s.Hold
	if !h.Reason.class().hard() || !v.inRange(h.Ordinal) {
		return true
	}
	i := v.index(h.Ordinal)
	return v.healthy(i) || v.quietFor(i, h.Reason.class())
}

// quietFor reports whether the pod has not shown a reason of this class for flapWindow.
func (v *view) quietFor(i int, c class) bool {
	p := &v.o.Pods[i]
	if !p.Present || p.Terminating || v.finding(i).reason.class() == c {
		return false
	}
	return v.reached(quietSince(p).Add(flapWindow))
}

func (v *view) ordinalOrNone(i int) int32 {
	if i < 0 {
		return noOrdinal
	}
	return v.ordinal(i)
}

// restReason is why a StatefulSet with nothing to do is Done.
func (v *view) restReason() Reason {
	switch {
	case v.s.Rollout.Outcome == OutcomeCompleted:
		return ReasonCompleted
	case v.s.Origin == "":
		return ReasonCompleted
	default:
		return ReasonFirstSeen
	}
}

func (v *view) completedReason() Reason {
	switch {
	case v.s.Rollout.Reason == ReasonRollback:
		return ReasonRolledBack
	case v.o.Replicas == 0:
		return ReasonOutsideGates
	default:
		return ReasonCompleted
	}
}
