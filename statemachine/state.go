package statemachine

import "time"

// StateName is where a rollout stands. The set is closed: a new situation is a new reason.
type StateName string

// The states. New is the state of a StatefulSet that Pawl has never seen; it is never stored.
const (
	New      StateName = "New"
	Waiting  StateName = "Waiting"  // pods are left to update, none is being replaced
	Stepping StateName = "Stepping" // a pod is being replaced
	Blocked  StateName = "Blocked"  // no progress without help
	Done     StateName = "Done"     // the last rollout ended; says nothing about a pod that falls over later
)

// Mode is what Pawl may do with a StatefulSet, from the label pawl.dev/mode.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "Enforce" // drive it
	ModeObserve Mode = "Observe" // record and report only
	ModeOff     Mode = ""        // not managed: no label, or one that says neither
)

// Outcome is how a rollout ended; empty while it runs.
type Outcome string

// The outcomes.
const (
	OutcomeCompleted  Outcome = "Completed"
	OutcomeRolledBack Outcome = "RolledBack"
	OutcomeSuperseded Outcome = "Superseded"
	OutcomeAbandoned  Outcome = "Abandoned"
)

// State is the fold of the events. It is comparable: two states are equal iff == says so.
type State struct {
	Name StateName

	UID            string // of the StatefulSet that this state speaks of
	Mode           Mode
	Origin         Origin
	StableRevision string // the newest revision that all pods were updated to; empty until one was
	Revision       string // the target of the open or last rollout; on Adopted the revision found, if all pods had it
	TemplateDigest string // of the newest template that was parked for
	Generation     int64  // the newest generation in a record
	Replicas       int32
	Start          int32

	Partition         int32 // as the newest record leaves it
	PreviousPartition int32 // as it was when that record was made
	PartitionAt       int64 // the generation at which that record was made

	Rollout  Rollout
	Step     Step
	Finished Ordinals // ordinals that finished in this rollout
	Prior    Ordinals // ordinals that unfinished rollouts before it had brought past the current revision
	Replaced Ordinals // ordinals that Pawl replaced in this rollout: once per ordinal and target
	Replace  Replacement
	Hold     Hold
	Clock    Clock
	Block    Block

	// What people see.
	Reason  Reason
	Pod     string
	Message string
	Since   time.Time // when Name or Reason last changed

	LastEvent     time.Time
	LastCompleted time.Time // when an ordinal last completed in this rollout: the only progress there is

	Overrides  [3]time.Time // the newest foreign writes of the partition in this rollout, newest first
	Starts     int32        // rollouts started with one template, each within unstableWindow of the one before
	Restores   int32        // tries to set status.currentRevision back, in this rollout
	RestoredAt time.Time    // when the newest was recorded
}

// Rollout is one attempt to bring all pods to one revision.
type Rollout struct {
	Number         int64
	Reason         Reason // NewRevision, Rollback, Recreated, Adopted or BringUp
	FromRevision   string
	ToRevision     string
	StartedBy      string
	Cause          string
	StartedAt      time.Time
	FinishedAt     time.Time
	Outcome        Outcome
	Steps          int32 // pods replaced
	BlockedSeconds int32 // time in Blocked, finished spells only
}

// Open reports whether a rollout runs.
func (r Rollout) Open() bool { return r.Number > 0 && r.Outcome == "" && !r.StartedAt.IsZero() }

// Step is the open step; the zero Step means that none is open.
type Step struct {
	Ordinals  Ordinals
	Partition int32 // the partition that puts it into effect
	Reason    Reason
	StartedAt time.Time
}

// Open reports whether pods are being replaced.
func (s Step) Open() bool { return s.Ordinals != "" }

// Hold is why the next step waits, or what the pod in flight is stuck on.
type Hold struct {
	Reason  Reason
	Ordinal int32     // noOrdinal if it is about no pod
	Gate    string    // the gate it is about, if it is about one
	Changed time.Time // when the reason last changed
	Since   time.Time // when the first of the reasons that are answers of the policy came, without another in between
}

// Clock is the clock of the pod that Held or Blocked last named. It belongs to the ordinal: it goes on through other
// reasons, restarts and new uids, until another pod is named, a step starts or ends, or what held it is gone.
type Clock struct {
	Ordinal int32
	Reason  Reason    // stands for its class
	Named   time.Time // when the pod was first named, whatever the reason: starts the progress deadline
	Since   time.Time // when it was first named with a reason of this class: starts the grace
	Any     time.Time // when a pod was first named since the newest progress, this one or another
}

// Block is why nothing goes on.
type Block struct {
	Reason  Reason
	Ordinal int32     // noOrdinal if it is about no pod
	Gate    string    // the gate it is about, if it is about one
	Since   time.Time // when the state became Blocked
	Changed time.Time // when the reason last changed
}

// Replacement is the newest PodReplaced of this rollout.
type Replacement struct {
	Ordinal int32
	UID     string
	At      time.Time // when it was recorded
}

const noOrdinal int32 = -1
