package statemachine

import "time"

// Observation is what was seen of one StatefulSet at one moment: plain facts, gathered by one constructor
// (controllers/observe.go), never changed afterwards.
type Observation struct {
	Now time.Time // UTC, whole microseconds

	Name            string
	Namespace       string
	UID             string
	ResourceVersion string
	Created         time.Time
	Deleting        bool
	Mode            Mode

	Generation         int64
	ObservedGeneration int64
	BehindSince        time.Time // when this process first saw that the status is behind; zero if it is not
	Strategy           string    // spec.updateStrategy.type
	Parallel           bool      // spec.podManagementPolicy
	Partition          int32     // 0 when unset, as the StatefulSet controller reads it
	Replicas           int32
	Start              int32 // spec.ordinals.start
	MinReady           time.Duration
	TemplateDigest     string
	// TemplateRevision is the ControllerRevision that holds spec.template as it is now; empty while there is none, and
	// then no pod can be at it. With the status current it is UpdateRevision.
	TemplateRevision string
	CurrentRevision  string
	UpdateRevision   string
	UpdatedReplicas  int32

	Pods      []Pod // by index: Pods[i] has ordinal Start+i, absent ones included; len is Replicas
	Condemned []Pod // pods of this StatefulSet with ordinals out of range

	Paused     bool
	PausedBy   string // empty when unknown
	Approved   string // the revision that may go past the canary pods
	ApprovedBy string // empty when unknown
	Force      Force
	ChangedBy  string // the user who changed the template; empty when unknown
	Cause      string // the change-cause annotation

	MayRestore bool // whether Pawl may write status.currentRevision

	// PartitionManager is the field manager that wrote the partition, where that is not Pawl; empty when unknown.
	PartitionManager string
	Told             Told // the newest Event of the StatefulSet, if that is a warning
	Blind            Blind

	Policy           Policy
	StallGrace       time.Duration
	ProgressDeadline time.Duration
}

// Force is a person's order to go past gates and unhealthy pods. The zero Force is none.
type Force struct {
	Revision  string // it has no effect on any other
	Partition int32  // the floor: it releases no pod below this index
	Reason    string
	By        string // who ordered it; empty when unknown
}

// Blind is what Pawl may not read. It goes on without, and says so where it would have helped.
type Blind struct{ Nodes, Claims, Events bool }

// Told is the newest Kubernetes Event of an object, as far as it says why the object is as it is. The zero Told is none.
type Told struct {
	Reason  string // FailedCreate, FailedMount, Pulling …
	Message string
	First   time.Time // events are repeated and counted: the first of its kind,
	Last    time.Time // and the last
}

// Claim is a PersistentVolumeClaim that a pod mounts, or will once it is there.
type Claim struct {
	Name  string
	Phase string // Pending, Bound or Lost; empty when there is no claim of this name
}

// Pod is one pod of the StatefulSet, owned by its uid.
type Pod struct {
	Present         bool
	Name            string
	UID             string
	ResourceVersion string
	Ordinal         int32
	Revision        string // label controller-revision-hash

	Created      time.Time
	Terminating  bool
	DeletionTime time.Time // metadata.deletionTimestamp: the request plus the grace period
	Finalizers   []string

	Phase      string // Pending, Running, Succeeded, Failed or Unknown
	Reason     string // status.reason, for example Evicted
	Message    string // status.message
	StartTime  time.Time
	Ready      bool
	ReadySince time.Time // lastTransitionTime of the Ready condition, also when it is False; zero if absent
	// ReadyReason and ReadyMessage are those of the Ready condition.
	ReadyReason  string
	ReadyMessage string

	ScheduledReason  string // of a PodScheduled condition that is False: Unschedulable, SchedulingGated
	ScheduledMessage string
	UnsetGates       []string // readiness gates whose condition is not True

	Node         string
	NodeNotReady bool // the node is not Ready, or does not exist; false when nodes may not be read
	NodeGone     bool // it does not exist
	NodeSince    time.Time

	TakenBy string  // whose pod has the name of this one, which is absent; empty if nobody's
	Claims  []Claim // nil when claims may not be read
	// Told is what Events say of the pod, or of its creation when it is absent. They are read only of pods that are late.
	Told Told

	Unprobed   bool // a main container or a sidecar has no readiness probe: Ready says little
	Containers []Container
}

// Container is one container of a pod, in the order in which the kubelet starts them.
type Container struct {
	Name    string
	Image   string
	Init    bool
	Sidecar bool // an init container with restartPolicy Always
	Ready   bool
	Started bool

	Restarts       int32
	Waiting        string // state.waiting.reason
	WaitingMessage string
	RunningSince   time.Time // state.running.startedAt; zero when it is not running
	Terminated     *Exit     // state.terminated
	Last           *Exit     // lastState.terminated
}

// Exit is how a container ended.
type Exit struct {
	Code       int32
	Reason     string
	Message    string
	StartedAt  time.Time
	FinishedAt time.Time
}
