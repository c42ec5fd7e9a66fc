package statemachine

// Reason is why a rollout is in its state, in one CamelCase word. Where Kubernetes has a token for it, it is that
// token. The set is in reasons (below) and in docs/reasons.md, which is generated from it.
type Reason string

// Reasons of progress.
const (
	ReasonCreated      Reason = "Created"
	ReasonFirstSeen    Reason = "FirstSeen"
	ReasonRecreated    Reason = "Recreated"
	ReasonModeChanged  Reason = "ModeChanged"
	ReasonLogRestarted Reason = "LogRestarted"

	ReasonNewRevision Reason = "NewRevision"
	ReasonRollback    Reason = "Rollback"
	ReasonAdopted     Reason = "Adopted"
	ReasonBringUp     Reason = "BringUp"

	ReasonStarting         Reason = "Starting"
	ReasonPodDead          Reason = "PodDead"
	ReasonOnlyUnhealthyPod Reason = "OnlyUnhealthyPod"
	ReasonNothingToProtect Reason = "NothingToProtect"
	ReasonForced           Reason = "Forced"
	ReasonRepair           Reason = "Repair"
	ReasonExternal         Reason = "External"

	ReasonAlreadyUpdated Reason = "AlreadyUpdated"
	ReasonScaled         Reason = "Scaled"
	ReasonNotInEffect    Reason = "NotInEffect"
	ReasonRecovered      Reason = "Recovered"
	ReasonFirstReady     Reason = "FirstReady"
	ReasonCompleted      Reason = "Completed"
	ReasonRolledBack     Reason = "RolledBack"
	ReasonOutsideGates   Reason = "OutsideGates"
	ReasonUnmanaged      Reason = "Unmanaged"
	ReasonDeleted        Reason = "Deleted"
)

// Reasons of waiting that are no stall.
const (
	ReasonPaused           Reason = "Paused"
	ReasonObserving        Reason = "Observing"
	ReasonAwaitingApproval Reason = "AwaitingApproval"
	ReasonBaking           Reason = "Baking"
	ReasonConcurrencyLimit Reason = "ConcurrencyLimit"
)

// Reasons of a stall. The first of each class is the one that stands for it.
const (
	ReasonInvalidImageName    Reason = "InvalidImageName"
	ReasonErrImageNeverPull   Reason = "ErrImageNeverPull"
	ReasonUnsupportedStrategy Reason = "UnsupportedStrategy"
	ReasonPVCLost             Reason = "PVCLost"

	ReasonErrImagePull          Reason = "ErrImagePull"
	ReasonImagePullBackOff      Reason = "ImagePullBackOff"
	ReasonImageInspectError     Reason = "ImageInspectError"
	ReasonRegistryUnavailable   Reason = "RegistryUnavailable"
	ReasonSignatureValidation   Reason = "SignatureValidationFailed"
	ReasonCreateContainerConfig Reason = "CreateContainerConfigError"
	ReasonCreateContainer       Reason = "CreateContainerError"
	ReasonCrashLoopBackOff      Reason = "CrashLoopBackOff"
	ReasonRestartLoop           Reason = "RestartLoop"
	ReasonOOMKilled             Reason = "OOMKilled"
	ReasonRunContainerError     Reason = "RunContainerError"
	ReasonStartError            Reason = "StartError"
	ReasonPostStartHookError    Reason = "PostStartHookError"
	ReasonContainerTerminated   Reason = "ContainerTerminated"
	ReasonEvicted               Reason = "Evicted"
	ReasonQuotaExceeded         Reason = "QuotaExceeded"
	ReasonAdmissionRejected     Reason = "AdmissionRejected"

	ReasonUnschedulable       Reason = "Unschedulable"
	ReasonNotScheduled        Reason = "NotScheduled"
	ReasonSchedulingGated     Reason = "SchedulingGated"
	ReasonVolumeNotReady      Reason = "VolumeNotReady"
	ReasonPVCPending          Reason = "PVCPending"
	ReasonPVCMissing          Reason = "PVCMissing"
	ReasonNotReady            Reason = "NotReady"
	ReasonReadinessGate       Reason = "ReadinessGate"
	ReasonInitNotFinished     Reason = "InitNotFinished"
	ReasonStuckTerminating    Reason = "StuckTerminating"
	ReasonNodeNotReady        Reason = "NodeNotReady"
	ReasonNotPromoted         Reason = "NotPromoted"
	ReasonStatusStale         Reason = "StatusStale"
	ReasonPartitionNotWritten Reason = "PartitionNotWritten"
	ReasonPartitionContested  Reason = "PartitionContested"
	ReasonRevisionUnstable    Reason = "RevisionUnstable"
	ReasonSupersededPodStuck  Reason = "SupersededPodStuck"
	ReasonTotalOutage         Reason = "TotalOutage"
	ReasonPodMissing          Reason = "PodMissing"
	ReasonNameTaken           Reason = "NameTaken"
	ReasonPodTerminated       Reason = "PodTerminated"
	ReasonPolicyNotFound      Reason = "PolicyNotFound"
	ReasonGateClosed          Reason = "GateClosed"
	ReasonGateError           Reason = "GateError"
	ReasonDisruptionBudget    Reason = "DisruptionBudget"
	ReasonUnknown             Reason = "Unknown"
)

// class says which reasons share one clock and how long a pod may show them.
type class int8

const (
	classNone     class = iota // no stall
	classTerminal              // blocked at once
	classPull                  // hard: blocked after the grace; the pull reasons alternate for ever
	classCrash                 // hard; the reasons of one crash loop alternate too
	classConfig                // hard
	classEnded                 // hard: the pod ended and nobody replaces it
	classRefused               // hard: the pod may not be created
	classSoft                  // blocked after the progress deadline
)

// classNames are the words for the classes in metrics.
var classNames = [...]string{
	classNone: "", classTerminal: "terminal", classPull: "pull", classCrash: "crash", classConfig: "config", classEnded: "ended",
	classRefused: "refused", classSoft: "soft",
}

// Class is the kind of stall that the reason stands for: terminal, pull, crash, config, ended, refused or soft; empty
// for a reason that is no stall, or that nobody knows. All but soft rarely heal by themselves.
func (r Reason) Class() string { return classNames[r.class()] }

// gate reports whether the reason is an answer of the policy: the reasons of which share one clock, whichever gate it is.
func (r Reason) gate() bool {
	return r == ReasonGateClosed || r == ReasonGateError || r == ReasonDisruptionBudget
}

func (c class) hard() bool { return c != classNone && c != classSoft }
