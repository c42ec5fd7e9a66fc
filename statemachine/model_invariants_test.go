package statemachine

import (
	"slices"
	"time"
)

// The invariants as predicates on what the world does and on what Pawl decides, judged by what the pods are and not by
// what the product makes of them. Each violation begins with its number.

// checkUpdated: the StatefulSet controller replaces a pod that Pawl released (I1, I2).
func (w *world) checkUpdated(i int32) {
	if !w.available(i) || w.foreign || w.set.mode != ModeEnforce {
		return
	}
	for j := w.start; j < w.start+w.set.replicas; j++ {
		switch {
		case j != i && !w.available(j) && w.maxUnavailable == 1:
			w.diary.violate("I2: %s is available and is replaced while %s is down", podName(i), podName(j))
		case j > i && w.pods[j].rev != w.set.template && !w.pods[j].terminating:
			w.diary.violate("I1: %s is replaced before %s", podName(i), podName(j))
		}
	}
}

// checkWrite: nothing is written that is not recorded (I6).
func (w *world) checkWrite(in intent) {
	switch s := &w.state; in.kind {
	case SetPartition:
		if s.Partition != in.partition && s.Step.Partition != in.partition {
			w.diary.violate("I6: partition %s is written and not recorded", partitionText(in.partition))
		}
	case ReplacePod:
		if s.Replace.UID != podUID(in.uid) {
			w.diary.violate("I6: %s is deleted and that is not recorded", podName(in.ordinal))
		}
	case RestoreRevision:
		if s.Restores == 0 {
			w.diary.violate("I6: currentRevision is restored and that is not recorded")
		}
	case NoIntent:
	}
}

// judge is one decision before the invariants.
type judge struct {
	*world
	o *Observation
	d *Decision
}

func (w *world) checkDecision(o *Observation, d *Decision) {
	j := judge{w, o, d}
	if d.Bug != nil {
		w.diary.violate("illegal event: %v", d.Bug)
		return
	}
	j.twice()
	j.intent()
	j.story()
	for i := range d.Events {
		j.event(&d.Events[i])
	}
}

// twice: the same again leads to the same (I7), an older one to nothing (I8).
func (j judge) twice() {
	if len(j.d.Events) == 0 {
		return
	}
	if folded, err := Fold(j.state, j.d.Events); err != nil || folded != j.d.State {
		j.diary.violate("I6: the state is not the fold of the events: %v", err)
	}
	for i, e := range slices.Backward(j.d.Events) { // who has only the log since the newest anchor computes the same state
		if e.Anchor() {
			if folded, err := FoldFromAnchor(j.d.Events[i:]); err != nil || folded != j.d.State {
				j.diary.violate("I6: from its anchor the log leads to another state: %v", err)
			}
			break
		}
	}
	again := j.decide(j.d.State, *j.o)
	switch {
	case again.Bug != nil:
		j.diary.violate("illegal event: %v", again.Bug)
	case len(again.Events) > 0:
		j.diary.violate("I7: the same observation twice: %s", again.Events[0].Type)
	case !sameIntent(again.Intent, j.d.Intent):
		j.diary.violate("I7: after a crash %s becomes %s", intentText(j.d.Intent), intentText(again.Intent))
	}
	old := *j.o
	old.Generation--
	if late := j.decide(j.d.State, old); len(late.Events) > 0 || late.Intent.Kind != NoIntent {
		j.diary.violate("I8: a stale read was acted upon")
	}
}

func sameIntent(a, b Intent) bool {
	return a.Kind == b.Kind && a.Partition == b.Partition && a.Pod.UID == b.Pod.UID && a.Revision == b.Revision
}

func intentText(in Intent) string {
	switch in.Kind {
	case SetPartition:
		return "SetPartition " + partitionText(in.Partition)
	case ReplacePod:
		return "ReplacePod " + in.Pod.Name
	case RestoreRevision:
		return "RestoreRevision " + in.Revision
	default:
		return "nothing"
	}
}

func (j judge) intent() {
	in := j.d.Intent
	if in.Kind != NoIntent && j.o.Mode != ModeEnforce {
		handsBack := in.Kind == SetPartition && in.Partition == 0 && j.o.Mode == ModeOff && j.d.State.Name == Done
		if !handsBack {
			j.diary.violate("I10: %s in mode %q", intentText(in), j.o.Mode)
		}
		j.handBack()
		return
	}
	switch in.Kind {
	case SetPartition:
		j.partition(in.Partition)
	case ReplacePod:
		j.replacement(in.Pod)
	case RestoreRevision:
		if in.Revision == j.o.CurrentRevision {
			j.diary.violate("I9: a restore that changes nothing")
		}
	case NoIntent:
	}
}

// handBack: partition 0 would release every pod that is outdated.
func (j judge) handBack() {
	for i := range j.o.Pods {
		if p := &j.o.Pods[i]; p.Present && p.Revision != j.o.TemplateRevision && j.d.Intent.Kind != NoIntent {
			j.diary.violate("I10: handed back while %s is at %s", p.Name, p.Revision)
		}
	}
}

func (j judge) partition(to int32) {
	switch from := j.o.Partition; {
	case to == from:
		j.diary.violate("I9: a write that changes nothing")
	case j.d.State.Partition != to && j.d.State.Step.Partition != to:
		j.diary.violate("I6: partition %s is not recorded", partitionText(to))
	case to > from:
		j.rise(to)
	default:
		j.lower(to)
	}
}

// rise: the partition rises to park and for nothing else (I11), past all pods or not past one that is being replaced (I5).
func (j judge) rise(to int32) {
	recorded := len(j.d.Events) == 0 || j.state.Partition == to // before pods were scaled away: it is better than what there is
	if !recorded && to != Parked && int(to) >= len(j.o.Pods) {
		j.diary.violate("I5: parked at %d with %d pods: those of a scale-up would start at the new revision", to, len(j.o.Pods))
	}
	lowering, parks := j.lowering, len(j.d.Events) == 0
	for _, e := range j.d.Events {
		if e.Partition == nil {
			continue
		}
		lowering = e.Type == StepStarted || e.Type == StepSkipped
		switch e.Type {
		case Adopted, RolloutStarted, RolloutCompleted:
			parks = true
		case PartitionParked: // for a new template, or because there is nothing to do
			parks = parks || j.o.TemplateDigest != j.state.TemplateDigest || !j.d.State.Rollout.Open()
		default:
		}
	}
	if recorded := j.state.Partition == to; lowering || !parks && !recorded {
		j.diary.violate("I11: the partition rises from %d to %s, and the target is as it was", j.o.Partition, partitionText(to))
	}
	j.past(to)
}

// past: a pod that the StatefulSet controller is replacing would come back at the old revision.
func (j judge) past(to int32) {
	recorded := len(j.d.Events) == 0 || j.state.Partition == to
	if recorded || j.o.CurrentRevision == "" || j.o.CurrentRevision == j.o.TemplateRevision {
		return // recorded before the controller began, or it comes back at the same revision
	}
	if j.oldPods {
		return // a cache of pods that is behind shows nobody that the controller has begun
	}
	for i := len(j.o.Pods) - 1; i >= int(max(j.o.Partition, 0)); i-- {
		p, n := &j.o.Pods[i], j.start+int32(i)
		if p.Present && !p.Terminating && p.Revision != j.o.TemplateRevision {
			return // what is below it, the controller would not have begun
		}
		if int32(i) < to && j.updating[n] {
			j.diary.violate("I5: parked at %s past %s, which is being replaced", partitionText(to), podName(n))
		}
	}
}

// lower: never past a pod that is not at the target, unless it is of the step (I2).
func (j judge) lower(to int32) {
	s := &j.d.State
	for i := int(to); i < min(len(j.o.Pods), int(j.o.Partition)); i++ {
		p, n := &j.o.Pods[i], j.start+int32(i)
		done := s.Finished.Has(n) || p.Present && p.Revision == j.o.UpdateRevision && j.isAvailable(p)
		if !done && !s.Step.Ordinals.Has(n) {
			j.diary.violate("I2: the partition is lowered to %d past %s, which is not at the target", to, podName(n))
		}
	}
}

// replacement: only a dead pod is deleted, that comes back at the target (I3).
func (j judge) replacement(p Pod) {
	i := p.Ordinal - j.start
	returns := i >= j.o.Partition || j.o.CurrentRevision == j.o.UpdateRevision
	again := j.state.Replace.UID == p.UID && !j.isAvailable(&p)
	switch {
	case p.Terminating || !p.Present || p.Revision == j.o.UpdateRevision:
		j.diary.violate("I3: %s is terminating, absent or at the target and is deleted", p.Name)
	case !returns:
		j.diary.violate("I3: %s is deleted and would not come back at the target", p.Name)
	case !again && !j.isDead(&p):
		j.diary.violate("I3: %s is deleted and is not dead", p.Name)
	case !again && j.state.Replaced.Has(p.Ordinal) && j.state.Revision == j.d.State.Revision && j.state.UID == j.d.State.UID:
		j.diary.violate("I3: %s is replaced twice for one target", p.Name)
	case len(j.o.Policy.Gates) > 0 && j.always != GateOpen:
		j.diary.violate("I12: %s is deleted while a gate that is always asked is %s", p.Name, j.always)
	case !j.parallel && !again:
		for k := range i {
			if !j.isUp(&j.o.Pods[k]) {
				j.diary.violate("I3: %s is deleted before %s, at which the StatefulSet controller stops", p.Name, podName(j.start+k))
			}
		}
	}
}

// isUp: the StatefulSet controller does not wait for it.
func (j judge) isUp(p *Pod) bool {
	return p.Present && p.Ready && !p.Terminating && !p.NodeNotReady && p.Phase == "Running" && j.now.Sub(p.ReadySince) >= j.minReady
}

// isAvailable: up, and for long enough to be believed.
func (j judge) isAvailable(p *Pod) bool {
	age := j.now.Sub(p.ReadySince)
	restarted := len(p.Containers) > 0 && p.Containers[0].Restarts > 0
	return j.isUp(p) && (!j.unprobed || age >= unprobedSoak) && (!restarted || age >= flapWindow)
}

// isDead is what may be called dead at most: a pod that cannot start or has ended, past the grace; not Running past the
// deadline; refused; or never Ready at a revision that nobody goes to.
func (j judge) isDead(p *Pod) bool {
	if p.Terminating || j.isAvailable(p) {
		return false
	}
	if why := j.state.Step.Reason; (why == ReasonPodDead || why == ReasonNothingToProtect) && j.state.Step.Ordinals.Has(p.Ordinal) {
		return true // it was when the step was recorded
	}
	since, named := p.ReadySince, time.Time{}
	if c := j.state.Clock; c.Ordinal == p.Ordinal {
		named = c.Named
		since = earlier(since, c.Named)
	}
	if j.state.Step.Ordinals.Has(p.Ordinal) {
		named = earlier(named, j.state.Step.StartedAt)
		if named.IsZero() {
			named = j.state.Step.StartedAt
		}
	}
	past := func(t time.Time, d time.Duration) bool { return !t.IsZero() && j.now.Sub(t) >= d }
	switch {
	case !p.Present:
		return p.Told.Reason != "" || past(named, modelDeadline)
	case p.Phase != "Running" && len(p.Claims) > 0:
		return true
	case p.Revision != j.o.UpdateRevision && p.Revision != j.o.CurrentRevision && !p.Ready && p.StartTime.Equal(p.ReadySince):
		return true
	case p.Phase != "Running" && (past(since, modelDeadline) || past(named, modelDeadline)):
		return true
	case p.Containers[0].Terminated != nil, p.Containers[0].Waiting == "ErrImagePull":
		return past(since, modelGrace)
	default:
		return false
	}
}

// story: what is true of every decision, whatever is in it.
func (j judge) story() {
	s, released := &j.d.State, 0
	for _, e := range j.d.Events {
		if e.Type == StepStarted && e.Reason != ReasonExternal && e.Reason != ReasonAdopted {
			released++
		}
	}
	if released > 1 {
		j.diary.violate("I2: %d steps on one observation", released)
	}
	if open := s.Step.Open(); open && (s.Name == Waiting || s.Name == Done) || !open && s.Name == Stepping {
		j.diary.violate("I6: %s with the step %q", s.Name, s.Step.Ordinals)
	}
	if s.Name == Done && s.Rollout.Open() {
		j.diary.violate("I6: Done with a rollout open")
	}
}

func (j judge) event(e *Event) {
	if length(e.Message) > maxMessage || e.Message == "" {
		j.diary.violate("message of %s: %q", e.Type, e.Message)
	}
	switch e.Type {
	case StepStarted:
		j.step(e)
	case RolloutCompleted:
		j.completed()
	case BlockedEvent:
		if reasons[e.Reason].next == "" {
			j.diary.violate("Blocked(%s) names no remedy", e.Reason)
		}
	case Held:
		j.held(e)
	default:
	}
}

// completed: every pod is at the target and available, and comes back so (I5).
func (j judge) completed() {
	for i := range j.o.Pods {
		if p := &j.o.Pods[i]; p.Revision != j.o.TemplateRevision || !j.isAvailable(p) {
			j.diary.violate("I5: completed while %s is %q, available: %t", podName(j.start+int32(i)), p.Revision, j.isAvailable(p))
		}
	}
	if j.o.CurrentRevision != j.o.TemplateRevision || len(j.o.Condemned) > 0 {
		j.diary.violate("I5: completed and a pod that is lost comes back at %s", j.o.CurrentRevision)
	}
}

func (j judge) held(e *Event) {
	back := j.d.State.Rollout.Reason == ReasonRollback
	if back && (e.Reason == ReasonAwaitingApproval || e.Reason == ReasonBaking || e.Reason == ReasonConcurrencyLimit) {
		j.diary.violate("I13: a way back waits: %s", e.Reason)
	}
	for _, g := range e.Gates {
		truth := j.always
		if g.Name == "up" {
			truth = j.whenDown
		}
		if e.Reason == ReasonGateClosed && g.Name == shutGate(e.Gates) && truth != GateClosed {
			j.diary.violate("I12: gate %s is %s and called closed", g.Name, truth)
		}
	}
}

// step holds a step against the pods and the gates.
func (j judge) step(e *Event) {
	switch e.Reason {
	case ReasonExternal, ReasonAdopted:
		return
	case ReasonForced:
		if j.force.Revision != j.o.UpdateRevision || *e.Partition < j.force.Partition {
			j.diary.violate("I3: forced to %d, and the order is %v", *e.Partition, j.force)
		}
		return
	case ReasonPodDead:
		j.dead(e)
	case ReasonRepair:
		if *e.Partition != *e.PreviousPartition {
			j.diary.violate("I6: a repair changes the partition")
		}
	case ReasonNothingToProtect:
		if j.sawReady {
			j.diary.violate("I3: nothing to protect, and a pod was Ready once")
		}
	case ReasonOnlyUnhealthyPod:
		j.onlyUnhealthy(e)
	default:
		j.ordinary(e)
	}
	if j.o.Paused || j.o.Mode != ModeEnforce {
		j.diary.violate("a step while paused, or in mode %s", j.o.Mode)
	}
	if len(j.o.Policy.Gates) > 0 && (j.always != GateOpen || e.Reason == "" && j.whenDown != GateOpen) {
		j.diary.violate("I12: a step (%s) while the gates are %s and %s", e.Reason, j.always, j.whenDown)
	}
}

func (j judge) dead(e *Event) {
	some := len(j.o.Pods) == 1
	for i := range j.o.Pods {
		p := &j.o.Pods[i]
		some = some || j.isAvailable(p)
		if e.Ordinals.Has(j.start+int32(i)) && (!j.isDead(p) || p.Present && p.Revision == j.o.UpdateRevision) {
			j.diary.violate("I3: %s is released as dead and is not", podName(j.start+int32(i)))
		}
	}
	if !some {
		j.diary.violate("I3: a dead pod is released in a total outage")
	}
}

func (j judge) onlyUnhealthy(e *Event) {
	n := first(e.Ordinals)
	j.alone(e, n)
	for i := range j.o.Pods {
		p := &j.o.Pods[i]
		if j.start+int32(i) != n && !j.isAvailable(p) {
			j.diary.violate("I4: %s is the only unhealthy pod, and %s is unhealthy", podName(n), podName(j.start+int32(i)))
		}
	}
	if p := &j.o.Pods[n-j.start]; p.Phase != "Running" || p.Terminating || p.NodeNotReady || p.Ready {
		j.diary.violate("I4: %s is stepped as unready and does not run", p.Name)
	}
}

// ordinary: every pod is available (I4), those above are at the target (I1), and this one alone is released (I2).
func (j judge) ordinary(e *Event) {
	j.alone(e, first(e.Ordinals))
	for i := range j.o.Pods {
		p := &j.o.Pods[i]
		if !j.isAvailable(p) {
			j.diary.violate("I4: a step while %s is not available", podName(j.start+int32(i)))
		}
		if p.Present && p.Revision != j.o.UpdateRevision && len(p.Claims) > 0 && j.start+int32(i) == first(e.Ordinals) {
			j.diary.violate("I2: a step, and %s would not come back: its claim is lost", p.Name)
		}
	}
	if len(j.o.Policy.Budgets) > 0 && j.spent {
		j.diary.violate("a step that the disruption budget does not allow")
	}
	if j.o.Policy.Slots.Limit > 0 && j.slotTaken && j.d.State.Rollout.Reason != ReasonRollback {
		j.diary.violate("a step, and another StatefulSet has the slot")
	}
	if i := j.forgets(); i >= 0 && !j.noRestore && j.d.State.Restores < maxRestores {
		j.diary.violate("I5: a step, and %s at %s would return at %s", podName(j.start+int32(i)), j.o.Pods[i].Revision, j.o.CurrentRevision)
	}
	if c := j.o.Policy.CanaryPods; c > 0 && j.d.State.Rollout.Reason != ReasonRollback &&
		j.d.State.Finished.Len() >= int(c) && j.o.Approved != j.o.UpdateRevision {
		j.diary.violate("a step past the canary pods that nobody approved")
	}
}

// forgets is a pod from before its StatefulSet that would come back at a revision that it never had, or -1.
func (j judge) forgets() int {
	for i := range j.o.Pods {
		if p := &j.o.Pods[i]; j.o.CurrentRevision != j.o.UpdateRevision && p.Present && p.Revision == j.o.CurrentRevision {
			return -1
		}
	}
	for i := range j.o.Pods {
		switch p := &j.o.Pods[i]; {
		case !p.Present || !p.Created.Before(j.o.Created):
		case p.Revision == j.o.UpdateRevision:
			return -1 // on its way back
		default:
			return i
		}
	}
	return -1
}

func (j judge) alone(e *Event, n int32) {
	if e.Ordinals.Len() != 1 || *e.Partition != n-j.start {
		j.diary.violate("I2: a step releases %q to partition %d", e.Ordinals, *e.Partition)
		return
	}
	for i := int(n-j.start) + 1; i < len(j.o.Pods); i++ {
		if p := &j.o.Pods[i]; p.Present && p.Revision != j.o.UpdateRevision {
			j.diary.violate("I1: %s is stepped before %s", podName(n), podName(j.start+int32(i)))
		}
	}
}
