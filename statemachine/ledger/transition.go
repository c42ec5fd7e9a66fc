package ledger

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// transitionOf is the event as it is stored. It has no sequence yet.
func transitionOf(e statemachine.Event) v1alpha1.Transition {
	return v1alpha1.Transition{
		Time:              metav1.NewMicroTime(stored(e.Time)),
		Type:              clean(string(e.Type), maxToken),
		State:             v1alpha1.State(e.State),
		Reason:            clean(string(e.Reason), maxToken),
		Pod:               clean(e.Pod, maxName),
		PodUID:            clean(e.PodUID, maxToken),
		Ordinals:          string(e.Ordinals),
		Message:           clean(e.Message, maxMessage),
		Partition:         copied(e.Partition),
		PreviousPartition: copied(e.PreviousPartition),
		Generation:        e.Generation,
		Revision:          clean(e.Revision, maxName),
		Replicas:          copied(e.Replicas),
		Start:             copied(e.Start),
		TemplateDigest:    clean(e.TemplateDigest, maxDigest),
		StatefulSetUID:    clean(e.StatefulSetUID, maxToken),
		Mode:              v1alpha1.Mode(e.Mode),
		Origin:            v1alpha1.Origin(e.Origin),
		StableRevision:    clean(e.StableRevision, maxName),
		Number:            e.Number,
		FromRevision:      clean(e.FromRevision, maxName),
		PriorOrdinals:     string(e.Prior),
		Starts:            e.Starts,
		Actor:             clean(e.Actor, maxName),
		Cause:             clean(e.Cause, maxCause),
		Gates:             mapped(e.Gates, gateOf),
	}
}

// eventOf is the transition as the fold takes it.
func eventOf(t v1alpha1.Transition) statemachine.Event {
	return statemachine.Event{
		Type:              statemachine.EventType(t.Type),
		Time:              stored(t.Time.Time),
		State:             statemachine.StateName(t.State),
		Reason:            statemachine.Reason(t.Reason),
		Pod:               t.Pod,
		PodUID:            t.PodUID,
		Ordinals:          statemachine.Ordinals(t.Ordinals),
		Message:           t.Message,
		Partition:         copied(t.Partition),
		PreviousPartition: copied(t.PreviousPartition),
		Generation:        t.Generation,
		Revision:          t.Revision,
		Replicas:          copied(t.Replicas),
		Start:             copied(t.Start),
		TemplateDigest:    t.TemplateDigest,
		StatefulSetUID:    t.StatefulSetUID,
		Mode:              statemachine.Mode(t.Mode),
		Origin:            statemachine.Origin(t.Origin),
		StableRevision:    t.StableRevision,
		Number:            t.Number,
		FromRevision:      t.FromRevision,
		Prior:             statemachine.Ordinals(t.PriorOrdinals),
		Starts:            t.Starts,
		Actor:             t.Actor,
		Cause:             t.Cause,
		Gates:             mapped(t.Gates, resultOf),
	}
}

func gateOf(g statemachine.GateResult) v1alpha1.GateResult {
	return v1alpha1.GateResult{
		Name: clean(g.Name, maxGateName), Result: v1alpha1.Verdict(g.Result), Message: clean(g.Message, maxGateMessage),
	}
}

func resultOf(g v1alpha1.GateResult) statemachine.GateResult {
	return statemachine.GateResult{Name: g.Name, Result: statemachine.Verdict(g.Result), Message: g.Message}
}

// stored is the time as the API keeps it, in the one form in which equal times are ==.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// copied keeps a value that is handed out from being changed through a pointer.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

func mapped[A, B any](from []A, f func(A) B) []B {
	if len(from) == 0 {
		return nil
	}
	to := make([]B, 0, len(from))
	for _, a := range from {
		to = append(to, f(a))
	}
	return to
}
