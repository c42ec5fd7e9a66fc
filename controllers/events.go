package controllers

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,roleName=pawl-write-events

// reasonPartitionUpdate is the Event of every partition that Pawl writes; MOCO uses the same reason and wording.
const reasonPartitionUpdate = "PartitionUpdate"

// notice is a Kubernetes Event in the making.
type notice struct {
	kind, reason, action, note string
	pod, podUID                string
}

// noticesOf is what to publish about a recorded event. The recorder merges Events of one type, reason, action,
// StatefulSet and pod, whatever their note says.
func noticesOf(e statemachine.Event, replicas int32, revision string) []notice {
	switch e.Type {
	case statemachine.StepStarted, statemachine.StepSkipped, statemachine.PartitionParked:
		if _, _, moved := moves(e, replicas); moved {
			return nil // the partition that is written for it is all there is to tell
		}
	default:
	}
	if e.Revision != "" {
		revision = e.Revision
	}
	return []notice{{
		kind: severity(e.Type), reason: string(e.Type), action: action(e), pod: e.Pod, podUID: e.PodUID, note: note(e, revision),
	}}
}

// partitionNotice is what to publish about a partition that was written, for the transition that records it. The action
// names the partition, so that the recorder does not merge one step with another.
func partitionNotice(t v1alpha1.Transition, was, replicas int32, revision string) (n notice, visible bool) {
	from, to := min(was, replicas), min(*t.Partition, replicas)
	note := withRevision(fmt.Sprintf("Updated partition from %d to %d", from, to), cmp.Or(t.Revision, revision))
	if t.Message != "" {
		note += ": " + t.Message
	}
	return notice{
		kind: corev1.EventTypeNormal, reason: reasonPartitionUpdate, action: fmt.Sprintf("Step%d", to),
		pod: t.Pod, podUID: t.PodUID, note: note,
	}, from != to
}

// moves reports whether the event moves the partition as people see it, min(P, replicas); a foreign write is not ours.
func moves(e statemachine.Event, replicas int32) (from, to int32, moved bool) {
	if e.Partition == nil || e.PreviousPartition == nil || e.Type == statemachine.PartitionOverridden {
		return 0, 0, false
	}
	from, to = min(*e.PreviousPartition, replicas), min(*e.Partition, replicas)
	return from, to, from != to
}

func withRevision(text, revision string) string {
	if revision == "" {
		return text
	}
	return text + " for revision " + revision
}

// note is the message of the event; it always says which revision it is about.
func note(e statemachine.Event, revision string) string {
	text := e.Message
	if text == "" {
		text = string(e.Type)
	}
	if e.Reason != "" {
		text = string(e.Reason) + ": " + text
	}
	if revision == "" {
		return text
	}
	return text + " (revision " + revision + ")"
}

func severity(t statemachine.EventType) string {
	switch t {
	case statemachine.BlockedEvent, statemachine.PartitionOverridden, statemachine.PodRegressed:
		return corev1.EventTypeWarning
	default:
		return corev1.EventTypeNormal
	}
}

// action tells apart what the recorder would merge: the same event with another reason, or for other pods.
func action(e statemachine.Event) string {
	text := "Rollout" + string(e.Reason)
	if e.Ordinals != "" {
		text += "-" + string(e.Ordinals)
	}
	const most = 128 // as the API server validates it
	return text[:min(len(text), most)]
}

// publish hands the notices to the recorder, which sends them when it can.
func (r *Reconciler) publish(regarding *corev1.ObjectReference, n notice) {
	var related runtime.Object
	if n.pod != "" {
		related = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: regarding.Namespace, Name: n.pod, UID: types.UID(n.podUID),
		}
	}
	const most = 1024 // as the API server validates it
	r.Recorder.Eventf(regarding, related, n.kind, n.reason, n.action, "%s", strings.ToValidUTF8(n.note[:min(len(n.note), most)], ""))
}

// reference points to the StatefulSet that a decision was about, also when that is gone by now.
func reference(o statemachine.Observation) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
		ResourceVersion: o.ResourceVersion,
	}
}
