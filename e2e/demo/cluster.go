package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stallGrace is how long a pod may show an error before the verdict: long enough to see the row before it.
const stallGrace = "4s"

// cluster is the lab of this demo, with Pawl as one of its components.
type cluster struct {
	dir string
	lab struct {
		Kubeconfig  string            `json:"kubeconfig"`
		Kubeconfigs map[string]string `json:"kubeconfigs"`
		AuditLog    string            `json:"auditLog"`
	}
}

// startCluster works in the root of the repository, where make leaves the binaries. The cluster is never nil: it is to
// be ended whatever comes. Should this process not live to do so, the lab's watchdog does.
func startCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{}
	if err := enterRoot(); err != nil {
		return c, err
	}
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return c, fmt.Errorf("make a directory: %w", err)
	}
	c.dir = dir
	out, err := labCommand(ctx, "up", "--json", "--dir", dir, "--owner-pid", strconv.Itoa(os.Getpid()))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(out, &c.lab); err != nil {
		return c, fmt.Errorf("read what lab up printed: %w", err)
	}
	// run-local installs the kinds and the roles with a person's rights, and works with those of the service account.
	_, err = labCommand(ctx, "add", "pawl", "--dir", dir, "--ready", "http://127.0.0.1:{port}/readyz", "--",
		"env", "PAWL_KUBECONFIG="+c.lab.Kubeconfig, filepath.Join("bin", "pawl"), "run-local", "--stall-grace", stallGrace,
		"--leader-elect=false", "--health-probe-address", "127.0.0.1:{port}", "--metrics-bind-address", "0")
	return c, err
}

// end takes everything down. It has a context of its own: the story's may be over.
func (c *cluster) end() error {
	if c.dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := labCommand(ctx, "down", "--dir", c.dir); err != nil {
		return fmt.Errorf("%w: %w", errLeft, err)
	}
	// Before lab up has marked the directory as its own, it is empty, and lab down leaves it.
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the lab: %w", err)
	}
	return nil
}

var errLeft = errors.New("something may be left running")

// enterRoot looks for the binaries upward from here.
func enterRoot() error {
	for _, name := range []string{"lab", "pawl"} {
		for {
			if _, err := os.Stat(filepath.Join("bin", name)); err == nil {
				break
			}
			here, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("look for bin/%s: %w", name, err)
			}
			if here == filepath.Dir(here) {
				return fmt.Errorf("there is no bin/%s: run make demo, which builds it", name)
			}
			if err := os.Chdir(".."); err != nil {
				return fmt.Errorf("look for bin/%s: %w", name, err)
			}
		}
	}
	return nil
}

// labCommand returns what the lab prints; its progress and complaints are shown only if it fails.
func labCommand(ctx context.Context, args ...string) ([]byte, error) {
	var complaints bytes.Buffer
	cmd := group(exec.CommandContext(ctx, filepath.Join("bin", "lab"), args...)) //nolint:gosec // our own binary
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("lab %s: %w\n%s", args[0], err, complaints.Bytes())
	}
	return out, nil
}

// shell runs what a person would type, as alice, with the lab's kubectl.
func (c *cluster) shell(ctx context.Context, command string) (string, error) {
	cmd := group(exec.CommandContext(ctx, "sh", "-c", command)) //nolint:gosec // the commands are in this program
	cmd.Env = c.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return string(out), nil
}

func (c *cluster) environment() []string {
	here, _ := os.Getwd() // the root: see enterRoot
	path := []string{c.dir, filepath.Join(here, "bin"), os.Getenv("PATH")}
	return append(os.Environ(), "PATH="+strings.Join(path, string(os.PathListSeparator)),
		"KUBECONFIG="+c.lab.Kubeconfigs["alice"])
}

// group keeps a command and its children together, out of reach of Ctrl-C, which is ours to handle: they end together
// when the context does.
func group(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}
