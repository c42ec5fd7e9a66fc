package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"pawl.dev/pawl/statemachine"
)

// nodeNotReady reports whether a node is not known to be Ready, and since when.
func nodeNotReady(node corev1.Node) (bool, time.Time) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionTrue, instant(c.LastTransitionTime.Time)
		}
	}
	return true, instant(node.CreationTimestamp.Time)
}

// containersOf lists the containers in the order in which the kubelet starts them: as the spec has them, whether or
// not the kubelet has published anything of them yet.
func containersOf(pod *corev1.Pod) []statemachine.Container {
	containers := make([]statemachine.Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for _, spec := range pod.Spec.InitContainers {
		c := containerOf(spec, pod.Status.InitContainerStatuses)
		c.Init = true
		c.Sidecar = isSidecar(spec)
		containers = append(containers, c)
	}
	for _, spec := range pod.Spec.Containers {
		containers = append(containers, containerOf(spec, pod.Status.ContainerStatuses))
	}
	return containers
}

// isSidecar reports whether an init container runs on beside the main ones, and counts for their being ready.
func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func containerOf(spec corev1.Container, statuses []corev1.ContainerStatus) statemachine.Container {
	c := statemachine.Container{Name: spec.Name, Image: spec.Image}
	for _, status := range statuses {
		if status.Name != spec.Name {
			continue
		}
		c.Ready, c.Started = status.Ready, status.Started != nil && *status.Started
		c.Restarts = status.RestartCount
		if waiting := status.State.Waiting; waiting != nil {
			c.Waiting, c.WaitingMessage = waiting.Reason, waiting.Message
		}
		if running := status.State.Running; running != nil {
			c.RunningSince = instant(running.StartedAt.Time)
		}
		c.Terminated, c.Last = exitOf(status.State.Terminated), exitOf(status.LastTerminationState.Terminated)
	}
	return c
}

func exitOf(t *corev1.ContainerStateTerminated) *statemachine.Exit {
	if t == nil {
		return nil
	}
	return &statemachine.Exit{
		Code: t.ExitCode, Reason: t.Reason, Message: t.Message,
		StartedAt: instant(t.StartedAt.Time), FinishedAt: instant(t.FinishedAt.Time),
	}
}
