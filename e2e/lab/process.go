package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// record is what is kept of a process, from before it does anything until it
// is known to be gone.
type record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Started is when the process began, as the kernel tells it. A process id
	// comes round again; together with the moment it does not.
	Started string   `json:"started"`
	Command []string `json:"command"`
	Port    int      `json:"port,omitempty"`
	Log     string   `json:"log"`
	// Dir is set for a program that was added: the directory it works in.
	Dir string `json:"dir,omitempty"`
}

// added tells a program that was added from the components of every lab.
func (r record) added() bool { return r.Dir != "" }

// alive says whether the recorded process still runs: this very one, not
// another that was given its number.
func (r record) alive() bool {
	started, err := startTime(r.PID)
	return err == nil && started == r.Started
}

// ShimCommand is the hidden first argument under which the program that uses
// this package must call [Shim].
const ShimCommand = "__component"

// lockFD is the descriptor on which a shim inherits the lab's lock.
const lockFD = 3

// start runs a component detached, by way of this program itself (see Shim).
// The caller holds the lock.
func (l *Lab) start(lock *os.File, c component) (record, error) {
	self, err := os.Executable()
	if err != nil {
		return record{}, fmt.Errorf("find this program: %w", err)
	}
	binary, dir := l.binaryOf(c, self), l.Dir
	if c.dir != "" {
		dir = c.dir
	}
	logPath := l.logPath(c.name)
	output, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return record{}, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = output.Close() }()

	draft := record{Name: c.name, Port: c.port, Log: logPath, Command: append([]string{binary}, c.args...), Dir: c.dir}
	if err := writeJSON(l.recordPath(c.name)+".draft", draft); err != nil {
		return record{}, err
	}
	cmd := exec.Command(self, ShimCommand, l.recordPath(c.name))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Env = l.environment(c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return record{}, fmt.Errorf("start %s: %w", c.name, err)
	}
	// Reaps it if it ends while this program still runs; afterwards init does.
	go func() { _ = cmd.Wait() }()
	return l.awaitRecord(c.name, cmd.Process.Pid)
}

func (l *Lab) binaryOf(c component, self string) string {
	switch {
	case c.binary != "":
		return c.binary
	case c.name == kwok:
		return l.Binaries.KWOK
	case c.name == watchdog:
		return self
	default:
		return l.Binaries.ControlPlane
	}
}

// awaitRecord returns once the shim has written itself down.
func (l *Lab) awaitRecord(name string, pid int) (record, error) {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		var r record
		if err := readJSON(l.recordPath(name), &r); err == nil && r.PID == pid {
			return r, nil
		}
		if syscall.Kill(pid, 0) != nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	return record{}, fmt.Errorf("start %s: it ended at once:\n%s", name, l.tail(name, 15))
}

// environment keeps the host's configuration away from the components. What a
// program that was added leaves among its temporary files goes with the lab.
func (l *Lab) environment(c component) []string {
	temp := os.TempDir()
	if c.binary != "" {
		temp = l.path("tmp")
	}
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.Dir, "TMPDIR=" + temp}
}

// A shim stays on the process's first thread. An exec from any other makes that
// one a zombie for a moment, and the process look dead to [record.alive].
func init() {
	if len(os.Args) > 1 && os.Args[1] == ShimCommand {
		runtime.LockOSThread()
	}
}

// Shim becomes a component, in three steps that leave no moment in which one
// runs unrecorded: write down its own process id, which exec will keep; let go
// of the lab's lock, which it inherited from Up; exec. An Up killed in between
// leaves the lock with the shim until the record is there to be read.
func Shim(recordPath string) error {
	var r record
	if err := readJSON(recordPath+".draft", &r); err != nil {
		return fmt.Errorf("become a component: %w", err)
	}
	r.PID = os.Getpid()
	started, err := startTime(r.PID)
	if err != nil {
		return fmt.Errorf("become a component: %w", err)
	}
	r.Started = started
	if err := writeJSON(recordPath, r); err != nil {
		return fmt.Errorf("become a component: %w", err)
	}
	syscall.CloseOnExec(lockFD)
	if err := syscall.Exec(r.Command[0], r.Command, os.Environ()); err != nil {
		return fmt.Errorf("become %s: %w", r.Name, err)
	}
	return nil
}

// records reads what was written down, in the order of starting.
func (l *Lab) records() ([]record, error) {
	paths, err := filepath.Glob(l.path("run", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the components: %w", err)
	}
	var records []record
	for _, path := range paths {
		var r record
		if err := readJSON(path, &r); err != nil {
			return nil, fmt.Errorf("list the components: %w", err)
		}
		records = append(records, r)
	}
	slices.SortStableFunc(records, func(a, b record) int { return rank(a.Name) - rank(b.Name) })
	return records, nil
}

// rank puts what was added behind the lab's own components.
func rank(name string) int {
	if i := slices.Index(startOrder, name); i >= 0 {
		return i
	}
	return len(startOrder)
}

func (l *Lab) recordPath(name string) string { return l.path("run", name+".json") }
func (l *Lab) logPath(name string) string    { return l.path("logs", name+".log") }

// tail is the end of a component's log.
func (l *Lab) tail(name string, lines int) string {
	data, err := os.ReadFile(l.logPath(name))
	if errors.Is(err, os.ErrNotExist) || len(data) == 0 {
		return "(its log is empty)"
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
