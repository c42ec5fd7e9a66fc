// Package v1alpha1 holds the objects that Pawl shows to people: a RolloutProgress says where the rollout of one
// StatefulSet stands, why it stopped and how it got there; a RolloutRecord is a sealed page of that history.
//
// The interface in the other direction is small: the label [ModeLabel] on a StatefulSet hands it to Pawl, and
// spec.paused of its RolloutProgress holds it.
//
// Everything in status can be computed again from status.transitions (docs/ledger.md), except the conditions and
// observedGeneration, which say it once more in the words of other tools.
//
// The package needs nothing but apimachinery, so that it can be vendored anywhere.
//
// +kubebuilder:object:generate=true
// +groupName=pawl.dev
package v1alpha1
