package lab

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"
)

// bringing is a lab on its way up: what was started so far has to stay alive.
type bringing struct {
	lab     *Lab
	lock    *os.File
	client  *Client
	running []record
}

func (b *bringing) start(components ...component) error {
	for _, c := range components {
		r, err := b.lab.start(b.lock, c)
		if err != nil {
			return err
		}
		b.running = append(b.running, r)
	}
	return nil
}

// await asks until the answer is nil, and gives up early when a component
// dies. It names what it waits for once that takes more than a moment.
func (b *bringing) await(ctx context.Context, name, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	announce := time.After(5 * time.Second)
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if err := b.allAlive(); err != nil {
			return err
		}
		select {
		case <-announce:
			b.lab.say("waiting for %s, for up to %s", what, patience)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w)\nthe end of the log of %s:\n%s", what, err, ctx.Err(), name, b.lab.tail(name, 15))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (b *bringing) allAlive() error {
	for _, r := range b.running {
		if r.alive() {
			continue
		}
		log := b.lab.tail(r.Name, 15)
		err := fmt.Errorf("%s died; the end of its log:\n%s", r.Name, log)
		if portTaken(log) {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return err
	}
	return nil
}

func (b *bringing) apiReady(ctx context.Context) error {
	// /readyz answers in text; success is all that counts.
	return b.client.Do(ctx, http.MethodGet, "/readyz", nil, nil)
}

func (b *bringing) accountExists(ctx context.Context) error {
	return b.client.Do(ctx, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
}

// populate creates the nodes, and the rights of the people.
func (b *bringing) populate(ctx context.Context, nodes []string) error {
	for _, name := range nodes {
		if err := b.client.Do(ctx, http.MethodPost, "/api/v1/nodes", nodeObject(name), nil); err != nil {
			return fmt.Errorf("create a node: %w", err)
		}
	}
	binding := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": "lab-people"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": peopleGroup}},
	}
	const path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	if err := b.client.Do(ctx, http.MethodPost, path, binding, nil); err != nil {
		return fmt.Errorf("give the people their rights: %w", err)
	}
	return nil
}

func nodeObject(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name":        name,
			"labels":      map[string]any{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
			"annotations": map[string]any{"kwok.x-k8s.io/node": "fake"},
		},
	}
}

// nodesReady asks whether KWOK has the nodes in hand.
func (b *bringing) nodesReady(names []string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, name := range names {
			var node struct {
				Spec   struct{ Taints []struct{ Key string } }
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
			if err := b.client.Do(ctx, http.MethodGet, "/api/v1/nodes/"+name, nil, &node); err != nil {
				return err
			}
			ready := false
			for _, condition := range node.Status.Conditions {
				ready = ready || condition.Type == "Ready" && condition.Status == "True"
			}
			// A new node is tainted until the node controller has seen it Ready;
			// pods created before that would have to wait in the scheduler.
			if !ready || len(node.Spec.Taints) > 0 {
				return fmt.Errorf("node %s is not Ready", name)
			}
		}
		return nil
	}
}
