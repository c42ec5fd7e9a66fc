package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Rollout is one attempt to bring all pods to one revision.
type Rollout struct {
	// number counts the rollouts of this name from 1. A new template is a new number, a revert included.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Number int64 `json:"number,omitempty"`
	// reason is what began it: NewRevision, Rollback (back to the stable revision), BringUp (the first one, which takes no
	// steps), Recreated or Adopted (pods were found on the way).
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]{0,63}$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// fromRevision is the target of the rollout before it (for a rollback: the revision that is being left); unset for the
	// first one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	FromRevision string `json:"fromRevision,omitempty"`
	// toRevision is the update revision that the pods are brought to, for example "db-6d74cb67d5".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ToRevision string `json:"toRevision,omitempty"`
	// startedBy is the user who changed the template, as the API server authenticated them; unset if unknown.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StartedBy string `json:"startedBy,omitempty"`
	// cause is the annotation kubernetes.io/change-cause of the StatefulSet at the start.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Cause string `json:"cause,omitempty"`
	// startedAt is when Pawl first saw the revision.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt,omitzero"`
	// finishedAt is when the outcome was known; unset while the rollout runs.
	// +optional
	FinishedAt metav1.MicroTime `json:"finishedAt,omitzero"`
	// outcome is how it ended: Completed (every pod was updated and available), RolledBack (the template went back to the
	// stable revision before the end), Superseded (another template came before the end) or Abandoned (the StatefulSet was
	// deleted or is no longer managed); unset while the rollout runs.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`
	// steps is the number of pods replaced by completed steps.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Steps *int32 `json:"steps,omitempty"`
	// blockedSeconds is the time spent in Blocked, in whole seconds: what is left over of a spell is cut off. It counts
	// finished spells only: it does not tick.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BlockedSeconds *int32 `json:"blockedSeconds,omitempty"`
}

// Outcome is how a rollout ended.
// +kubebuilder:validation:Enum=Completed;RolledBack;Superseded;Abandoned
type Outcome string

// The outcomes.
const (
	OutcomeCompleted  Outcome = "Completed"  // every pod was updated and available
	OutcomeRolledBack Outcome = "RolledBack" // the template went back to the stable revision before the end
	OutcomeSuperseded Outcome = "Superseded" // another template came before the end
	OutcomeAbandoned  Outcome = "Abandoned"  // the StatefulSet was deleted or is no longer managed
)
