package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"pawl.dev/pawl/api/v1alpha1"
)

// standing is what Pawl has to do with a StatefulSet and the RolloutProgress of its name.
type standing int

const (
	nothing     standing = iota // no business of Pawl's
	driven                      // labelled, or to be handed back
	byHand                      // a RolloutProgress without a StatefulSet that asks for it
	unknownMode                 // a label with a value that means nothing
)

func (s sight) standing() standing {
	mode := ""
	if s.set != nil {
		mode = s.set.Labels[v1alpha1.ModeLabel]
	}
	switch v1alpha1.Mode(mode) {
	case v1alpha1.ModeEnforce, v1alpha1.ModeObserve:
		return driven
	case "":
	default:
		return unknownMode
	}
	switch {
	case s.progress == nil:
		return nothing
	case s.progress.Status.Sequence == 0:
		return byHand
	default:
		return driven // it was managed: its rollout is ended and the StatefulSet handed back
	}
}

// aside does what there is to do for what is not driven.
func (r *Reconciler) aside(ctx context.Context, s sight, t *trace) error {
	switch s.standing() {
	case nothing:
		r.traces.forget(s.key)
	case byHand:
		reason, message := stranded(s)
		next := s.progress.DeepCopy()
		halted(&next.Status, next.Generation, false, reason, message)
		_, err := r.store(ctx, s.progress, next, t)
		return err
	case unknownMode:
		r.warnOfMode(s, t)
		return r.standStill(ctx, s, t)
	case driven:
	}
	return nil
}

// standStill says in the conditions that a word that means nothing stopped the rollout. The StatefulSet stays as it is:
// a typing mistake is no order to let go.
func (r *Reconciler) standStill(ctx context.Context, s sight, t *trace) error {
	if s.progress == nil {
		return nil
	}
	next := s.progress.DeepCopy()
	halted(&next.Status, next.Generation, true, reasonUnknownMode, unknownModeMessage(s))
	_, err := r.store(ctx, s.progress, next, t)
	return err
}

// warnOfMode says once what the label may say.
func (r *Reconciler) warnOfMode(s sight, t *trace) {
	mode := s.set.Labels[v1alpha1.ModeLabel]
	if t.mode == mode {
		return
	}
	t.mode = mode
	r.Recorder.Eventf(s.set, nil, corev1.EventTypeWarning, reasonUnknownMode, "Label", "%s", unknownModeMessage(s))
}

func unknownModeMessage(s sight) string {
	return fmt.Sprintf("The label %s is %q, so Pawl leaves this StatefulSet as it is. Set it to %s or %s, or remove it.",
		v1alpha1.ModeLabel, s.set.Labels[v1alpha1.ModeLabel], v1alpha1.ModeEnforce, v1alpha1.ModeObserve)
}
