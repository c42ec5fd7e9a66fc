package statemachine

// 5: a person has taken over, for this revision and down to one partition, and there is a pod left to release.
func forced(v *view) bool {
	f := v.o.Force
	if !v.enforce() || f.Revision == "" || f.Revision != v.o.UpdateRevision {
		return false
	}
	for i := int(f.Partition); i <= v.nextPod(); i++ {
		if v.off(i) || !v.o.Pods[i].Present && v.o.CurrentRevision != v.o.UpdateRevision {
			return true
		}
	}
	return false
}

// stepForced releases all of them in one write. Dead ones that the StatefulSet controller leaves alone are repaired then.
func stepForced(v *view) {
	floor := int(v.o.Force.Partition)
	var released []int32
	for i := floor; i <= v.nextPod(); i++ {
		if !v.finished(i) {
			released = append(released, v.ordinal(i))
		}
	}
	v.releaseTo(floor, Event{
		Reason: ReasonForced, Ordinals: OrdinalsOf(released...), Actor: v.o.Force.By, Cause: v.o.Force.Reason,
		Gates: v.bypassed(),
	})
}
