package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"pawl.dev/pawl/e2e/lab"
)

// down looks that nothing is left of the lab: no file, no process.
func (t *test) down(context.Context) error {
	pids, err := t.pids()
	if err != nil {
		return err
	}
	if err := t.lab.Down(); err != nil {
		return fmt.Errorf("take it down: %w", err)
	}
	return t.nothingLeft(pids)
}

// ownersEnd looks that a lab does not outlive its owner, though the owner gets
// no chance to say so.
func (t *test) ownersEnd(ctx context.Context) error {
	owner := exec.CommandContext(ctx, "sleep", "600")
	if err := owner.Start(); err != nil {
		return fmt.Errorf("start an owner: %w", err)
	}
	_, err := t.lab.Up(ctx, owner.Process.Pid)
	if err == nil {
		err = t.lab.Add(ctx, lab.Program{Name: guest, Command: guestCommand})
	}
	var pids []int
	if err == nil {
		pids, err = t.pids()
	}
	err = errors.Join(err, owner.Process.Kill())
	_ = owner.Wait() // killed, as it should be
	if err != nil {
		return fmt.Errorf("bring up an owned lab: %w", err)
	}
	return eventually(15*time.Second, func() error { return t.nothingLeft(pids) })
}

func (t *test) pids() ([]int, error) {
	all, err := t.lab.Status()
	if err != nil {
		return nil, fmt.Errorf("ask for the status: %w", err)
	}
	var pids []int
	for _, c := range all {
		if c.Up {
			pids = append(pids, c.PID)
		}
	}
	return pids, nil
}

func (t *test) nothingLeft(pids []int) error {
	if _, err := os.Stat(t.lab.Dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is still there (%w)", t.lab.Dir, err)
	}
	for _, pid := range pids {
		if runs(pid) {
			return fmt.Errorf("process %d still runs", pid)
		}
	}
	// Where the system tells, also look for anything that mentions the lab
	// and was in no record.
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return fmt.Errorf("list the processes: %w", err)
	}
	for _, path := range paths {
		command, err := os.ReadFile(path)
		if err == nil && bytes.Contains(command, []byte(t.lab.Dir)) {
			return fmt.Errorf("%s is left: %s", filepath.Dir(path), bytes.ReplaceAll(command, []byte{0}, []byte(" ")))
		}
	}
	return nil
}

// runs tells a process from a zombie that waits for init to collect it: only
// the former has a command line.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || len(command) > 0
}
