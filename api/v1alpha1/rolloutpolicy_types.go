package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutPolicy says how rollouts may proceed. A StatefulSet names its policy in the label pawl.dev/policy; without the
// label it is the one called "default", and without that object the defaults of the fields hold.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rolloutpolicies,scope=Cluster,shortName=rpol,categories=pawl
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="whether the gates can be evaluated"
// +kubebuilder:printcolumn:name="GATES",type=string,JSONPath=`.spec.gates[*].name`,description="questions that must be answered with true before a step"
// +kubebuilder:printcolumn:name="CANARY",type=integer,JSONPath=`.spec.canaryPods`,description="pods to update before an approval is needed"
// +kubebuilder:printcolumn:name="BAKE",type=integer,JSONPath=`.spec.bakeSeconds`,description="seconds between a pod being available and the next step"
// +kubebuilder:printcolumn:name="CONCURRENT",type=integer,JSONPath=`.spec.maxConcurrentSteps`,description="StatefulSets of this policy that may have a pod being replaced at one time"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the policy.
	// +optional
	Spec RolloutPolicySpec `json:"spec,omitzero"`
	// status says whether the policy can be used.
	// +optional
	Status RolloutPolicyStatus `json:"status,omitzero"`
}

// RolloutPolicyList is a list of RolloutPolicy.
//
// +kubebuilder:object:root=true
type RolloutPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RolloutPolicy `json:"items"`
}

// RolloutPolicySpec has a default for every field: an empty policy is a good one.
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || !has(self.stallGraceSeconds) || self.progressDeadlineSeconds > self.stallGraceSeconds",message="progressDeadlineSeconds must be more than stallGraceSeconds"
type RolloutPolicySpec struct {
	// gates must all be open before a step.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Gates []Gate `json:"gates,omitempty"`
	// canaryPods is the number of pods to update before the rollout waits for spec.approvedRevision of the RolloutProgress.
	// A rollback does not wait. Defaults to 0: no approval is needed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	CanaryPods *int32 `json:"canaryPods,omitempty"`
	// bakeSeconds is how long every updated pod must have been available before the next step. A rollback does not wait.
	// Defaults to 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	BakeSeconds *int32 `json:"bakeSeconds,omitempty"`
	// progressDeadlineSeconds is how long one step, or the wait before it, may take before the rollout is Blocked; only a
	// completed step starts it anew. Waiting for a person (paused, approval), for the bake time or for other StatefulSets
	// does not count. Defaults to 600, or to what the manager's flag --progress-deadline says.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`
	// stallGraceSeconds is how long a failure that rarely heals by itself (ImagePullBackOff, CrashLoopBackOff, …) may last
	// before the rollout is Blocked. The progress deadline comes first where it is not longer. Defaults to 30, or to what the
	// manager's flag --stall-grace says.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	StallGraceSeconds *int32 `json:"stallGraceSeconds,omitempty"`
	// maxConcurrentSteps is how many StatefulSets of this policy may have a pod being replaced at the same time; those whose
	// rollout began first go first. Replacing a dead pod takes no part in it, and a rollback does not wait. Defaults to 0:
	// no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxConcurrentSteps *int32 `json:"maxConcurrentSteps,omitempty"`
	// disruptionBudgets says whether a PodDisruptionBudget that allows no disruption stops a step: Respect or Ignore. The
	// StatefulSet controller itself never asks one. Defaults to Respect.
	// +optional
	DisruptionBudgets DisruptionBudgets `json:"disruptionBudgets,omitempty"`
	// retentionDays is how long the RolloutRecords of a StatefulSet are kept. For a StatefulSet that is gone the policy
	// "default" holds. Defaults to 90, or to what the manager's flag --retention-days says.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	// +optional
	RetentionDays int32 `json:"retentionDays,omitempty"`
}

// DisruptionBudgets is whether PodDisruptionBudgets count.
// +kubebuilder:validation:Enum=Respect;Ignore
type DisruptionBudgets string

// The values of [DisruptionBudgets].
const (
	RespectBudgets DisruptionBudgets = "Respect"
	IgnoreBudgets  DisruptionBudgets = "Ignore"
)

// Gate is a question that must be answered with true before a step.
type Gate struct {
	// name is shown in status, history and metrics, for example "mysql-healthy".
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`
	// expression is CEL and yields a bool: true opens the gate. Variables: owner (the controller of the StatefulSet, or
	// null), statefulSet, pods (in order of their ordinals). An expression that fails stops the step (GateError).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	Expression string `json:"expression,omitempty"`
	// messageExpression is CEL over the same variables and yields the string to show while the gate is closed, for example
	// the value that it looked at.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
	// bypass says when the gate is not asked: Never, or WhenPodDown, when the next pod is dead or the only unhealthy one, so
	// that replacing it costs nothing; that is how a revert gets past a gate that is closed because of the very pod that it
	// replaces. Defaults to Never.
	// +optional
	Bypass Bypass `json:"bypass,omitempty"`
}

// Bypass is when a gate is not asked.
// +kubebuilder:validation:Enum=Never;WhenPodDown
type Bypass string

// The values of [Bypass].
const (
	BypassNever       Bypass = "Never"
	BypassWhenPodDown Bypass = "WhenPodDown"
)

// RolloutPolicyStatus says whether the policy can be used.
type RolloutPolicyStatus struct {
	// conditions has Ready; False with the reason InvalidExpression stops all steps under this policy.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of spec that status reflects.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}
