package v1alpha1

// Labels and annotations.
const (
	// ModeLabel on a StatefulSet hands it to Pawl: Enforce drives its rollouts, Observe only records them. Without the
	// label, or with another value, Pawl leaves the StatefulSet alone.
	ModeLabel = "pawl.dev/mode"

	// PolicyLabel on a StatefulSet names its RolloutPolicy. Without the label it is [DefaultPolicy].
	PolicyLabel = "pawl.dev/policy"

	// ChangedByAnnotation names the user who last changed spec.template of a StatefulSet or spec of a RolloutProgress,
	// as the API server authenticated them. Pawl's admission policy writes it; what anyone else writes there is put back.
	ChangedByAnnotation = "pawl.dev/changed-by"

	// PausedByAnnotation on a RolloutProgress names the user who paused it, likewise.
	PausedByAnnotation = "pawl.dev/paused-by"

	// ApprovedByAnnotation on a RolloutProgress names the user who set spec.approvedRevision to what it is, likewise.
	ApprovedByAnnotation = "pawl.dev/approved-by"

	// ForcedByAnnotation on a RolloutProgress names the user who ordered spec.force as it is, likewise.
	ForcedByAnnotation = "pawl.dev/forced-by"

	// ChangeCauseAnnotation on a StatefulSet is the reason for a change in words; kubectl knows it by the same name.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
)

// Values of [ModeLabel].
const (
	ModeEnforce Mode = "Enforce"
	ModeObserve Mode = "Observe"
)

// Condition types of a RolloutProgress, in the sense of kstatus. All three are always present, at most one is True.
const (
	// ConditionReady is True in state Done. It says nothing about a pod that falls over afterwards.
	ConditionReady = "Ready"

	// ConditionReconciling is True in the states Waiting and Stepping.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True in state Blocked; reason and message say what to do.
	ConditionStalled = "Stalled"
)

// DefaultPolicy is the RolloutPolicy of a StatefulSet that names none. It need not exist.
const DefaultPolicy = "default"

// Reasons of the condition Ready of a RolloutPolicy.
const (
	ReasonValid             = "Valid"
	ReasonInvalidExpression = "InvalidExpression" // one of its gates does not compile
)

// MaxTransitions is how many transitions a status or a page holds at most.
const MaxTransitions = 100
