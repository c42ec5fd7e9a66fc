package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// reasonPartitionUpdate is the Event of every partition that Pawl writes; MOCO uses the same reason and wording.
const reasonPartitionUpdate = "PartitionUpdate"

// notice is a Kubernetes Event in the making.
type notice struct {
	kind, reason, action, note string
	pod, podUID                string
}

// noticesOf is what to publish about a recorded event. The recorder merges Events of one type, reason, action,
// StatefulSet and pod, whatever their note says; the action therefore names the partition, so that each step is told.
//
// The partition is where the log had it before the event: a write that was refused as stale is decided anew, and needs
// no second notice.
func noticesOf(e statemachine.Event, partition, replicas int32, revision string) []notice {
	var notices []notice
	if e.Revision != "" {
		revision = e.Revision
	}
	if from, to, moved := moves(e, replicas); moved && *e.Partition != partition {
		notices = append(notices, notice{
			kind: corev1.EventTypeNormal, reason: reasonPartitionUpdate, action: fmt.Sprintf("Step%d", to), pod: e.Pod, podUID: e.PodUID,
			note: withRevision(fmt.Sprintf("Updated partition from %d to %d", from, to), revision) + because(e),
		})
		switch e.Type {
		case statemachine.StepStarted, statemachine.StepSkipped, statemachine.PartitionParked:
			return notices // the move of the partition is all there is to tell
		default:
		}
	}
	return append(notices, notice{
		kind: severity(e.Type), reason: string(e.Type), action: action(e), pod: e.Pod, podUID: e.PodUID, note: note(e, revision),
	})
}

// moves reports whether the event moves the partition as people see it, min(P, replicas); a foreign write is not ours.
func moves(e statemachine.Event, replicas int32) (from, to int32, moved bool) {
	if e.Partition == nil || e.PreviousPartition == nil || e.Type == statemachine.PartitionOverridden {
		return 0, 0, false
	}
	from, to = min(*e.PreviousPartition, replicas), min(*e.Partition, replicas)
	return from, to, from != to
}

func because(e statemachine.Event) string {
	if e.Message == "" {
		return ""
	}
	return ": " + e.Message
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
	r.Recorder.Eventf(regarding, related, n.kind, n.reason, n.action, "%s", n.note[:min(len(n.note), most)])
}

// reference points to the StatefulSet that a decision was about, also when that is gone by now.
func reference(o statemachine.Observation) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
		ResourceVersion: o.ResourceVersion,
	}
}
