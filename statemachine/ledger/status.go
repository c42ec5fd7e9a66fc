package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Status is what to store: the log and all that follows from it. Conditions and observedGeneration are left as they
// were when it was loaded.
func (l Log) Status() v1alpha1.RolloutProgressStatus {
	status := *l.outside.DeepCopy()
	state := l.State()
	if state.Name == statemachine.New {
		return status
	}
	show(&status, state)
	status.Sequence, status.Digest = l.end().sequence, l.end().digest
	status.PreviousDigest = l.base.digest
	for _, e := range l.entries {
		status.Transitions = append(status.Transitions, *e.transition.DeepCopy())
	}
	return status
}

// show sets what follows from the state.
func show(status *v1alpha1.RolloutProgressStatus, s statemachine.State) {
	updated := updatedReplicas(s)
	status.State = v1alpha1.State(s.Name)
	status.Reason = string(s.Reason)
	status.Message = s.Message
	status.Pod = s.Pod
	status.Since = metav1.NewMicroTime(s.Since)
	status.Progress = fmt.Sprintf("%d/%d", updated, s.Replicas)
	status.Replicas = new(s.Replicas)
	status.UpdatedReplicas = new(updated)
	status.Partition = new(min(s.Partition, s.Replicas))
	status.StableRevision = s.StableRevision
	status.StatefulSetUID = s.UID
	status.Rollout = rolloutOf(s.Rollout)
	if s.Name == statemachine.Blocked { // the API refuses a Blocked without words, and a refused record blocks everything
		if status.Reason == "" {
			status.Reason = string(statemachine.ReasonUnknown)
		}
		if status.Message == "" {
			status.Message = "Blocked: " + status.Reason
		}
	}
}

// updatedReplicas counts the completed steps. A rollout that completed, or a StatefulSet that was found with all pods at
// one revision, has nothing left to do: all pods count, those that were added since included.
func updatedReplicas(s statemachine.State) int32 {
	if s.Name == statemachine.Done {
		found := s.Rollout.StartedAt.IsZero() && s.Revision != ""
		if found || s.Rollout.Outcome == statemachine.OutcomeCompleted {
			return s.Replicas
		}
	}
	var n int32
	for ordinal := range s.Finished.All() {
		if ordinal >= s.Start && ordinal-s.Start < s.Replicas { // others were scaled away
			n++
		}
	}
	return n
}

func rolloutOf(r statemachine.Rollout) *v1alpha1.Rollout {
	if r.StartedAt.IsZero() {
		return nil // only the number is remembered
	}
	return &v1alpha1.Rollout{
		Number: r.Number, Reason: string(r.Reason), FromRevision: r.FromRevision, ToRevision: r.ToRevision,
		StartedBy: r.StartedBy, Cause: r.Cause,
		StartedAt: metav1.NewMicroTime(r.StartedAt), FinishedAt: metav1.NewMicroTime(r.FinishedAt),
		Outcome: v1alpha1.Outcome(r.Outcome), Steps: new(r.Steps),
		BlockedSeconds: new(max(r.BlockedSeconds, 0)), // the clocks of two managers may differ
	}
}

// difference names a field of the same two API types that is not the same, or nothing.
func difference(got, want any) string {
	g, w := fields(got), fields(want)
	for _, key := range slices.Sorted(maps.Keys(merged(g, w))) {
		if !bytes.Equal(g[key], w[key]) {
			return fmt.Sprintf("%s is %s, want %s", key, orUnset(g[key]), orUnset(w[key]))
		}
	}
	return ""
}

func fields(v any) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(canonical(v), &m); err != nil {
		panic(fmt.Sprintf("split %T: %v", v, err)) // only API types, which are objects
	}
	return m
}

func merged(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func orUnset(text []byte) string {
	if len(text) == 0 {
		return "unset"
	}
	return cut(string(text), maxMessage/4)
}
