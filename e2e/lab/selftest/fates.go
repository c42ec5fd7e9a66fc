package selftest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// story is what becomes of the first pod of a StatefulSet.
type story struct {
	name, image string
	beside      []string // images of further containers
	notes       map[string]string
	nodes       map[string]string
	gate        string // a readiness gate
	policy      string
	replicas    int
	probed      bool
	moments     []moment
}

// moment is something that must be seen, after what came before it.
type moment struct {
	what string
	seen func(pod) bool
	do   func(ctx context.Context, t *test, name string) error // what to do once it was
	hold time.Duration                                         // how long it must stay so
}

func ready(p pod) bool    { return p.ready() }
func unready(p pod) bool  { return len(p.Status.ContainerStatuses) > 0 && !p.ready() }
func deleting(p pod) bool { return p.Metadata.DeletionTimestamp != "" }

func waits(reason string) func(pod) bool { return func(p pod) bool { return p.waits(reason) } }
func ended(p pod) bool                   { return p.ended(1) }

func readyAfter(restarts int) func(pod) bool {
	return func(p pod) bool { return p.ready() && p.restarts() >= restarts }
}

func setFate(fate string) func(context.Context, *test, string) error {
	return func(ctx context.Context, t *test, name string) error {
		return t.kubelet.SetFate(ctx, "default", name, fate)
	}
}

func killContainer(container string) func(context.Context, *test, string) error {
	return func(ctx context.Context, t *test, name string) error {
		return t.kubelet.Kill(ctx, "default", name, container, 137)
	}
}

func deletePod(ctx context.Context, t *test, name string) error {
	return t.alice.Do(ctx, http.MethodDelete, podsPath+name, nil, nil)
}

// silence makes the pod not Ready over the heads of its containers, as the node
// controller does when a node falls silent.
func silence(ctx context.Context, t *test, name string) error {
	lost := `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	return t.kubelet.Do(ctx, http.MethodPatch, podsPath+name+"/status", lost, nil)
}

// openGate sets the condition that a readiness gate asks for.
func openGate(gate string) func(context.Context, *test, string) error {
	return func(ctx context.Context, t *test, name string) error {
		opened := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, gate)
		return t.kubelet.Do(ctx, http.MethodPatch, podsPath+name+"/status", opened, nil)
	}
}

// fates tells all stories at once, each on a StatefulSet of its own.
func (t *test) fates(ctx context.Context) error {
	errs := make([]error, len(stories))
	var group sync.WaitGroup
	for i, s := range stories {
		group.Go(func() {
			if err := t.follow(ctx, s); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (t *test) follow(ctx context.Context, s story) error {
	set := statefulSet(s.name, s.image, s)
	if err := t.alice.Do(ctx, http.MethodPost, setsPath, set, nil); err != nil {
		return fmt.Errorf("create the StatefulSet: %w", err)
	}
	name := fmt.Sprintf("%s-%d", s.name, max(0, s.replicas-1))
	for _, m := range s.moments {
		if err := t.await(ctx, name, m); err != nil {
			return err
		}
		if m.do == nil {
			continue
		}
		if err := m.do(ctx, t, name); err != nil {
			return fmt.Errorf("after %q: %w", m.what, err)
		}
	}
	t.say("    %s", s.name)
	return nil
}

func (t *test) await(ctx context.Context, name string, m moment) error {
	err := eventually(30*time.Second, func() error {
		p, err := t.pod(ctx, name)
		if err == nil && !m.seen(p) {
			err = fmt.Errorf("never seen: %s; last: %+v", m.what, p.Status)
		}
		return err
	})
	until := time.Now().Add(m.hold)
	for err == nil && time.Now().Before(until) {
		var p pod
		if p, err = t.pod(ctx, name); err == nil && !m.seen(p) {
			err = fmt.Errorf("did not last: %s; then: %+v", m.what, p.Status)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
