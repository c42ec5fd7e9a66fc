package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutProgress says where the rollout of the StatefulSet of the same name and namespace stands, why it stopped and
// how it got there. Pawl creates it for every StatefulSet with the label pawl.dev/mode; spec is yours to steer with,
// status is Pawl's.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rolloutprogresses,shortName=rp,categories=pawl
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`,description="Waiting, Stepping, Blocked or Done"
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.reason`,description="why it is in this state"
// +kubebuilder:printcolumn:name="POD",type=string,JSONPath=`.status.pod`,description="the pod that reason is about"
// +kubebuilder:printcolumn:name="UPDATED",type=string,JSONPath=`.status.progress`,description="pods whose step is complete, of all pods"
// +kubebuilder:printcolumn:name="SINCE",type=date,JSONPath=`.status.since`,description="time since state or reason changed"
// +kubebuilder:printcolumn:name="PARTITION",type=integer,priority=1,JSONPath=`.status.partition`,description="pods at or above this index are released to the new revision"
// +kubebuilder:printcolumn:name="REVISION",type=string,priority=1,JSONPath=`.status.rollout.toRevision`,description="the revision that the pods are brought to"
// +kubebuilder:printcolumn:name="PAUSED",type=boolean,priority=1,JSONPath=`.spec.paused`,description="spec.paused"
// +kubebuilder:printcolumn:name="ROLLOUT",type=integer,priority=1,JSONPath=`.status.rollout.number`,description="number of the current or last rollout"
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.message`,description="what is happening, and what to do"
type RolloutProgress struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; the name is the StatefulSet's name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec steers the rollout; an empty spec means: go on by yourself.
	// +optional
	Spec RolloutProgressSpec `json:"spec,omitzero"`
	// status is where the rollout stands. Pawl alone writes it, and all of it follows from the transitions in it.
	// +optional
	Status RolloutProgressStatus `json:"status,omitzero"`
}

// RolloutProgressList is a list of RolloutProgress.
//
// +kubebuilder:object:root=true
type RolloutProgressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RolloutProgress `json:"items"`
}

// RolloutProgressSpec is how a person steers one rollout.
type RolloutProgressSpec struct {
	// paused stops further steps. A step in flight is finished, and a new template still parks the partition, so that no
	// pod moves by accident while paused. Defaults to false.
	// +optional
	Paused *bool `json:"paused,omitempty"` //nolint:kubeapilinter // as in the spec of an apps/v1 Deployment, which people know
	// approvedRevision is the revision that may go past the canaryPods of the RolloutPolicy, for example "db-6d74cb67d5",
	// as status.rollout.toRevision has it; any other revision still waits. It needs no removal afterwards.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ApprovedRevision string `json:"approvedRevision,omitempty"`
	// force releases pods past a pause and past unhealthy pods, for one revision and down to one partition. It goes into the
	// history with its reason and with who ordered it, and needs the verb force (ClusterRole pawl-force). Remove it
	// afterwards; left behind, it has no effect on any other revision.
	// +optional
	Force *Force `json:"force,omitempty"`
}

// Force is an order that dies with its revision.
type Force struct {
	// revision is the update revision that the order is for, for example "db-6d74cb67d5", as status.rollout.toRevision has
	// it. It has no effect on any other.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Revision string `json:"revision,omitempty"`
	// partition is the lowest partition that the order may reach, in one write: an index, not an ordinal, as in the
	// StatefulSet. Pods below it are not released. 0 releases all.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +required
	Partition *int32 `json:"partition,omitempty"`
	// reason is kept in the history: write it for whoever reads the incident report.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Reason string `json:"reason,omitempty"`
}

// State is where a rollout stands. The set is closed: new situations are new reasons, not new states.
// +kubebuilder:validation:Enum=Waiting;Stepping;Blocked;Done
type State string

// The states.
const (
	StateWaiting  State = "Waiting"  // there are pods left to update, none is being replaced, nothing is proven broken
	StateStepping State = "Stepping" // a pod is being replaced: the partition was lowered for it, or it is being repaired
	StateBlocked  State = "Blocked"  // no progress without help; reason and message say which
	StateDone     State = "Done"     // the last rollout ended; says nothing about a pod that falls over afterwards
)

// RolloutProgressStatus is the fold of the transitions: it can be computed from them again.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sequence) || has(self.sequence) && self.sequence >= oldSelf.sequence",message="sequence never falls: the log is append-only"
// +kubebuilder:validation:XValidation:rule="!has(self.transitions) || self.transitions.size() == 0 || has(self.sequence) && self.transitions[self.transitions.size()-1].sequence == self.sequence",message="the last transition carries the sequence of the status"
// +kubebuilder:validation:XValidation:rule="!has(self.state) || self.state != 'Blocked' || (has(self.reason) && has(self.message))",message="a Blocked rollout names its reason and has a message"
type RolloutProgressStatus struct {
	// conditions are Ready, Reconciling and Stalled in kstatus form; all three are always present, and at most one is True.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of this object's spec that status reflects.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// state is where the rollout stands: Waiting (pods are left to update, none is being replaced), Stepping (a pod is being
	// replaced), Blocked (no progress without help) or Done (the last rollout ended; says nothing about a pod that falls
	// over afterwards).
	// +optional
	State State `json:"state,omitempty"`
	// reason is why the rollout is in this state: one CamelCase word, listed in docs/reasons.md. Where Kubernetes has a
	// word for it, such as ImagePullBackOff, it is that word.
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]{0,63}$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// message tells a person what is happening, to which pod, since when, and what to do. Times in it are absolute.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// pod is the pod that reason is about: the one being replaced, or the one in the way.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Pod string `json:"pod,omitempty"`
	// since is when state or reason last changed.
	// +optional
	Since metav1.MicroTime `json:"since,omitzero"`
	// progress is updatedReplicas/replicas, for reading only, for example "2/3".
	// +kubebuilder:validation:Pattern=`^[0-9]+/[0-9]+$`
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=21
	// +optional
	Progress string `json:"progress,omitempty"`
	// replicas is the number of pods that the StatefulSet wants.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// updatedReplicas is how many pods finished their step to the rollout's revision. It counts completed steps, not live
	// readiness: a pod that falls over later still counts.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UpdatedReplicas *int32 `json:"updatedReplicas,omitempty"`
	// partition is the partition that the newest transition left in spec.updateStrategy.rollingUpdate of the StatefulSet,
	// or replicas if that is lower: pods at or above this index are released to the new revision, and with
	// spec.ordinals.start the index counts from there. Between rollouts it equals replicas, so that no pod is released.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`
	// stableRevision is the newest revision that all pods of this StatefulSet were updated to and available at; unset until
	// there was one. It is the revision to revert to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// rollout is the current rollout or, in state Done, the last one; unset if this StatefulSet has had none yet.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
	// statefulSetUID is the metadata.uid of the StatefulSet that this status speaks of; a re-created one has another.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StatefulSetUID string `json:"statefulSetUID,omitempty"`
	// sequence is the number of the newest transition. It never falls and has no gaps, also across RolloutRecords.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// digest is the head of the chain: the SHA-256 of the head before it and the newest transition, as 64 hex digits.
	// docs/ledger.md says how to compute it.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
	// previousDigest is the head of the chain before the first transition in status; unset if that is the first of all.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PreviousDigest string `json:"previousDigest,omitempty"`
	// transitions is the log of the current or last rollout, oldest first; earlier ones are in RolloutRecords.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Transitions []Transition `json:"transitions,omitempty"`
}
