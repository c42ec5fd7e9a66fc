package statemachine

import "time"

// hold says why the next step waits. A hard reason starts its grace and is told at once, like what a person asked for;
// a soft one only when nothing has happened for a while.
func (v *view) hold(why Reason, i int, f finding) {
	if v.s.Name == Blocked {
		if !v.causeGone() {
			return
		}
		v.unblock()
	}
	if v.isHeld(why, i, shutGate(f.gates)) || !v.worthTelling(why, f.since) {
		return
	}
	e := Event{Type: Held, Reason: why, Gates: f.gates, Message: v.explainStall(why, i, f, v.waitsUntil(why, i, f))}
	if why == ReasonPaused {
		e.Actor = v.o.PausedBy
	}
	v.emit(v.about(i, e))
}

// isHeld reports whether the log says it already. The reasons of one hard class are one: they alternate.
func (v *view) isHeld(why Reason, i int, gate string) bool {
	h, class := v.s.Hold, why.class()
	if h.Reason == "" || h.Ordinal != v.ordinalOrNone(i) || h.Gate != gate {
		return false
	}
	if class.hard() {
		return h.Reason.class() == class && why.specific() <= h.Reason.specific()
	}
	return h.Reason == why || why == ReasonStarting && h.Reason.class() == classSoft // starting again after a stall is the stall
}

// worthTelling damps what flickers. What a person asked for is told at once, and so is the first hard reason.
func (v *view) worthTelling(why Reason, since time.Time) bool {
	h, class := v.s.Hold, why.class()
	if class.hard() {
		return !h.Reason.class().hard() || v.reached(h.Changed.Add(changeTime))
	}
	if !v.quiet() && !why.gate() { // a gate that stops the step is not what a crashing pod shows in between
		return false
	}
	if class == classNone {
		return true
	}
	if since.Before(v.s.LastEvent) {
		since = v.s.LastEvent
	}
	return v.reached(since.Add(settleTime)) && (h.Reason == "" || v.reached(h.Changed.Add(changeTime)))
}

// release says that what held the step is gone.
func (v *view) release() {
	if v.s.Hold.Reason == "" || v.s.Name == Blocked {
		return
	}
	h := v.s.Hold
	if h.Reason.class() != classNone {
		if v.inRange(h.Ordinal) && !v.recovered(v.index(h.Ordinal)) && !v.quietFor(v.index(h.Ordinal), h.Reason.class()) {
			return
		}
		if !v.reached(h.Changed.Add(changeTime)) {
			return
		}
	}
	v.emit(v.about(v.stepPod(), Event{Type: Released}))
}

// releaseDone: what was told of a StatefulSet that has nothing to do is over.
func (v *view) releaseDone() {
	if v.s.Hold.Reason != "" {
		v.emit(Event{Type: Released, Reason: v.restReason()})
	}
}

// block says that nothing goes on without help. As long as the same pod is to blame, the first reason stays, unless a
// harder one comes.
func (v *view) block(why Reason, i int, f finding) {
	if c := v.s.Clock; i >= 0 && v.named(i) && c.Reason.class() == why.class() && c.Reason.specific() > why.specific() {
		why = c.Reason
	}
	if v.s.Name == Blocked && !v.blameMoves(why, i, shutGate(f.gates)) {
		return
	}
	v.emit(v.about(i, Event{Type: BlockedEvent, Reason: why, Gates: f.gates, Message: v.explainStall(why, i, f, time.Time{})}))
}

// blameMoves reports whether what is told as blocking changes: to a harder reason, or when the cause before is gone. Words
// that have outlived what they speak of change at once.
func (v *view) blameMoves(why Reason, i int, gate string) bool {
	b := v.s.Block
	if b.Reason.gate() && why.gate() {
		return (b.Reason != why || b.Gate != gate) && v.reached(b.Changed.Add(changeTime))
	}
	if b.Reason != why && v.outlived() {
		return true
	}
	harder := why.class().hard() && !b.Reason.class().hard() && b.Reason != ReasonTotalOutage
	if b.Ordinal == v.ordinalOrNone(i) {
		if b.Reason == why || !why.class().hard() || b.Reason.class() == why.class() {
			return false
		}
	} else if !harder && why != ReasonTotalOutage && !v.causeGone() && !v.standsAside(b.Ordinal, i) {
		return false
	}
	return v.reached(b.Changed.Add(changeTime))
}

// outlived reports whether the words of the block speak of something that is over, while the pod has another trouble. One that
// is healthy may be so for a moment only: causeGone waits for that.
func (v *view) outlived() bool {
	i, p := v.blocking()
	if p == nil || v.removed() {
		return p != nil
	}
	switch v.s.Block.Reason {
	case ReasonStuckTerminating:
		return !p.Terminating && !v.healthy(i)
	case ReasonNodeNotReady:
		return !p.NodeNotReady && !v.healthy(i)
	case ReasonPodMissing:
		return p.Present && !v.healthy(i) || v.stopsBelow(i)
	default:
		return false
	}
}

// removed reports whether what the words of the block ask to delete is there no more: who still reads them deletes what has
// come in its place.
func (v *view) removed() bool {
	i, p := v.blocking()
	if p == nil {
		return false
	}
	switch v.s.Block.Reason {
	case ReasonSupersededPodStuck: // absent; at another revision, or its own is the current one again; or held by something else
		return !v.superseded(i) || p.Terminating && v.reached(p.DeletionTime.Add(time.Second))
	case ReasonNameTaken:
		return p.TakenBy == ""
	case ReasonPVCLost:
		return claimIn(p, claimLost) == ""
	default:
		return false
	}
}

// blocking is the pod that is to blame, with its index; nil if it is none of those that are wanted.
func (v *view) blocking() (int, *Pod) {
	n := v.s.Block.Ordinal
	if n == noOrdinal || !v.inRange(n) {
		return -1, nil
	}
	i := v.index(n)
	return i, &v.o.Pods[i]
}

// standsAside: what a pod of the step was blamed for is over, and it waits for another one now, which has been in trouble
// for flapWindow. One that flaps does not take the blame with each of its falls.
func (v *view) standsAside(ordinal int32, other int) bool {
	if !v.inRange(ordinal) || other < 0 || !v.hardStalled(other) && !v.overdue(other) && !v.downFor(other) {
		return false
	}
	i := v.index(ordinal)
	return v.has(v.s.Step.Ordinals, i) && v.onlyWaits(i)
}

// downFor reports whether the pod has been unready or terminating for flapWindow, whatever was completed meanwhile.
func (v *view) downFor(i int) bool {
	t := v.factTime(i)
	return !t.IsZero() && v.reached(t.Add(flapWindow))
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
		v.block(why, -1, finding{detail: refusedFor(v.o.Told.Message)})
		return
	}
	v.hold(why, -1, finding{since: v.o.BehindSince, detail: refusedFor(v.o.Told.Message)})
}

// causeGone reports whether what blocks has been absent for flapWindow. Past the deadline only the end of the pod's
// update counts.
func (v *view) causeGone() bool {
	b := v.s.Block
	if b.Reason == ReasonTotalOutage {
		return v.anyHealthy()
	}
	i, p := v.blocking()
	if p == nil || v.removed() {
		return true
	}
	c := b.Reason.class()
	if b.Reason == ReasonSupersededPodStuck {
		c = v.s.Clock.Reason.class()
	}
	if v.has(v.s.Step.Ordinals, i) && v.late(i) {
		return v.finished(i) // that it is as it was before the step is what blocks
	}
	return v.recovered(i) || !v.late(i) && v.quietFor(i, c)
}

// recovered: healthy, and for long enough that it does not only flicker. A pod that is Ready every other moment would
// fill the log with its ups and downs.
func (v *view) recovered(i int) bool {
	return v.healthy(i) && v.reached(v.o.Pods[i].ReadySince.Add(flapWindow))
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
	for k := range p.Containers {
		if c := &p.Containers[k]; c.RunningSince.IsZero() && c.Terminated == nil {
			return false
		}
	}
	return v.reached(quietSince(p).Add(flapWindow))
}

func (v *view) ordinalOrNone(i int) int32 {
	if i < 0 {
		return noOrdinal
	}
	return v.ordinal(i)
}
