package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test program be its own shim, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == ShimCommand {
		fmt.Fprintln(os.Stderr, Shim(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newLab(t *testing.T) *Lab {
	t.Helper()
	l, err := Open(filepath.Join(t.TempDir(), "lab"), nil)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := l.claim()
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "logs"} {
		if err := os.Mkdir(l.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestAComponentIsRecordedAndEnded(t *testing.T) {
	l := newLab(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	l.Binaries.ControlPlane = sleep
	lock, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.start(lock, component{name: etcd, port: 1, args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if !r.alive() {
		t.Fatal("it does not run")
	}
	records, err := l.records()
	if err != nil || len(records) != 1 || records[0].PID != r.PID {
		t.Fatalf("records: %+v, %v", records, err)
	}
	// The component must not keep the lock: this would hang.
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	if r.alive() {
		t.Error("it outlived Down")
	}
	if _, err := os.Stat(l.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("Down left the directory")
	}
	if err := l.Down(); err != nil {
		t.Errorf("a second Down: %v", err)
	}
}

// From the moment that start returns, a component must look alive to Up.
func TestAComponentLooksAliveWhileItBecomesItself(t *testing.T) {
	l := newLab(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	l.Binaries.ControlPlane = sleep
	for range 30 {
		lock, err := l.lock()
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.start(lock, component{name: etcd, args: []string{"60"}})
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if !r.alive() {
				t.Fatal("it looked dead")
			}
		}
		if err := errors.Join(l.stopAll(), lock.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAComponentThatCannotStartIsReported(t *testing.T) {
	l := newLab(t)
	l.Binaries.ControlPlane = "/does/not/exist"
	lock, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	run := bringing{lab: l, lock: lock}
	err = run.start(component{name: etcd})
	for deadline := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(deadline); {
		err = run.allAlive()
	}
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, want the reason from its log", err)
	}
}

func TestAnAddedProgramEndsWithTheLab(t *testing.T) {
	l := newLab(t)
	if err := writeJSON(l.path("lab.json"), Info{Logs: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"kwok": {"sleep", "60"}, "a/b": {"sleep", "60"}, "nothing": {}, "unknown": {"/does/not/exist"},
	} {
		if err := l.Add(t.Context(), Program{Name: name, Command: command}); err == nil {
			t.Errorf("%s: it was added", name)
		}
	}
	if err := l.Add(t.Context(), Program{Name: "guest", Command: []string{"sleep", "60"}}); err != nil {
		t.Fatal(err)
	}
	r, err := l.recordOf("guest")
	if err != nil || !r.alive() || !r.added() {
		t.Fatalf("record: %+v, %v", r, err)
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	if r.alive() {
		t.Error("it outlived Down")
	}
}

func TestAnAddedProgramThatDiesIsReported(t *testing.T) {
	l := newLab(t)
	if err := writeJSON(l.path("lab.json"), Info{Logs: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	err := l.Add(t.Context(), Program{
		Name: "guest", Command: []string{"sh", "-c", "echo I cannot; exit 1"}, Ready: "http://127.0.0.1:1/",
	})
	if err == nil || !strings.Contains(err.Error(), "I cannot") {
		t.Errorf("got %v, want the reason from its log", err)
	}
}

func TestAForeignDirectoryIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Up(t.Context(), 0); err == nil {
		t.Error("Up takes a directory that is not a lab")
	}
	if err := l.Down(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("Down removed what is not a lab's")
	}
	if _, err := l.Info(); !errors.Is(err, ErrNoLab) {
		t.Errorf("Info of no lab: %v", err)
	}
}

func TestEveryStepThatIsDecidedIsAStage(t *testing.T) {
	config, err := kwokConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range podSteps {
		if !strings.Contains(config, "name: pod-"+step.name+"\n") {
			t.Errorf("no stage for %s", step.name)
		}
	}
	decision, err := stageFiles.ReadFile("stages/pod.jq")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range podSteps {
		if !strings.Contains(string(decision), `"`+step.name+`"`) {
			t.Errorf("%s is never decided", step.name)
		}
	}
}
