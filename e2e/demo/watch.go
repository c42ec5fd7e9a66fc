package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// row is a line of kubectl get rolloutprogress.
type row struct{ name, state, reason, pod, updated, since string }

// parseRow reads a line of the table; false for the header, and for an object that has no status yet. Only the pod can
// be missing in any other.
func parseRow(line string) (row, bool) {
	f := strings.Fields(line)
	if len(f) == 5 {
		f = append(f[:3], "", f[3], f[4])
	}
	if len(f) != 6 || f[0] == "NAME" {
		return row{}, false
	}
	return row{f[0], f[1], f[2], f[3], f[4], f[5]}, true
}

// String is the row with columns that are wide enough for all that come: kubectl widens its columns as it goes along,
// so that its rows do not stay below each other.
func (r row) String() string {
	return fmt.Sprintf("%-6s %-10s %-18s %-6s %-9s %s", r.name, r.state, r.reason, r.pod, r.updated, r.since)
}

// header is the first line of the table.
var header = row{"NAME", "STATE", "REASON", "POD", "UPDATED", "SINCE"}

// same: nothing that a person looks for is different.
func (r row) same(other row) bool {
	r.since, other.since = "", ""
	return r == other
}

// watch is kubectl get rolloutprogress --watch, at work in the background.
type watch struct {
	rows chan row // closed when kubectl ends
	end  func()
}

func (c *cluster) watch(ctx context.Context) (*watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := group(exec.CommandContext(ctx, "sh", "-c", "exec "+watchCommand))
	cmd.Env = c.environment()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &watch{rows: make(chan row, 100)}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(w.rows)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if r, ok := parseRow(lines.Text()); ok {
				select {
				case w.rows <- r:
				case <-ctx.Done():
				}
			}
		}
	})
	w.end = func() {
		cancel()
		reader.Wait()
		_ = cmd.Wait() // ended by us
	}
	return w, nil
}

const watchCommand = "kubectl get rolloutprogress --watch"
