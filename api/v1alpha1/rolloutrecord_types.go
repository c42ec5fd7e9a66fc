package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutRecord is a sealed page of the log of one StatefulSet: one rollout, a part of one that took more than 100
// transitions, or what happened between two. Pawl writes it once; nobody can change it. Its name is that of the
// StatefulSet and the sequence of its first transition in ten digits, so that names sort by age.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=rrec,categories=pawl
// +kubebuilder:selectablefield:JSONPath=`.page.statefulSet`
// +kubebuilder:printcolumn:name="STATEFULSET",type=string,JSONPath=`.page.statefulSet`,description="the StatefulSet it is about"
// +kubebuilder:printcolumn:name="NUMBER",type=integer,JSONPath=`.page.rollout.number`,description="number of the rollout; empty between rollouts"
// +kubebuilder:printcolumn:name="FROM",type=string,JSONPath=`.page.rollout.fromRevision`,description="target of the rollout before"
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=`.page.rollout.toRevision`,description="target of this rollout"
// +kubebuilder:printcolumn:name="OUTCOME",type=string,JSONPath=`.page.rollout.outcome`,description="how it ended; empty if it goes on in the next record"
// +kubebuilder:printcolumn:name="STEPS",type=integer,JSONPath=`.page.rollout.steps`,description="pods replaced"
// +kubebuilder:printcolumn:name="SECONDS",type=integer,JSONPath=`.page.durationSeconds`,description="seconds from start to end"
// +kubebuilder:printcolumn:name="BLOCKED",type=integer,JSONPath=`.page.rollout.blockedSeconds`,description="seconds in Blocked"
// +kubebuilder:printcolumn:name="STARTED BY",type=string,JSONPath=`.page.rollout.startedBy`,description="the user who changed the template"
// +kubebuilder:printcolumn:name="STARTED",type=date,JSONPath=`.page.rollout.startedAt`,description="time since the start"
// +kubebuilder:printcolumn:name="CAUSE",type=string,priority=1,JSONPath=`.page.rollout.cause`,description="kubernetes.io/change-cause at the start"
type RolloutRecord struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// page is the sealed content. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a RolloutRecord cannot be changed"
	// +required
	Page Page `json:"page,omitzero"`
}

// RolloutRecordList is a list of RolloutRecord.
//
// +kubebuilder:object:root=true
type RolloutRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RolloutRecord `json:"items"`
}

// Page is a part of the log of one StatefulSet name.
type Page struct {
	// statefulSet is the name of the StatefulSet, which is in the namespace of the record.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	StatefulSet string `json:"statefulSet,omitempty"`
	// statefulSetUID is the metadata.uid of the StatefulSet; it tells those of one name apart.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	StatefulSetUID string `json:"statefulSetUID,omitempty"`
	// rollout is the rollout as it stood at the end of this page; without an outcome it goes on in the next. It is unset on
	// a page that holds what happened between two rollouts.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
	// durationSeconds is the time from startedAt to finishedAt of the rollout, in whole seconds: what is left over is cut
	// off. It is unset if the rollout goes on in the next page.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DurationSeconds *int32 `json:"durationSeconds,omitempty"`
	// previousDigest is the head of the chain before the first transition; unset if that is the first of all.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PreviousDigest string `json:"previousDigest,omitempty"`
	// digest is the head of the chain after the last transition, as 64 hex digits (docs/ledger.md).
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	// +required
	Digest string `json:"digest,omitempty"`
	// transitions is the page itself, oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +required
	Transitions []Transition `json:"transitions,omitempty"`
}
