package statemachine

import "slices"

// Unexplained are the indices of the pods of which only Kubernetes Events can tell why they are as they are, and whether
// the same is true of the StatefulSet itself: its status is behind, or it leaves alone a pod that it should replace.
func Unexplained(o Observation) (pods []int, statefulSet bool) {
	if o.Strategy != rollingUpdate {
		return nil, false // nobody replaces pods, so none is late
	}
	v := &view{o: &o, s: State{}.free()}
	statefulSet = o.Generation != o.ObservedGeneration
	for i := range o.Pods {
		p := o.Pods[i]
		p.Told = Told{} // what was told before does not make it clear by itself
		statefulSet = statefulSet || !p.Present && p.TakenBy == "" || v.released(i) && v.off(i) && !p.Terminating
		if p.TakenBy == "" && slices.Contains(toldByEvents, examine(&p, o.Now).reason) && !v.healthy(i) {
			pods = append(pods, i)
		}
	}
	return pods, statefulSet
}

// toldByEvents are the reasons that say what is missing, and not why.
var toldByEvents = []Reason{ReasonPodMissing, ReasonVolumeNotReady, ReasonNotScheduled, ReasonPVCPending}

// blindTo says what Pawl may not read that would tell more; empty if there is nothing.
func (v *view) blindTo(why Reason, i int) string {
	switch p := &v.o.Pods[i]; {
	case v.o.Blind.Events && slices.Contains(toldByEvents, why):
		return "the cause is in Events, which Pawl may not list"
	case v.o.Blind.Nodes && why == ReasonNotReady && p.ReadyReason == "" && allReady(p):
		return "its node may be silent, but Pawl may not read nodes"
	default:
		return ""
	}
}
