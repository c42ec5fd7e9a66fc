package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/statemachine"
)

// gone is the observation of a StatefulSet that is no longer there: as it was last recorded, being deleted, without a
// pod. Deleted while Pawl was away, it is never seen with a deletionTimestamp, and its rollout has to end all the same.
func gone(key types.NamespacedName, state statemachine.State, now time.Time) statemachine.Observation {
	o := statemachine.Observation{
		Now: instant(now), Name: key.Name, Namespace: key.Namespace, UID: state.UID, Deleting: true, Mode: state.Mode,
		Generation: state.Generation, ObservedGeneration: state.Generation, Strategy: "RollingUpdate",
		Partition: state.Partition, Replicas: state.Replicas, Start: state.Start, TemplateDigest: state.TemplateDigest,
		CurrentRevision: state.Revision, UpdateRevision: state.Revision, TemplateRevision: state.Revision,
	}
	o.Pods = make([]statemachine.Pod, state.Replicas)
	for i := range o.Pods {
		o.Pods[i].Ordinal = state.Start + int32(i)
	}
	return o
}
