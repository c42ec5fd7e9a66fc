package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Transition is one line of the log: what happened, and where that left the rollout. Together the transitions say
// everything that status says. A field that does not apply is unset; one that is set is part of the digest.
type Transition struct {
	// sequence numbers the transitions of this name from 1 without gaps.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Sequence int64 `json:"sequence,omitempty"`
	// time is when Pawl decided it, before it acted.
	// +required
	Time metav1.MicroTime `json:"time,omitzero"`
	// type is the event in the past tense, for example StepStarted; listed in docs/events.md.
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]{0,63}$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Type string `json:"type,omitempty"`
	// state is the state after it.
	// +required
	State State `json:"state,omitempty"`
	// reason is why, in one CamelCase word; unset if the type says it all.
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]{0,63}$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// pod is the name of the pod it is about.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Pod string `json:"pod,omitempty"`
	// podUID is the metadata.uid of that pod, where it matters which of several pods of one name it was.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// ordinals are the pods it is about, for example "2" or "0-2,5"; on RolloutStarted those that are at the target already.
	// +kubebuilder:validation:Pattern=`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Ordinals string `json:"ordinals,omitempty"`
	// message is for a person; times in it are absolute.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// partition is spec.updateStrategy.rollingUpdate.partition after it: an index, not an ordinal. 2147483647 is parked, above
	// every pod. Unset if the event does not concern the partition.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`
	// previousPartition is the partition as it was seen before; while it is still that, the write of partition is to come. On
	// PartitionOverridden, which tells of a write of someone else's, it is the partition as it was recorded before.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PreviousPartition *int32 `json:"previousPartition,omitempty"`
	// generation is metadata.generation of the StatefulSet as it was seen.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// revision is the revision that it leads to, for example "db-6d74cb67d5".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Revision string `json:"revision,omitempty"`
	// replicas is spec.replicas of the StatefulSet, where it is first seen or changes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// start is spec.ordinals.start of the StatefulSet, where it is first seen or changes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Start *int32 `json:"start,omitempty"`
	// templateDigest identifies spec.template of the StatefulSet, where it is first seen or changes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	TemplateDigest string `json:"templateDigest,omitempty"`
	// statefulSetUID is metadata.uid of the StatefulSet; on Adopted and RolloutStarted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StatefulSetUID string `json:"statefulSetUID,omitempty"`
	// mode is the label pawl.dev/mode of the StatefulSet; on Adopted and RolloutStarted.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// origin is what is known of the pods from before the first completed rollout; on Adopted and RolloutStarted, and unset
	// once a rollout has completed.
	// +optional
	Origin Origin `json:"origin,omitempty"`
	// stableRevision is the newest revision that all pods were updated to and available at; on Adopted and RolloutStarted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// number is the number of the newest rollout; on Adopted and RolloutStarted.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Number int64 `json:"number,omitempty"`
	// fromRevision is the target of the rollout before this one; on RolloutStarted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	FromRevision string `json:"fromRevision,omitempty"`
	// priorOrdinals are the pods that unfinished rollouts before this one had brought past the current revision; on
	// RolloutStarted. Lost before their turn, they come back older than they were.
	// +kubebuilder:validation:Pattern=`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	PriorOrdinals string `json:"priorOrdinals,omitempty"`
	// starts is the how-manieth rollout in short order at one generation of the StatefulSet this is; on RolloutStarted, and
	// unset if there was no other.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Starts int32 `json:"starts,omitempty"`
	// actor is the user behind it, as the API server authenticated them; unset if it was Pawl's own decision or if unknown.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Actor string `json:"actor,omitempty"`
	// cause is the annotation kubernetes.io/change-cause of the StatefulSet on RolloutStarted, and the reason of spec.force on
	// a step that was forced.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Cause string `json:"cause,omitempty"`
	// gates are the answers of the gates that a step was decided on.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Gates []GateResult `json:"gates,omitempty"`
}

// Mode is what Pawl may do with a StatefulSet.
// +kubebuilder:validation:Enum=Enforce;Observe
type Mode string

// Origin is what is known of the pods of a StatefulSet from before its first completed rollout: Created (watched from
// its creation on, no pod was ever Ready), CameUp (a pod was Ready since), FirstSeen (it was there before Pawl) or
// Recreated (it was deleted and created again, so that its pods may be older than it is).
// +kubebuilder:validation:Enum=Created;CameUp;FirstSeen;Recreated
type Origin string

// GateResult is what one gate said when a step was decided.
type GateResult struct {
	// name is the name of the gate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`
	// result is Open, Closed, Error (it could not be evaluated, which stops a step as Closed does) or Bypassed (it was not
	// asked, and the reason of the transition says why).
	// +required
	Result Verdict `json:"result,omitempty"`
	// message is what the gate gave as the reason, or its error.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Message string `json:"message,omitempty"`
}

// Verdict is the answer of a gate.
// +kubebuilder:validation:Enum=Open;Closed;Error;Bypassed
type Verdict string
