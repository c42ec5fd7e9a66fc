// Package controllers connects the decision to a cluster, in one direction:
//
//	observe → decide → record → act
//
// observe.go and pods.go turn cached objects into one statemachine.Observation; gather.go does the reading for them.
// statemachine.Decide says what happened and what to do. record.go stores the events in the status of the
// RolloutProgress, in one guarded write. Only then act.go carries out the one intent, guarded as well. The write comes
// back as a watch event, and everything starts anew.
//
// No safety lives here, but three promises that the decision rests on do:
//
//   - I6: what is not recorded is not done. Act is reached only past a successful record.
//   - I8: every write names the uid and resourceVersion that the decision saw, and after its own write the reconciler
//     waits until its cache shows it (fresh.go).
//   - I9: where nothing changed, nothing is written, and nothing is polled: timers are the deadlines that Decide names.
//
// Kubernetes Events and log lines are made from recorded events, after the record: they may repeat, they never lie.
package controllers

//go:generate go tool -modfile=../config/tools/go.mod controller-gen rbac:roleName=pawl paths=./... paths=../cmd/pawl/... output:rbac:dir=../config/rbac
