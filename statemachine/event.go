package statemachine

import "time"

// Parked is the partition that holds back every pod, those of a later scale-up included (I5). It is the largest value
// the StatefulSet API takes.
const Parked int32 = 2147483647

// EventType names something that happened, in the past tense.
type EventType string

// The events. Table (table.go) says in which state each may happen and where it leads.
const (
	Adopted             EventType = "Adopted"             // Pawl began to watch this StatefulSet, or another one of this name
	RolloutStarted      EventType = "RolloutStarted"      // the pods are to be brought to one revision; a new number
	StepStarted         EventType = "StepStarted"         // pods were released to the new revision, or one is repaired
	StepCompleted       EventType = "StepCompleted"       // the pods of the step are at the revision and healthy
	StepAborted         EventType = "StepAborted"         // the step is no longer in effect
	StepSkipped         EventType = "StepSkipped"         // the partition was lowered past pods that are there already
	PodReplaced         EventType = "PodReplaced"         // Pawl deletes a dead pod so that it comes back at the target
	RevisionRestored    EventType = "RevisionRestored"    // status.currentRevision was set back after re-creation
	PartitionParked     EventType = "Parked"              // the partition was raised to protect pods from a new target
	Scaled              EventType = "Scaled"              // spec.replicas or spec.ordinals.start changed
	PartitionOverridden EventType = "PartitionOverridden" // someone else wrote the partition
	PodRegressed        EventType = "PodRegressed"        // a finished pod came back at an older revision
	Held                EventType = "Held"                // why the next step waits, or what the pod in flight is stuck on
	Released            EventType = "Released"            // what held it is gone
	BlockedEvent        EventType = "Blocked"             // no progress without help
	Unblocked           EventType = "Unblocked"           // the cause is gone; no step is open
	StepResumed         EventType = "StepResumed"         // the cause is gone; a step is open
	Settled             EventType = "Settled"             // there is nothing to do after all
	RolloutCompleted    EventType = "RolloutCompleted"    // every pod is at the revision and available
	Abandoned           EventType = "Abandoned"           // the StatefulSet was deleted or is no longer managed
)

// Origin says what is known of the pods from before the first finished rollout.
type Origin string

// The origins; empty once a rollout has completed.
const (
	OriginCreated   Origin = "Created"   // watched since its creation, no pod was ever Ready: nothing to protect
	OriginCameUp    Origin = "CameUp"    // watched since its creation, a pod was Ready once
	OriginFirstSeen Origin = "FirstSeen" // it was there before Pawl
	OriginRecreated Origin = "Recreated" // it was deleted and created again; its pods may be older than it is
)

// Event is one line of the log. It carries what Fold needs, so that no field of State comes from anywhere else.
// A zero field means "does not apply to this event"; pointers tell zero from absent.
type Event struct {
	Type     EventType
	Time     time.Time // when it was decided, before anything was done about it; UTC, whole microseconds
	State    StateName // the state after it
	Reason   Reason    // why; empty when the type says it all
	Pod      string    // the pod it is about
	PodUID   string
	Ordinals Ordinals // the pods it is about, as ordinals; on RolloutStarted and Adopted those at the target and healthy
	Message  string   // for a person; absolute times only, at most 200 characters

	Partition         *int32 // the partition that it leaves, set on every event that changes or re-reads it
	PreviousPartition *int32 // the partition as it was seen; the record is unwritten while it still is that. On PartitionOverridden as it was recorded
	Generation        int64  // metadata.generation of the StatefulSet as it was seen
	Revision          string // the revision it leads to
	Replicas          *int32 // where it is first seen or changes
	Start             *int32 // spec.ordinals.start, where it is first seen or changes
	TemplateDigest    string // of spec.template, where it is first seen or changes

	// On Adopted and RolloutStarted, from which a reader can begin without anything older.
	StatefulSetUID string
	Mode           Mode
	Origin         Origin
	StableRevision string
	Number         int64 // the newest rollout's number so far

	FromRevision string       // on RolloutStarted: the target of the rollout before it
	Prior        Ordinals     // on RolloutStarted: those that earlier, unfinished rollouts had brought past the current revision
	Starts       int32        // on RolloutStarted: the how-manieth in short order with this template; 0 stands for the first
	Actor        string       // the user who changed the template or the spec, as the API server authenticated them
	Cause        string       // the kubernetes.io/change-cause annotation
	Gates        []GateResult // what the policy said: on StepStarted, and on Held and Blocked because of it
}

// anchor reports whether a fold can begin at this type of event.
func (t EventType) anchor() bool { return t == Adopted || t == RolloutStarted }

// Anchor reports whether a fold can begin at this event without anything older.
func (e Event) Anchor() bool { return e.Type.anchor() }
