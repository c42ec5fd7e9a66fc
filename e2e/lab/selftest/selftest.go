// Package selftest proves a lab on the real thing: it brings one up in a
// directory of its own, follows a pod of every fate through the API, breaks a
// component, and looks that nothing is left when it is done.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"pawl.dev/pawl/e2e/lab"
)

// test is one run.
type test struct {
	lab     *lab.Lab
	info    lab.Info
	alice   *lab.Client // creates and deletes, as people do
	kubelet *lab.Client // what "lab kill" and "lab fate" speak as
	out     io.Writer
	mutex   sync.Mutex // of out
}

// Run takes about a minute. It returns the first thing that is not as it
// should be, and leaves nothing behind either way.
func Run(ctx context.Context, binaries lab.Binaries, out io.Writer) (err error) {
	parent, err := os.MkdirTemp("", "pawl-lab-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
	l, err := lab.Open(filepath.Join(parent, "lab"), out)
	if err != nil {
		return fmt.Errorf("open a lab: %w", err)
	}
	l.Binaries = binaries
	defer func() { err = errors.Join(err, l.Down()) }()
	t := &test{lab: l, out: out}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"up", t.up},
		{"fates", t.fates},
		{"audit", t.audit},
		{"service-account tokens", t.tokens},
		{"a dead component", t.deadComponent},
		{"an added program", t.added},
		{"down", t.down},
		{"the owner's end", t.ownersEnd},
	} {
		began := time.Now()
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		t.say("ok  %-24s %5.1f s", part.name, time.Since(began).Seconds())
	}
	return nil
}

func (t *test) say(format string, args ...any) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	_, _ = fmt.Fprintf(t.out, format+"\n", args...)
}

func (t *test) up(ctx context.Context) (err error) {
	// Owned, so that a killed self-test leaves nothing either.
	if t.info, err = t.lab.Up(ctx, os.Getpid()); err != nil {
		return fmt.Errorf("bring it up: %w", err)
	}
	if t.alice, err = t.info.Client("alice"); err != nil {
		return fmt.Errorf("speak as alice: %w", err)
	}
	if t.kubelet, err = t.info.Client("kubelet"); err != nil {
		return fmt.Errorf("speak as the kubelet: %w", err)
	}
	return t.allUp()
}

func (t *test) allUp() error {
	all, err := t.lab.Status()
	if err != nil {
		return fmt.Errorf("ask for the status: %w", err)
	}
	for _, c := range all {
		if !c.Up || c.Bytes == 0 {
			return fmt.Errorf("%s is not up: %+v", c.Name, c)
		}
	}
	return nil
}

// audit looks for the line of a request that was answered: it must be there.
func (t *test) audit(ctx context.Context) error {
	set := statefulSet("audited", "registry.example/db:1", story{})
	if err := t.alice.Do(ctx, http.MethodPost, setsPath, set, nil); err != nil {
		return fmt.Errorf("create a StatefulSet: %w", err)
	}
	log, err := os.ReadFile(t.info.AuditLog)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"username":"alice"`) && strings.Contains(line, `"verb":"create"`) &&
			strings.Contains(line, `"name":"audited"`) && strings.Contains(line, `"stage":"ResponseComplete"`) {
			return nil
		}
	}
	return errors.New("alice's request is not in the log")
}

func (t *test) tokens(ctx context.Context) error {
	var answer struct{ Status struct{ Token string } }
	const path = "/api/v1/namespaces/default/serviceaccounts/default/token"
	request := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`
	if err := t.alice.Do(ctx, http.MethodPost, path, request, &answer); err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	review := map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": map[string]any{"token": answer.Status.Token},
	}
	var verdict struct {
		Status struct{ User struct{ Username string } }
	}
	if err := t.alice.Do(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", review, &verdict); err != nil {
		return fmt.Errorf("have the token reviewed: %w", err)
	}
	if who := verdict.Status.User.Username; who != "system:serviceaccount:default:default" {
		return fmt.Errorf("the token is %q's", who)
	}
	return nil
}

func (t *test) deadComponent(context.Context) error {
	all, err := t.lab.Status()
	if err != nil {
		return fmt.Errorf("ask for the status: %w", err)
	}
	victim := all[len(all)-2]
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", victim.Name, err)
	}
	return eventually(5*time.Second, func() error {
		all, err := t.lab.Status()
		if err != nil {
			return fmt.Errorf("ask for the status: %w", err)
		}
		for _, c := range all {
			if c.Up == (c.Name == victim.Name) {
				return fmt.Errorf("status says that %s is up: %t", c.Name, c.Up)
			}
		}
		return nil
	})
}
