package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	os.Exit(tellAll(m))
}

func tellAll(m *testing.M) int {
	log.SetLogger(logr.Discard()) // what the clients of a story say is of no interest, and neither is that nobody listens
	dir, err := os.MkdirTemp("", "pawl-stories-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // building the lab for the first time included
	defer cancel()
	lab, err = startCluster(ctx, dir)
	if lab != nil {
		defer func() { fmt.Fprint(os.Stderr, lab.labCommand("down")) }()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stories:", err)
		return 1
	}
	code := m.Run()
	fmt.Print(results.table(), killed, tormented)
	if err := reportWrites(); err != nil {
		fmt.Fprintln(os.Stderr, "writes:", err)
		return 1
	}
	after, done := context.WithTimeout(context.Background(), commandTime) // the stories may have taken an hour
	defer done()
	if err := reportPermissions(after, flag.Lookup("test.run").Value.String()); err != nil {
		fmt.Fprintln(os.Stderr, "permissions:", err)
		return 1
	}
	return code
}

// commandTime is how long a command of a story may take; those that wait have a timeout of their own, which is shorter.
const commandTime = 2 * time.Minute

// run returns what a command prints, and its error if it has one.
func run(command string, args ...string) string {
	out, err := attempt(context.Background(), "", command, args...)
	if err != nil {
		return fmt.Sprintf("%s%v\n", out, err)
	}
	return out
}

// attempt runs a command with this input. One that does not end is ended, and the error says which it was.
func attempt(ctx context.Context, input, command string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("did not end within %s", commandTime))
	defer cancel()
	c := exec.CommandContext(ctx, command, args...)
	c.Stdin, c.WaitDelay = strings.NewReader(input), 10*time.Second // what it started may hold its output
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w", filepath.Base(command), strings.Join(args, " "), cmp.Or(context.Cause(ctx), err))
	}
	return string(out), nil
}

// tally counts how often each story was told and how long it took.
type tally struct {
	mu   sync.Mutex
	rows map[string]*row
}

type row struct {
	runs, failures int
	slowest        time.Duration
}

var results = tally{rows: map[string]*row{}}

func (r *tally) record(title string, policy appsv1.PodManagementPolicyType, where string, began time.Time, t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprintf("%-37s %-13s %-10s", title, policy, where)
	if r.rows[key] == nil {
		r.rows[key] = &row{}
	}
	r.rows[key].runs++
	if t.Failed() {
		r.rows[key].failures++
	}
	r.rows[key].slowest = max(r.rows[key].slowest, time.Since(began))
}

func (r *tally) table() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for key := range r.rows {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var b strings.Builder
	fmt.Fprintf(&b, "%-37s %-13s %-10s %5s %9s %9s\n", "STORY", "POLICY", "ADMISSION", "RUNS", "FAILURES", "SLOWEST")
	for _, key := range keys {
		row := r.rows[key]
		fmt.Fprintf(&b, "%s %5d %9d %8.1fs\n", key, row.runs, row.failures, row.slowest.Seconds())
	}
	return b.String()
}
