package statemachine

// 7: a recorded PodReplaced whose pod is still there was not carried out: no second event, whatever the clocks say.
func repairUnfinished(v *view) bool {
	return v.enforce() && v.s.Replace.UID != "" && v.unfinishedRepair() >= 0 && !v.shut(true)
}

func (v *view) unfinishedRepair() int {
	if n := v.s.Replace.Ordinal; v.inRange(n) {
		i := v.index(n)
		p := &v.o.Pods[i]
		there := p.UID == v.s.Replace.UID && !p.Terminating && v.off(i) && !v.healthy(i) && v.replaceable(i)
		if recovered := p.ReadySince.After(v.s.Replace.At) && !v.dead(i); there && !recovered {
			return i
		}
	}
	return -1
}

func repairAgain(v *view) {
	v.intent = Intent{Kind: ReplacePod, Pod: v.o.Pods[v.unfinishedRepair()]}
}

// 7: a dead pod that would come back at the target is replaced where it stands, one at a time, once per target.
func repairable(v *view) bool {
	return v.enforce() && (!v.o.Paused || v.s.Step.Open()) && v.repairTarget() >= 0 && !v.shut(true)
}

// repairTarget is the pod to repair, or -1. The StatefulSet controller stops at the first unready pod under
// OrderedReady: a higher one replaced first would never be created again, so the lowest comes first.
func (v *view) repairTarget() int {
	for i := range v.o.Pods {
		if !v.o.Parallel && i > 0 && !v.healthy(i-1) || v.o.Parallel && v.replacing() {
			return -1
		}
		if v.dead(i) && v.off(i) && v.replaceable(i) && !v.has(v.s.Replaced, i) {
			return i
		}
	}
	return -1
}

// replaceable: deleted, it would return at the target; and the StatefulSet controller does not do it by itself, as it
// does for released pods under Parallel.
func (v *view) replaceable(i int) bool {
	if v.released(i) {
		return !v.o.Parallel
	}
	return v.o.CurrentRevision == v.o.UpdateRevision && v.forgotten() < 0 // created again is no way back (I4)
}

// replacing reports whether the pod that was replaced last is still on its way out.
func (v *view) replacing() bool {
	n := v.s.Replace.Ordinal
	return v.s.Replace.UID != "" && v.inRange(n) && v.o.Pods[v.index(n)].UID == v.s.Replace.UID
}

func repair(v *view) {
	i := v.repairTarget()
	if !v.s.Step.Open() {
		v.emit(v.leaving(v.o.Partition, v.about(i, Event{Type: StepStarted, Reason: ReasonRepair, Revision: v.o.UpdateRevision, Gates: v.gates(true)})))
	}
	v.emit(v.about(i, Event{Type: PodReplaced, Revision: v.o.UpdateRevision, Gates: v.gates(true)}))
	v.intent = Intent{Kind: ReplacePod, Pod: v.o.Pods[i]}
}
