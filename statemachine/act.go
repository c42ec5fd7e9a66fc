package statemachine

import (
	"time"
)

const (
	// settleTime is how long nothing may have happened before a soft reason is worth an event.
	settleTime = 5 * time.Second
	// changeTime is how long a reason stays before another soft one replaces it: what flickers is no event.
	changeTime = 30 * time.Second
)

// startStep releases the pods from index to up to the next one. One write.
func (v *view) startStep(e Event, to int) {
	var released []int32
	for i := to; i <= v.nextPod(); i++ {
		released = append(released, v.ordinal(i))
	}
	e.Ordinals = OrdinalsOf(released...)
	v.releaseTo(to, e)
}

// releaseTo records a step that lowers the partition to index to, and asks for the write.
func (v *view) releaseTo(to int, e Event) {
	e.Type, e.Revision = StepStarted, v.o.UpdateRevision
	v.emit(v.leaving(int32(to), v.about(v.nextPod(), e))) //nolint:gosec // an index of replicas
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
