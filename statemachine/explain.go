package statemachine

import (
	"fmt"
	"slices"
	"time"
)

// maxMessage is the length of the longest message, in characters: a few lines on a terminal.
const maxMessage = 200

// explain says for a person what the event means: what is happening, to which pod, and what comes next.
func (v *view) explain(e Event) string {
	switch e.Type {
	case Adopted:
		return v.explainAdopted(e)
	case RolloutStarted:
		return v.explainRollout(e)
	case StepStarted:
		return v.explainStep(e)
	case StepCompleted:
		return fit(fmt.Sprintf("%s at %s and available.", v.runs(e.Ordinals), v.o.UpdateRevision), "", v.whatFollows(e.Ordinals))
	case StepAborted:
		return fit(fmt.Sprintf("The step of %s ended early.", v.podsOf(e.Ordinals)), "", " "+reasons[e.Reason].means)
	case StepSkipped:
		return fit(fmt.Sprintf("%s already at %s and available.", v.runs(e.Ordinals), v.o.UpdateRevision), "", v.whatFollows(e.Ordinals))
	case PodReplaced:
		return fit(fmt.Sprintf("%s is dead and is deleted,", e.Pod), "", fmt.Sprintf(" so that it returns at %s.", e.Revision))
	case RevisionRestored:
		return fmt.Sprintf("status.currentRevision is set back to %s, at which a pod that is lost returns then; try %d of %d.",
			e.Revision, v.s.Restores+1, maxRestores)
	case PartitionParked:
		return "The partition is parked: no pod is released until its turn comes."
	case Scaled:
		return v.explainScaled(e)
	case PartitionOverridden:
		who := "Someone else"
		if m := v.o.PartitionManager; m != "" {
			who = "Field manager " + cut(m, 64)
		}
		return fmt.Sprintf("%s changed the partition from %s to %s.", who, v.partition(v.s.Partition), v.partition(*e.Partition))
	case PodRegressed:
		was := v.o.UpdateRevision
		if !v.s.Finished.Has(first(e.Ordinals)) {
			was = v.s.Rollout.FromRevision
		}
		return fmt.Sprintf("%s came back at %s although it was updated to %s.", e.Pod, e.Revision, was)
	case RolloutCompleted:
		return v.explainCompleted()
	case Abandoned:
		return v.explainAbandoned(e)
	default:
		return v.explainRest(e)
	}
}

func (v *view) explainRest(e Event) string {
	switch {
	case e.Reason == ReasonFirstReady:
		return fmt.Sprintf("%s is the first pod that was Ready.", e.Pod)
	case e.Type == Settled, e.Type == Released && v.s.Name == Done:
		return "There is nothing to update."
	case e.Type == StepResumed, e.Type == Released && v.s.Step.Open():
		return fmt.Sprintf("%s is on its way again.", v.podsOf(v.s.Step.Ordinals))
	case e.Type == Unblocked, e.Type == Released:
		return "What was in the way is gone." + v.whatFollows("")
	default:
		return ""
	}
}

func (v *view) explainAdopted(e Event) string {
	what := reasons[e.Reason].means
	switch {
	case v.o.Mode == ModeObserve:
		return what + " Pawl only observes it."
	case !v.enforce():
		return what
	}
	return what + " The partition is parked until a rollout is due."
}

func (v *view) explainRollout(e Event) string {
	left := len(v.o.Pods) - e.Ordinals.Len()
	from := ""
	if e.FromRevision != "" && e.FromRevision != e.Revision {
		from = " from " + e.FromRevision
	}
	switch e.Reason {
	case ReasonBringUp:
		return fit(fmt.Sprintf("Bringing up %s at %s.", pods(len(v.o.Pods)), e.Revision), "", "")
	case ReasonRollback:
		return fit(fmt.Sprintf("Rolling back%s to the stable revision %s:", from, e.Revision), "", fmt.Sprintf(" %s to update.", pods(left)))
	default:
		next := fmt.Sprintf(" %s to update.", pods(left))
		if v.enforce() && !v.o.MayRestore && v.forgotten() >= 0 {
			next += fmt.Sprintf(" A pod that is lost returns at %s: Pawl may not patch statefulsets/status.", v.o.CurrentRevision)
		}
		return fit(fmt.Sprintf("Rollout %d%s to %s:", e.Number, from, e.Revision), "", next)
	}
}

func (v *view) explainStep(e Event) string {
	are := "is"
	if e.Ordinals.Len() > 1 {
		are = "are"
	}
	who := v.podsOf(e.Ordinals)
	switch e.Reason {
	case ReasonRepair:
		return fit(fmt.Sprintf("%s is dead and is repaired where it stands; the partition stays.", who), "", "")
	case ReasonExternal, ReasonAdopted:
		return fit(fmt.Sprintf("%s %s released by someone else and being replaced.", who, are), "", v.whatFollows(e.Ordinals))
	case ReasonPodDead:
		return fit(fmt.Sprintf("%s %s dead and being replaced; the health of the others is not asked.", who, are), "", v.whatFollows(e.Ordinals))
	case ReasonOnlyUnhealthyPod:
		return fit(fmt.Sprintf("%s is the only unhealthy pod and is being replaced.", who), "", v.whatFollows(e.Ordinals))
	case ReasonForced:
		return fit(fmt.Sprintf("%s %s released by force%s, whatever the health of the others", who, are, by(e.Actor)), e.Cause, "")
	case ReasonNothingToProtect:
		return fit(fmt.Sprintf("No pod was ever Ready, so there is nothing to protect: all are released to %s.", v.o.UpdateRevision), "", "")
	default:
		step := v.s.Finished.Len() + 1
		return fit(fmt.Sprintf("%s %s being replaced (step %d of %d)%s.", who, are, step, len(v.o.Pods), approvedBy(e)), "",
			v.whatFollows(e.Ordinals)+v.lostClaims())
	}
}

// approvedBy names who approved the steps after the canary pods.
func approvedBy(e Event) string {
	if e.Actor == "" {
		return ""
	}
	return ", approved" + by(e.Actor)
}

func (v *view) explainScaled(e Event) string {
	what := fmt.Sprintf("Scaled from %d to %d replicas.", v.s.Replicas, *e.Replicas)
	if v.s.Start != *e.Start {
		what += fmt.Sprintf(" The first ordinal is %d now, before it was %d.", *e.Start, v.s.Start)
	}
	return what
}

func (v *view) explainCompleted() string {
	took := ""
	if r := v.s.Rollout; !r.StartedAt.IsZero() {
		took = fmt.Sprintf(" Rollout %d took %s.", r.Number, v.o.Now.Sub(r.StartedAt).Truncate(time.Second)) // as its record has it
	}
	if v.o.Replicas == 0 {
		return fit(fmt.Sprintf("There are no pods; the next will run %s.", v.o.UpdateRevision), "", took)
	}
	all, are := fmt.Sprintf("All %d pods run", v.o.Replicas), "are"
	if v.o.Replicas == 1 {
		all, are = "The only pod runs", "is"
	}
	back := ""
	if v.s.Rollout.Reason == ReasonRollback {
		back = "the stable revision "
	}
	return fit(fmt.Sprintf("%s %s%s and %s available.", all, back, v.o.UpdateRevision, are), "", took)
}

func (v *view) explainAbandoned(e Event) string {
	switch {
	case e.Reason == ReasonDeleted:
		return "The StatefulSet is being deleted; Pawl ends here."
	case e.Partition != nil && *e.Partition < *e.PreviousPartition:
		return "No longer managed: the partition goes back to 0 and Kubernetes replaces pods by itself."
	case v.s.Mode != ModeEnforce:
		return "No longer managed."
	default:
		return fit("No longer managed; the partition is left as it is, which holds pods back. Let go: ", "",
			fmt.Sprintf(`kubectl patch sts %s -n %s -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`, v.o.Name, v.o.Namespace))
	}
}

// whatFollows names the pod that comes after these ordinals.
func (v *view) whatFollows(after Ordinals) string {
	for i := range slices.Backward(v.o.Pods) {
		if !v.has(after, i) && !v.has(v.s.Finished, i) && !v.atTarget(i) {
			return fmt.Sprintf(" Next: %s.", v.pod(i))
		}
	}
	return " No other pod is left."
}

// runs is "db-2 runs" or "db-1 and db-2 run".
func (v *view) runs(o Ordinals) string {
	if o.Len() == 1 {
		return v.podsOf(o) + " is"
	}
	return v.podsOf(o) + " are"
}
