package statemachine

import (
	"iter"
	"time"
)

// blame is who stands in the way.
type blame struct {
	index   int
	finding finding
	blocked bool // past its grace or its deadline
}

// allPods yields the pods that may be to blame, lowest first. One that does not exist because the StatefulSet controller
// stops at a lower one is not.
func (v *view) allPods() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range v.o.Pods {
			effect := v.finding(i).reason == ReasonPodMissing && v.stopsBelow(i)
			if !v.healthy(i) && !effect && !yield(i) {
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
		if f.quiet && f.since.After(v.o.Now) {
			v.reached(f.since.Add(time.Second)) // it is not the ordinary course any more then; deletionTimestamp has whole seconds
		}
		hard, late := v.hardStalled(i), v.overdue(i)
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
			f = finding{reason: ReasonUnknown, what: "has not been replaced by the StatefulSet controller", detail: refusedFor(v.o.Told.Message)}
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
	if hard := b.finding.reason.class().hard(); (b.blocked || hard) && v.stuck(b.index) {
		b.finding.reason, b.blocked = ReasonSupersededPodStuck, true // it will not heal by waiting
	}
	if b.blocked {
		v.block(b.finding.reason, b.index, b.finding)
		return
	}
	why := b.finding.reason
	if b.finding.quiet {
		why = ReasonStarting
	}
	v.holdFor(why, b)
}

// holdFor holds for a pod. If nothing has been finished for the progress deadline because of others, and this is the one
// in the way now, that it is named is the end of waiting (I7: not only on a second look).
func (v *view) holdFor(why Reason, b blame) {
	v.hold(why, b.index, b.finding)
	if v.s.Name != Blocked && v.s.Clock.Any.Before(v.o.Now) && v.overdue(b.index) {
		v.block(b.finding.reason, b.index, b.finding)
	}
}

// stuck: dead at a revision that nobody goes to, and neither the next step nor a repair will reach it.
func (v *view) stuck(i int) bool {
	repaired := v.replaceable(i) && !v.has(v.s.Replaced, i)
	return v.enforce() && !v.o.Paused && v.superseded(i) && v.dead(i) && i != v.nextPod() && !repaired
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
// OrderedReady the lowest unhealthy one below, and as long as the open one is Ready off target any unhealthy one at
// all; under Parallel any, while the open one is Ready off target or absent.
func (v *view) stepBlame() blame {
	b := v.blame(v.inTheWayOfStep())
	// A pod that is as it was before the step only waits for the others; it is blamed if nobody else can be.
	if waits := v.blame(v.waitingOfStep()); waits.blocked && !b.blocked {
		if b.index < 0 || b.finding.quiet {
			b = waits
		}
		b.blocked = true
	}
	if !b.blocked && b.finding.quiet {
		b.finding = finding{} // the ordinary course of a start
	}
	return b
}

// inTheWayOfStep yields the pods that the open step may be stuck on, lowest first.
func (v *view) inTheWayOfStep() iter.Seq[int] {
	top, waits := v.waitsBelow()
	return func(yield func(int) bool) {
		for i := range v.o.Pods {
			mine := v.has(v.s.Step.Ordinals, i) && !v.finished(i)
			below := waits && (i < top || v.o.Parallel)
			if (mine || below) && !v.onlyWaits(i) && !yield(i) {
				return
			}
		}
	}
}

// waitingOfStep yields the pods of the open step that are healthy, or kept waiting by a lower one, and not replaced yet.
func (v *view) waitingOfStep() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range v.unfinishedOfStep() {
			if v.onlyWaits(i) && !yield(i) {
				return
			}
		}
	}
}

// onlyWaits reports whether nothing is wrong with the pod itself: it is healthy, or kept waiting by a lower one.
func (v *view) onlyWaits(i int) bool { return v.healthy(i) || v.stopsBelow(i) }

// stopsBelow reports whether nobody comes to this pod, which the StatefulSet controller would have to create or to replace
// or Pawl to repair, because the controller stops at a lower one.
func (v *view) stopsBelow(i int) bool {
	p := &v.o.Pods[i]
	if v.o.Parallel || p.Terminating || v.atTarget(i) && !hasEnded(p) {
		return false
	}
	for k := range i {
		if !v.healthy(k) {
			return true
		}
	}
	return false
}

// waitsBelow reports whether the open step may be waiting for pods that are not in it, and below which index.
func (v *view) waitsBelow() (top int, waits bool) {
	for i := range v.unfinishedOfStep() {
		top = max(top, i)
		if v.healthy(i) {
			top = len(v.o.Pods)
		}
		waits = waits || !v.o.Parallel || v.healthy(i) || !v.o.Pods[i].Present
	}
	return top, waits
}
