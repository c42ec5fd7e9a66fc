package statemachine

// rule is one line of part (b): when it matches, it decides, and no later rule is asked; unless it goesOn.
type rule struct {
	name   string
	when   func(*view) bool
	then   func(*view)
	goesOn bool
}

// rules is part (b) of the decision: what to do next. The first that matches decides. Numbers are those of the design;
// 13 stands before 12, because nothing of 12 is done while a gate that is always asked is shut.
var rules = []rule{
	{name: "1 unsupported strategy", when: unsupportedStrategy, then: blockStrategy},
	{name: "1 policy not found", when: policyMissing, then: blockPolicy},
	{name: "1 partition contested", when: contested, then: blockContested},
	{name: "1 revision unstable", when: unstable, then: blockUnstable},
	{name: "2 nothing to do", when: nothingToDo, then: rest},
	{name: "3 restore the revision", when: restorable, then: restore},
	{name: "3 let it hold", when: restoredJustNow, then: wait},
	{name: "4 all finished", when: (*view).allFinished, then: complete},
	{name: "5 force", when: forced, then: stepForced},
	{name: "6 released by others", when: releasedByOthers, then: startExternalStep, goesOn: true},
	{name: "7 repair again", when: repairUnfinished, then: repairAgain},
	{name: "7 repair", when: repairable, then: repair},
	{name: "8 step in flight", when: stepInFlight, then: watchStep},
	{name: "9 paused", when: paused, then: holdPaused},
	{name: "10 bring-up", when: bringUp, then: watchBringUp},
	{name: "11 already updated", when: alreadyUpdated, then: skip},
	{name: "13 gate always asked", when: alwaysShut, then: holdAlwaysShut},
	{name: "12 nothing to protect", when: nothingToProtect, then: releaseAll},
	{name: "12 next pods dead", when: nextPodsDead, then: stepDead},
	{name: "12 total outage", when: totalOutage, then: blockOutage},
	{name: "14 only unhealthy pod", when: onlyUnhealthyPod, then: stepUnhealthy},
	{name: "14 pod unhealthy", when: anyUnhealthy, then: holdUnhealthy},
	{name: "15 claim lost", when: claimOfNextLost, then: blockClaim},
	{name: "15 disruption budget", when: budgetSpent, then: holdBudget},
	{name: "15 gate", when: gateShut, then: holdGate},
	{name: "15 approval", when: unapproved, then: holdUnapproved},
	{name: "15 bake time", when: baking, then: holdBaking},
	{name: "15 no slot", when: noSlot, then: holdSlot},
	{name: "16 next step", when: otherwise, then: step},
}

// 1: with OnDelete and Recreate the partition means nothing.
func unsupportedStrategy(v *view) bool { return v.o.Strategy != rollingUpdate }

func blockStrategy(v *view) { v.block(ReasonUnsupportedStrategy, -1, finding{}) }

// 1: three foreign writes of the partition within ten minutes: no write war.
func contested(v *view) bool {
	third := v.s.Overrides[2]
	return v.enforce() && !third.IsZero() && !v.reached(third.Add(contestedWindow))
}

func blockContested(v *view) {
	f := finding{}
	if m := v.o.PartitionManager; m != "" {
		f.detail = "field manager " + cut(m, 64)
	}
	v.block(ReasonPartitionContested, -1, f)
}

// 1: the revision changes by itself: wait until it has held for a while.
func unstable(v *view) bool {
	return v.s.Rollout.Open() && v.s.Starts > 2 && !v.reached(v.s.Rollout.StartedAt.Add(flapWindow))
}

func blockUnstable(v *view) { v.block(ReasonRevisionUnstable, -1, finding{}) }

// 2: Done is sticky: a pod that falls over later is nobody's rollout.
func nothingToDo(v *view) bool { return !v.s.Rollout.Open() && !v.due() }

func rest(v *view) {
	switch v.s.Name {
	case Waiting, Blocked:
		v.emit(Event{Type: Settled, Reason: v.restReason()})
	case Done:
		v.releaseDone()
	default:
	}
	v.park()
}

// 4: updatedReplicas == replicas alone is too early: until the revision is promoted a lost pod returns old.
func complete(v *view) {
	promoted := v.o.CurrentRevision == v.o.UpdateRevision && v.o.UpdatedReplicas == v.o.Replicas
	if !promoted || len(v.o.Condemned) > 0 {
		v.stalledWithout(ReasonNotPromoted)
		return
	}
	e := Event{Type: RolloutCompleted, Reason: v.completedReason(), Revision: v.o.UpdateRevision}
	if v.enforce() {
		e = v.leaving(Parked, e)
	}
	v.emit(e)
	v.setPartition()
}

// 6: what others released is a step all the same: the pods must be available before the next one.
func releasedByOthers(v *view) bool {
	return !v.s.Step.Open() && !bringUp(v) && v.highestReleased() >= 0
}

// highestReleased is the highest released pod that this rollout has not finished, or -1.
func (v *view) highestReleased() int {
	for i := len(v.o.Pods) - 1; i >= 0 && v.released(i); i-- {
		if !v.has(v.s.Finished, i) && !v.finished(i) {
			return i
		}
	}
	return -1
}

func startExternalStep(v *view) {
	why := ReasonExternal
	if v.s.Rollout.Reason == ReasonAdopted {
		why = ReasonAdopted
	}
	v.emit(v.leaving(v.o.Partition, v.about(v.highestReleased(), Event{Type: StepStarted, Reason: why})))
}

// 8: a step is open and not complete. It goes on only past dead pods: when all of it is released, a pod of it is dead,
// and there are dead pods right below it, which rule 12 then takes along.
func stepInFlight(v *view) bool {
	if !v.s.Step.Open() {
		return false
	}
	anyDead, allReleased := false, true
	for i := range v.unfinishedOfStep() {
		anyDead = anyDead || v.dead(i)
		allReleased = allReleased && v.released(i)
	}
	return !anyDead || !allReleased || v.deadRun() == "" || !v.enforce() || v.shut(true)
}

func watchStep(v *view) {
	b := v.stepBlame()
	switch {
	case b.blocked:
		v.block(b.finding.reason, b.index, b.finding)
	case b.finding.reason != "":
		v.holdFor(b.finding.reason, b)
	case v.s.Name == Blocked && v.causeGone():
		v.emit(v.about(v.stepPod(), Event{Type: StepResumed}))
	case v.s.Name == Stepping:
		v.release()
	}
}

// 9: pause stops steps, not the truth: a stalled pod is Blocked all the same.
func paused(v *view) bool { return v.o.Paused }

func holdPaused(v *view) {
	if b := v.blame(v.allPods()); b.blocked || b.finding.reason.class().hard() {
		v.judge(b)
		return
	}
	v.hold(ReasonPaused, v.nextPod(), finding{})
}

// 10: the first pods of a new StatefulSet are not stepped.
func bringUp(v *view) bool { return v.s.Rollout.Reason == ReasonBringUp && !v.anyPod(v.off) }

func watchBringUp(v *view) { v.judge(v.blame(v.allPods())) }

// 11: the next pods are there already. If none is left below, only while the controller's own idea of the current
// revision is another: at the target there is nothing to gain by going to 0.
func alreadyUpdated(v *view) bool {
	n := v.nextPod()
	if !v.enforce() || n < 0 || !v.finished(n) {
		return false
	}
	return v.skipTo() > 0 || v.o.CurrentRevision != v.o.UpdateRevision
}

func (v *view) skipTo() int {
	to := v.nextPod()
	for to > 0 && v.finished(to-1) {
		to--
	}
	return to
}

func skip(v *view) {
	var past []int32
	for i := v.skipTo(); i <= v.nextPod(); i++ {
		past = append(past, v.ordinal(i))
	}
	to := int32(v.skipTo()) //nolint:gosec // an index of replicas
	if v.s.Partition != to {
		v.emit(v.leaving(to, Event{Type: StepSkipped, Reason: ReasonAlreadyUpdated, Ordinals: OrdinalsOf(past...)}))
	}
	v.setPartition()
}

// 14: otherwise no step while any pod is unhealthy (I4).
func anyUnhealthy(v *view) bool { return !v.everyPod(v.healthy) }

func holdUnhealthy(v *view) { v.judge(v.blame(v.allPods())) }

// 16: nothing speaks against it: the next pod is released. One is left: with the partition at 0 and every pod healthy,
// rule 4 or rule 6 has matched.
func otherwise(*view) bool { return true }

func step(v *view) {
	if v.nextPod() < 0 {
		return
	}
	if !v.enforce() {
		v.hold(ReasonObserving, v.nextPod(), finding{})
		return
	}
	e := Event{Gates: v.gates(false)}
	if len(v.o.Policy.Budgets) > 0 {
		e.Gates = append(e.Gates, v.budget())
	}
	if v.needsApproval() {
		e.Actor = v.o.ApprovedBy
	}
	v.startStep(e, v.nextPod())
}
