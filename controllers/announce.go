package controllers

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// announce repeats recorded events where people look for them: as Kubernetes Events and as log lines. It comes after
// the record, so it never tells of something that did not happen; after a crash it may stay silent.
func (r *Reconciler) announce(
	ctx context.Context, o statemachine.Observation, before ledger.Log, events []statemachine.Event, digest string,
) {
	logger, regarding := log.FromContext(ctx), reference(o)
	revision, partition := before.State().Rollout.ToRevision, before.State().Partition
	for i, e := range events {
		if e.Type == statemachine.RolloutStarted {
			revision = e.Revision
		}
		for _, n := range noticesOf(e, partition, o.Replicas, revision) {
			r.publish(regarding, n)
		}
		fields := []any{
			logSequence, before.Sequence() + 1 + int64(i), logType, e.Type, logState, e.State, logReason, e.Reason,
			logPod, e.Pod, logRevision, cmp.Or(e.Revision, revision), logMessage, e.Message,
		}
		if e.Partition != nil {
			partition = *e.Partition
			fields = append(fields, logPartition, partition)
		}
		if i == len(events)-1 {
			fields = append(fields, logDigest, digest)
		}
		logger.Info("recorded", fields...)
	}
}
