package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"pawl.dev/pawl/statemachine"
)

// warnOfForce says that an order that was just given has no effect, and why: a revision that was copied wrongly would
// otherwise be met with silence.
func (r *Reconciler) warnOfForce(s sight, o statemachine.Observation) {
	if s.progress == nil || s.progress.Spec.Force == nil {
		return
	}
	if seen := s.progress.Status.ObservedGeneration; seen != nil && *seen == s.progress.Generation {
		return
	}
	var why string
	switch force := s.progress.Spec.Force; {
	case o.Mode == statemachine.ModeObserve:
		why = "Pawl only observes this StatefulSet"
	case o.Generation == o.ObservedGeneration && force.Revision != o.UpdateRevision:
		why = fmt.Sprintf("it is for revision %s, and the update revision is %s", force.Revision, o.UpdateRevision)
	default:
		return
	}
	r.Recorder.Eventf(s.progress, nil, corev1.EventTypeWarning, "ForceHasNoEffect", "Force",
		"spec.force has no effect: %s. Correct it or remove it.", why)
}
