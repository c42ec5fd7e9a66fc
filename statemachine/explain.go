package statemachine

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
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
	case PartitionParked:
		return "The partition is parked: no pod is released until its turn comes."
	case Scaled:
		return v.explainScaled(e)
	case PartitionOverridden:
		return fmt.Sprintf("Someone else changed the partition from %s to %s.", v.partition(v.s.Partition), v.partition(*e.Partition))
	case PodRegressed:
		return fmt.Sprintf("%s came back at %s although it was updated to %s.", e.Pod, e.Revision, v.o.UpdateRevision)
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
	case e.Type == Settled:
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
	if v.o.Mode == ModeObserve {
		return what + " Pawl only observes it."
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
		return fit(fmt.Sprintf("The first %d pods come up at %s.", len(v.o.Pods), e.Revision), "", "")
	case ReasonRollback:
		return fit(fmt.Sprintf("Rolling back%s to the stable revision %s:", from, e.Revision), "", fmt.Sprintf(" %s to update.", pods(left)))
	default:
		return fit(fmt.Sprintf("Rollout %d%s to %s:", e.Number, from, e.Revision), "", fmt.Sprintf(" %s to update.", pods(left)))
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
	case ReasonNothingToProtect:
		return fit(fmt.Sprintf("No pod was ever Ready, so there is nothing to protect: all are released to %s.", v.o.UpdateRevision), "", "")
	default:
		step := v.s.Finished.Len() + 1
		return fit(fmt.Sprintf("%s %s being replaced (step %d of %d).", who, are, step, len(v.o.Pods)), "", v.whatFollows(e.Ordinals))
	}
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
		took = fmt.Sprintf(" Rollout %d took %s.", r.Number, v.o.Now.Sub(r.StartedAt).Round(time.Second))
	}
	if v.o.Replicas == 0 {
		return fit(fmt.Sprintf("There are no pods; the next will run %s.", v.o.UpdateRevision), "", took)
	}
	all := fmt.Sprintf("All %d pods run", v.o.Replicas)
	if v.o.Replicas == 1 {
		all = "The only pod runs"
	}
	back := ""
	if v.s.Rollout.Reason == ReasonRollback {
		back = "the stable revision "
	}
	return fit(fmt.Sprintf("%s %s%s and are available.", all, back, v.o.UpdateRevision), "", took)
}

func (v *view) explainAbandoned(e Event) string {
	switch {
	case e.Reason == ReasonDeleted:
		return "The StatefulSet is being deleted; Pawl ends here."
	case e.Partition != nil:
		return "No longer managed: the partition goes back to 0 and Kubernetes replaces pods by itself."
	case v.s.Mode != ModeEnforce:
		return "No longer managed."
	default:
		return fit("No longer managed; the partition is left as it is, which holds pods back. Let go: ", "",
			fmt.Sprintf(`kubectl patch sts %s -n %s -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`, v.o.Name, v.o.Namespace))
	}
}

// explainStall says what is wrong, since when, and in one imperative what to do.
func (v *view) explainStall(why Reason, i int, f finding) string {
	next := " " + reasons[why].next
	switch {
	case why == ReasonPaused:
		return fit(v.pausedBy(), "", fmt.Sprintf(` Resume: kubectl patch rp %s -n %s --type=merge -p '{"spec":{"paused":false}}'`, v.o.Name, v.o.Namespace))
	case why == ReasonObserving:
		return fit(fmt.Sprintf("%s would be next, but Pawl only observes.", v.pod(i)), "",
			fmt.Sprintf(" Let Pawl step: kubectl label sts %s -n %s pawl.dev/mode=Enforce --overwrite", v.o.Name, v.o.Namespace))
	case i < 0:
		return fit(fmt.Sprintf("%s Since %s.", reasons[why].means, v.clock(v.heldSince(why))), "", next)
	case why == ReasonSupersededPodStuck:
		return fit(fmt.Sprintf("%s is dead at %s since %s and is not next.", v.pod(i), v.o.Pods[i].Revision, v.clock(v.deadSince(i))), "",
			fmt.Sprintf(" Delete it; it returns at %s: kubectl delete pod %s -n %s", v.o.CurrentRevision, v.pod(i), v.o.Namespace))
	}
	switch n := v.nextPod(); {
	case v.enforce() && why.class().hard() && v.off(i) && (v.replaceable(i) && !v.has(v.s.Replaced, i) || v.s.Origin == OriginCreated):
		next = " Wait: it is replaced when its grace is over."
	case !v.has(v.s.Step.Ordinals, i) && !v.atTarget(i) && n >= 0 && n != i && v.s.Rollout.Reason != ReasonBringUp:
		next = fmt.Sprintf(" Heal %s; %s waits for it.", v.pod(i), v.pod(v.nextPod()))
	}
	return fit(fmt.Sprintf("%s %s since %s", v.pod(i), f.what, v.clock(v.stallStart(why, i, f))), f.detail, next)
}

// stallStart is when the stall that is about to be told began.
func (v *view) stallStart(why Reason, i int, f finding) time.Time {
	if c := v.s.Clock; v.named(i) && c.Reason.class() == why.class() {
		return c.Since
	}
	return v.stalledSince(i, f)
}

// heldSince is when a reason that is about no pod was first told.
func (v *view) heldSince(why Reason) time.Time {
	if h := v.s.Hold; h.Reason == why && h.Ordinal == noOrdinal {
		return h.Changed
	}
	return v.o.Now
}

// deadSince is when the pod was first named, or is known to be as it is.
func (v *view) deadSince(i int) time.Time {
	if v.named(i) {
		return v.s.Clock.Named
	}
	if t := v.factTime(i); !t.IsZero() {
		return t
	}
	return v.o.Now
}

func (v *view) pausedBy() string {
	by := ""
	if v.o.PausedBy != "" {
		by = " by " + v.o.PausedBy
	}
	next := ""
	if n := v.nextPod(); n >= 0 {
		next = fmt.Sprintf(" %s is next.", v.pod(n))
	}
	return fmt.Sprintf("Paused%s since %s.%s", by, v.clock(v.o.Now), next)
}

// whatFollows names the pod that comes after these ordinals.
func (v *view) whatFollows(after Ordinals) string {
	for i := len(v.o.Pods) - 1; i >= 0; i-- {
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

// podsOf names the pods of a set: "db-2", or "db-0-2" for several.
func (v *view) podsOf(o Ordinals) string {
	if o.Len() <= 1 {
		return v.o.Name + "-" + string(o)
	}
	return fmt.Sprintf("%s-{%s}", v.o.Name, o)
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// partition is a partition as people read it.
func (v *view) partition(p int32) string {
	if p == Parked {
		return "parked"
	}
	return fmt.Sprint(p)
}

// clock is an absolute time, with the date where it is not today's.
func (v *view) clock(t time.Time) string {
	if t.Format(time.DateOnly) != v.o.Now.Format(time.DateOnly) {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.UTC().Format("15:04:05Z")
}

// fit joins what is wrong, Kubernetes' own words and what to do to at most maxMessage characters. The words are cut
// first; what to do is never cut as long as anything else is left.
func fit(what, detail, next string) string {
	detail = strings.Join(strings.Fields(detail), " ")
	room := maxMessage - length(what) - length(next) - len(": .")
	switch {
	case detail != "" && room >= 12:
		detail = strings.TrimRight(cut(detail, room), ".")
		what += ": " + detail + "."
	case next != "" && !strings.ContainsRune(".:, ", rune(what[len(what)-1])):
		what += "."
	}
	if over := length(what) + length(next) - maxMessage; over > 0 {
		what = cut(what, max(length(what)-over, 1))
	}
	return cut(what+next, maxMessage)
}

func length(s string) int { return utf8.RuneCountInString(s) }

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if length(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}
