package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fates are what can be asked for one pod; they override its image's tag.
var Fates = []string{"ready", "bad", "crash", "creating", "never", "exits"}

// fateNote is the annotation that stages/pod.jq reads.
const fateNote = "lab.pawl.dev/fate"

func podPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// SetFate changes what becomes of one pod from now on.
func (c *Client) SetFate(ctx context.Context, namespace, name, fate string) error {
	if !slices.Contains(Fates, fate) {
		return fmt.Errorf("no fate %q: there are %s", fate, strings.Join(Fates, ", "))
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{fateNote: fate}}}
	if err := c.Do(ctx, http.MethodPatch, podPath(namespace, name), patch, nil); err != nil {
		return fmt.Errorf("change the fate of %s: %w", name, err)
	}
	return nil
}

// Kill ends a container of a running pod, as a signal from outside would; ""
// is the first one. What follows is a restart, unless the pod's fate says
// otherwise.
func (c *Client) Kill(ctx context.Context, namespace, name, container string, exitCode int) error {
	// KWOK may publish a step at the same time; then the kill is written anew
	// on top of it.
	for range 10 {
		err := c.killOnce(ctx, namespace, name, container, exitCode)
		if !IsStatus(err, http.StatusConflict) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("kill a container of %s: its status changes all the time", name)
}

func (c *Client) killOnce(ctx context.Context, namespace, name, container string, exitCode int) error {
	// The status is sent back whole, so it is kept as it came.
	var pod struct {
		Metadata struct {
			UID, ResourceVersion string
			Generation           int64
		}
		Status struct {
			ContainerStatuses []map[string]any
			Conditions        []map[string]any
		}
	}
	if err := c.Do(ctx, http.MethodGet, podPath(namespace, name), nil, &pod); err != nil {
		return fmt.Errorf("kill a container: %w", err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(status map[string]any) bool {
		return container == "" || status["name"] == container
	})
	if i < 0 {
		return fmt.Errorf("kill a container: pod %s has no container %q yet", name, container)
	}
	if err := endContainer(pod.Status.ContainerStatuses[i], exitCode, now); err != nil {
		return fmt.Errorf("kill a container of %s: %w", name, err)
	}
	markUnready(pod.Status.Conditions, pod.Status.ContainerStatuses, pod.Metadata.Generation, now)
	patch := map[string]any{
		"metadata": map[string]any{"uid": pod.Metadata.UID, "resourceVersion": pod.Metadata.ResourceVersion},
		"status":   map[string]any{"containerStatuses": pod.Status.ContainerStatuses, "conditions": pod.Status.Conditions},
	}
	if err := c.Do(ctx, http.MethodPatch, podPath(namespace, name)+"/status", patch, nil); err != nil {
		return fmt.Errorf("kill a container: %w", err)
	}
	return nil
}

// endContainer turns a running container's status into an ended one's.
func endContainer(status map[string]any, exitCode int, now string) error {
	state, _ := status["state"].(map[string]any)
	running, ok := state["running"].(map[string]any)
	if !ok {
		return errors.New("the container is not running")
	}
	reason := "Error"
	if exitCode == 0 {
		reason = "Completed"
	}
	status["state"] = map[string]any{"terminated": map[string]any{
		"exitCode": exitCode, "reason": reason, "containerID": status["containerID"],
		"startedAt": running["startedAt"], "finishedAt": now,
	}}
	status["ready"], status["started"] = false, false
	return nil
}

// markUnready is what the kubelet says of the pod with it.
func markUnready(conditions, containers []map[string]any, generation int64, now string) {
	var unready []string
	for _, container := range containers {
		if container["ready"] != true {
			unready = append(unready, fmt.Sprint(container["name"]))
		}
	}
	for _, condition := range conditions {
		if condition["type"] != "Ready" && condition["type"] != "ContainersReady" {
			continue
		}
		if condition["status"] != "False" {
			condition["status"], condition["lastTransitionTime"] = "False", now
		}
		condition["reason"], condition["observedGeneration"] = "ContainersNotReady", generation
		condition["message"] = fmt.Sprintf("containers with unready status: %v", unready)
	}
}
