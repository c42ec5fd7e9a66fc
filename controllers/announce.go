package controllers

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// announce repeats recorded events where people look for them: as Kubernetes Events, as log lines and in metrics. It comes after
// the record, so it never tells of something that did not happen; after a crash it may stay silent. Each line carries
// the head of the chain after its transition: kept outside the cluster, it vouches for all before it.
func (r *Reconciler) announce(
	ctx context.Context, o statemachine.Observation, before, after ledger.Log, events []statemachine.Event,
) {
	count(before.State(), events)
	logger, regarding := log.FromContext(ctx), reference(o)
	revision, digest := before.State().Rollout.ToRevision, before.Digest()
	stored := after.Status().Transitions
	stored = stored[max(0, len(stored)-len(events)):]
	for i, e := range events {
		if e.Type == statemachine.RolloutStarted {
			revision = e.Revision
		}
		for _, n := range noticesOf(e, o.Replicas, revision) {
			r.publish(regarding, n)
		}
		digest = ledger.Chain(digest, stored[i])
		fields := []any{
			logSequence, stored[i].Sequence, logType, e.Type, logState, e.State, logReason, e.Reason,
			logPod, e.Pod, logRevision, cmp.Or(e.Revision, revision), logMessage, e.Message, logDigest, digest,
		}
		if e.Partition != nil {
			fields = append(fields, logPartition, *e.Partition)
		}
		logger.Info("recorded", fields...)
	}
}

// announcePartition tells of a partition that was written, in the words of the transition that records it.
func (r *Reconciler) announcePartition(o statemachine.Observation, i statemachine.Intent, log ledger.Log) {
	if i.Kind != statemachine.SetPartition || i.Partition == o.Partition {
		return
	}
	for _, t := range slices.Backward(log.Status().Transitions) {
		if t.Partition == nil {
			continue
		}
		if n, visible := partitionNotice(t, o.Partition, o.Replicas, log.State().Rollout.ToRevision); visible {
			r.publish(reference(o), n)
		}
		return
	}
}

// announceRefusal tells on the StatefulSet what keeps Pawl from going on: a rollout that stands still for want of a
// permission must not be understood from the manager's log only.
func (r *Reconciler) announceRefusal(set *appsv1.StatefulSet, kind, remedy string, err error) {
	if set == nil || kind == "Unreachable" {
		return
	}
	r.publish(&corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name, UID: set.UID,
	}, notice{kind: corev1.EventTypeWarning, reason: kind, action: "CannotGoOn", note: "Cannot go on, will try again: " + err.Error() + ". Remedy: " + remedy})
}
