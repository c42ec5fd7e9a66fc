package statemachine

import "time"

// IntentKind is what to do with the StatefulSet or its pods.
type IntentKind string

// The intents.
const (
	NoIntent        IntentKind = ""
	SetPartition    IntentKind = "SetPartition"    // write spec.updateStrategy.rollingUpdate.partition
	ReplacePod      IntentKind = "ReplacePod"      // delete this pod, with its uid and resourceVersion as preconditions
	RestoreRevision IntentKind = "RestoreRevision" // write status.currentRevision
)

// Intent is at most one API write. The writer guards it with the uid and resourceVersion that were observed (I8).
type Intent struct {
	Kind      IntentKind
	Partition int32
	Pod       Pod
	Revision  string
}

// Decision is the answer to one Observation.
type Decision struct {
	State  State   // after Events
	Events []Event // in order; to be stored before anything is done
	Intent Intent
	WakeAt time.Time // look again then, even if nothing changes; zero: no need
	Rule   string    // the rule that decided, for logs and tests; empty if there was nothing to decide
	Bug    error     // a rule asked for an event that the table forbids: nothing may be stored or done
}
