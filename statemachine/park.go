package statemachine

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
	if v.o.Strategy != rollingUpdate || !untouched || v.o.Partition == v.s.Partition || v.o.Generation <= v.s.PartitionAt || v.unwritten() {
		return false
	}
	if v.gaveWay() && !v.reached(v.s.Overrides[0].Add(changeTime)) {
		return false // one that writes all the time must not fill the log
	}
	e, was := v.leaving(v.o.Partition, Event{Type: PartitionOverridden}), v.s.Partition
	e.PreviousPartition = &was // as it was recorded: what it was in between nobody saw
	v.emit(e)
	if v.s.Step.Open() && v.o.Partition > v.s.Step.Partition {
		v.abort(ReasonNotInEffect) // it is started anew: a write to come needs its own event (I6)
	}
	return false
}

// gaveWay reports whether Pawl writes nothing because someone else keeps writing the partition.
func (v *view) gaveWay() bool {
	return v.s.Name == Blocked && v.s.Block.Reason == ReasonPartitionContested && contested(v)
}

// unwrittenPark: a park that was recorded before a crash is written before anything else is decided.
func unwrittenPark(v *view) bool {
	if !v.enforce() || v.s.Partition <= v.o.Partition || !v.unwritten() {
		return false
	}
	v.intent = Intent{Kind: SetPartition, Partition: v.s.Partition}
	return true
}
