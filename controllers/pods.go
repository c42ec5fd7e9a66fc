package controllers

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/statemachine"
)

// podsOf sorts the pods of a StatefulSet into its indices, absent ones included, and those out of range. A pod belongs
// to it by the uid of its controller and by the number in its name: labels can be wrong, and names sort as text.
func podsOf(
	set *appsv1.StatefulSet, candidates []corev1.Pod, nodes map[string]corev1.Node,
) (inRange, condemned []statemachine.Pod) {
	start, replicas := startOf(set), replicasOf(set)
	inRange = make([]statemachine.Pod, replicas)
	for i := range inRange {
		ordinal := start + int32(i)
		inRange[i] = statemachine.Pod{Ordinal: ordinal, Name: set.Name + "-" + strconv.Itoa(int(ordinal))}
	}
	for i := range candidates {
		pod := &candidates[i]
		ordinal, named := ordinalOf(set.Name, pod.Name)
		if owner := metav1.GetControllerOf(pod); !named || owner == nil || owner.UID != set.UID {
			continue
		}
		if index := int64(ordinal) - int64(start); 0 <= index && index < int64(replicas) {
			inRange[index] = podOf(pod, ordinal, nodes)
		} else {
			condemned = append(condemned, podOf(pod, ordinal, nodes))
		}
	}
	slices.SortFunc(condemned, func(a, b statemachine.Pod) int { return int(a.Ordinal) - int(b.Ordinal) })
	return inRange, condemned
}

// ordinalOf reads the number at the end of a pod's name as the StatefulSet controller writes it.
func ordinalOf(set, pod string) (int32, bool) {
	suffix, found := strings.CutPrefix(pod, set+"-")
	n, err := strconv.ParseUint(suffix, 10, 31)
	if !found || err != nil || strconv.FormatUint(n, 10) != suffix {
		return 0, false
	}
	return int32(n), true
}

func podOf(pod *corev1.Pod, ordinal int32, nodes map[string]corev1.Node) statemachine.Pod {
	p := statemachine.Pod{
		Present: true, Name: pod.Name, UID: string(pod.UID), ResourceVersion: pod.ResourceVersion, Ordinal: ordinal,
		Revision: pod.Labels[appsv1.ControllerRevisionHashLabelKey],
		Created:  instant(pod.CreationTimestamp.Time), Terminating: pod.DeletionTimestamp != nil,
		DeletionTime: since(pod.DeletionTimestamp), Finalizers: pod.Finalizers,
		Phase: string(pod.Status.Phase), Reason: pod.Status.Reason, Message: pod.Status.Message,
		StartTime: since(pod.Status.StartTime), Node: pod.Spec.NodeName,
		Unprobed: slices.ContainsFunc(pod.Spec.Containers, unprobed) ||
			slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return isSidecar(c) && unprobed(c) }),
	}
	if ready := conditionOf(pod, corev1.PodReady); ready != nil {
		p.Ready, p.ReadySince = ready.Status == corev1.ConditionTrue, instant(ready.LastTransitionTime.Time)
		p.ReadyReason, p.ReadyMessage = ready.Reason, ready.Message
	}
	if scheduled := conditionOf(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		p.ScheduledReason, p.ScheduledMessage = scheduled.Reason, scheduled.Message
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if c := conditionOf(pod, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			p.UnsetGates = append(p.UnsetGates, string(gate.ConditionType))
		}
	}
	switch node, known := nodes[p.Node]; {
	case known:
		p.NodeNotReady, p.NodeSince = nodeNotReady(node)
	case nodes != nil && p.Node != "": // nothing runs on a node that is not there
		p.NodeNotReady, p.NodeGone = true, true
	}
	p.Containers = containersOf(pod)
	return p
}

func unprobed(c corev1.Container) bool { return c.ReadinessProbe == nil }

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}
