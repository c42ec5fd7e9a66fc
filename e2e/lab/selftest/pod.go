package selftest

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	setsPath = "/apis/apps/v1/namespaces/default/statefulsets"
	podsPath = "/api/v1/namespaces/default/pods/"
)

// pod is what a story is told of.
type pod struct {
	Metadata struct {
		Name, UID         string
		DeletionTimestamp string
	}
	Spec   struct{ NodeName string }
	Status struct {
		Phase             string
		Conditions        []struct{ Type, Status, Reason string }
		ContainerStatuses []struct {
			Name           string
			Ready, Started bool
			RestartCount   int
			State          state
			LastState      state
		}
	}
}

type state struct {
	Waiting    *struct{ Reason, Message string }
	Running    *struct{}
	Terminated *struct {
		ExitCode int
		Reason   string
	}
}

func (p pod) condition(kind, status string) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == status
		}
	}
	return false
}

func (p pod) ready() bool { return p.condition("Ready", "True") }

func (p pod) waits(reason string) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil && c.State.Waiting.Reason == reason {
			return true
		}
	}
	return false
}

// ended says whether any container has ended with this code.
func (p pod) ended(code int) bool {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil && c.State.Terminated.ExitCode == code {
			return true
		}
	}
	return false
}

func (p pod) restarts() (n int) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// pod is a pod as it is now; none is no error, for it may be on its way.
func (t *test) pod(ctx context.Context, name string) (pod, error) {
	var p pod
	if err := t.alice.Do(ctx, http.MethodGet, podsPath+name, nil, &p); err != nil {
		return p, fmt.Errorf("look at the pod: %w", err)
	}
	return p, nil
}

func eventually(limit time.Duration, check func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// statefulSet is a set whose pods have the fate that the story is about.
func statefulSet(name, image string, s story) map[string]any {
	first := map[string]any{"name": "db", "image": image}
	containers := []any{first}
	for _, beside := range s.beside {
		containers = append(containers, map[string]any{"name": "beside", "image": beside})
	}
	if s.probed {
		probe := map[string]any{"exec": map[string]any{"command": []string{"true"}}}
		first["readinessProbe"] = probe
	}
	spec := map[string]any{"containers": containers, "nodeSelector": s.nodes}
	if s.gate != "" {
		spec["readinessGates"] = []any{map[string]any{"conditionType": s.gate}}
	}
	labels := map[string]any{"app": name}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"replicas": max(1, s.replicas), "serviceName": name, "podManagementPolicy": s.policy,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels, "annotations": s.notes},
				"spec":     spec,
			},
		},
	}
}
