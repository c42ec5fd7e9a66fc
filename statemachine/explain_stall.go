package statemachine

import (
	"fmt"
	"strings"
	"time"
)

// explainStall says what is wrong, since when, until when it is waited for, and in one imperative what to do. A zero time is
// for what is waited for no longer.
func (v *view) explainStall(why Reason, i int, f finding, until time.Time) string {
	if said := v.explainPolicy(why, i, f, until); said != "" {
		return said
	}
	return v.explainTrouble(why, i, f, until)
}

// waitsUntil is when what is about to be told as Held will be Blocked, if nothing happens; zero if that is never.
func (v *view) waitsUntil(why Reason, i int, f finding) time.Time {
	switch {
	case why.class() == classNone:
		return time.Time{}
	case i < 0:
		since := v.heldSince(why)
		if h := v.s.Hold; why.gate() && h.Reason.gate() {
			since = h.Since
		}
		return since.Add(v.o.ProgressDeadline)
	}
	start := v.lateStart(i)
	if start.IsZero() {
		start = v.o.Now // it is named now
	}
	if c := v.s.Clock; c.Ordinal != noOrdinal && c.Any.Before(start) {
		start = c.Any
	}
	for k := range v.waitingOfStep() { // the step that waits for it is late before it is
		if t := v.lateStart(k); t.Before(start) {
			start = t
		}
	}
	until := start.Add(v.o.ProgressDeadline)
	if hard := v.graceEnds(i, f); why.class().hard() && hard.Before(until) {
		until = hard
	}
	return until
}

// explainTrouble is explainStall for what no policy asks for.
func (v *view) explainTrouble(why Reason, i int, f finding, until time.Time) string {
	next := v.blockedAt(until) + " " + reasons[why].next
	switch {
	case why == ReasonPaused:
		return fit(v.pausedBy(), "", fmt.Sprintf(` Resume: kubectl patch rp %s -n %s --type=merge -p '{"spec":{"paused":false}}'`, v.o.Name, v.o.Namespace))
	case why == ReasonObserving:
		return fit(fmt.Sprintf("%s would be next, but Pawl only observes.", v.pod(i)), "",
			fmt.Sprintf(" Let Pawl step: kubectl label sts %s -n %s pawl.dev/mode=Enforce --overwrite", v.o.Name, v.o.Namespace))
	case why == ReasonTotalOutage:
		const advice = " Revert, or force"
		return whatFits(fmt.Sprintf("No pod is healthy since %s.", v.clock(v.heldSince(why))),
			advice+": "+v.forceCommand(), advice+" it with spec.force of the RolloutProgress.")
	case i < 0:
		return fit(fmt.Sprintf("%s Since %s", reasons[why].means, v.clock(v.heldSince(why))), f.detail, next)
	case why == ReasonSupersededPodStuck:
		remedy := fmt.Sprintf("kubectl delete pod %s -n %s", v.pod(i), v.o.Namespace)
		return whatFits(fmt.Sprintf("%s is dead at %s since %s and is not next.", v.pod(i), v.o.Pods[i].Revision, v.clock(v.deadSince(i))),
			fmt.Sprintf(" Set spec.force, or delete it (it returns at %s): %s", v.o.CurrentRevision, remedy), " Delete it: "+remedy)
	}
	if f.detail == "" {
		f.detail = v.blindTo(why, i)
	}
	return fit(fmt.Sprintf("%s %s since %s", v.pod(i), f.what, v.clock(v.stallStart(why, i, f))), f.detail, v.whatHelps(why, i, f, until))
}

// whatHelps says until when this pod is waited for, and what to do about it.
func (v *view) whatHelps(why Reason, i int, f finding, until time.Time) string {
	next, blocked := " "+reasons[why].next, v.blockedAt(until)
	switch n := v.nextPod(); {
	case v.enforce() && !v.o.Paused && !v.s.Step.Open() && i == n && v.aloneUnhealthy(i) && !v.unreadySince(i).IsZero() && until.After(v.o.Now):
		alone := v.unreadySince(i).Add(flapWindow)
		next, blocked = fmt.Sprintf(" Wait: it is the only unhealthy pod, and replaced at %s.", v.clock(alone)), ""
	case why == ReasonNodeNotReady && v.o.Pods[i].NodeGone:
		next = " Delete the pod, or wait until the pod garbage collector does."
	case why == ReasonUnknown && v.healthy(i):
		next = " Look at the events of the StatefulSet, and at kube-controller-manager."
	case v.enforce() && why.class().hard() && v.off(i) && (v.replaceable(i) && !v.has(v.s.Replaced, i) || v.s.Origin == OriginCreated):
		return v.replacedLater(i, f, blocked)
	case v.enforce() && !v.o.Paused && v.off(i) && v.s.Origin == OriginCreated && v.s.Rollout.Reason != ReasonBringUp:
		next = " Wait: no pod was ever Ready, so all are released when its deadline is over."
		if t := v.comesUpUntil(i); t.After(v.o.Now) {
			next, blocked = fmt.Sprintf(" Wait: no pod was ever Ready, so all are released at %s.", v.clock(t)), ""
		}
	case v.has(v.s.Step.Ordinals, i) || v.atTarget(i) || n < 0 || v.s.Rollout.Reason == ReasonBringUp || !strings.Contains(next, "template"):
	case n != i: // it is not the new template that is broken
		if v.s.Step.Open() && v.stepPod() >= 0 {
			n = v.stepPod()
		}
		next = fmt.Sprintf(" Heal %s; %s waits for it.", v.pod(i), v.pod(n))
	case v.enforce() && !v.o.Paused && why.class().hard() && v.anyHealthy():
		next = fmt.Sprintf(" Wait: it is next, and replaced when its grace is over, at %s.", v.clock(v.graceEnds(i, f)))
		blocked = ""
	default:
		next = fmt.Sprintf(" Heal %s; the rollout goes on by itself.", v.pod(i))
	}
	return blocked + next
}

// replacedLater says when a dead pod is replaced that was not next, or that nothing protects.
func (v *view) replacedLater(i int, f finding, blocked string) string {
	if v.hardStalled(i) {
		return blocked + " Wait: it is replaced in its turn."
	}
	return fmt.Sprintf(" Wait: it is replaced when its grace is over, at %s.", v.clock(v.graceEnds(i, f)))
}

// graceEnds is when a finding that does not heal by waiting is past its grace.
func (v *view) graceEnds(i int, f finding) time.Time { return v.stalledSince(i, f).Add(v.o.StallGrace) }

// blockedAt is the sentence that says until when it is waited.
func (v *view) blockedAt(until time.Time) string {
	if until.Before(v.o.Now) {
		return ""
	}
	return fmt.Sprintf(" Blocked at %s.", v.clock(until))
}

// forceCommand goes past unhealthy pods, down to the last.
func (v *view) forceCommand() string {
	return fmt.Sprintf(`kubectl patch rp %s -n %s --type=merge -p '{"spec":{"force":{"revision":"%s","partition":0,"reason":"WHY"}}}'`,
		v.o.Name, v.o.Namespace, v.o.UpdateRevision)
}

// whatFits ends a message with the advice, or with a shorter one where names are so long that a command would be cut.
func whatFits(what, advice, shorter string) string {
	if length(what)+length(advice) > maxMessage {
		advice = shorter
	}
	return fit(what, "", advice)
}

// stallStart is when the stall that is about to be told began.
func (v *view) stallStart(why Reason, i int, f finding) time.Time {
	since := v.stalledSince(i, f)
	if c := v.s.Clock; v.named(i) && c.Reason.class() == why.class() && c.Since.Before(since) {
		since = c.Since
	}
	if why.class().hard() {
		return since
	}
	if late := v.lateStart(i); !late.IsZero() && late.Before(since) {
		since = late
	}
	if why == ReasonPodTerminated {
		return since // each in its place ends too
	}
	return later(since, v.o.Pods[i].Created) // the clocks are the ordinal's, and older than a pod that came back
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
	next := ""
	if n := v.nextPod(); n >= 0 {
		next = fmt.Sprintf(" %s is next.", v.pod(n))
	}
	return fmt.Sprintf("Paused%s, as seen at %s.%s", by(v.o.PausedBy), v.clock(v.o.Now), next)
}
