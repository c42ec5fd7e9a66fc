// Package statemachine decides how a StatefulSet is rolled out: when a pod may be released to the new revision, when
// the rollout has to wait, when it is stuck, and when it is done. It is the only place in Pawl where safety lives.
//
// The package is pure. It knows neither Kubernetes objects nor the clock nor the network: an [Observation] holds the
// plain facts of one moment, the current time among them, and [Decide] turns a [State] and an Observation into a
// [Decision]: the events that happened, at most one [Intent], and the moment to look again. The same State and
// Observation always give the same Decision.
//
// The order in which a caller uses a Decision is a contract, and it is what makes a rollout survive a crash at any
// moment (invariants I6 and I7 of docs/concepts.md):
//
//  1. store the events, guarded by the resourceVersion of what was read;
//  2. only then carry out the intent, guarded by the uid and resourceVersion in the Observation;
//  3. observe again, also when nothing seems to have changed: the events restarted clocks, and only the next Decision
//     has the moment at which these run out.
//
// Intents derive from State and Observation, never from the events just made. So a manager that died between 1 and 2
// finds the event stored and the partition unwritten, decides again, and either arrives at the very same step and
// carries it out without a second event, or records that the step was aborted.
//
// A State is the fold of the events: [Fold] computes it from the log, and every field of it has the event that sets
// it. Which event may happen in which state is one table in looplab/fsm (table.go).
//
// Read rules.go from top to bottom for the decision itself.
package statemachine
