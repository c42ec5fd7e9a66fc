// Package lab brings up a real Kubernetes control plane on this machine and
// takes it down again: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler, built from Go modules, and KWOK in the place of the nodes.
// Nothing is downloaded beside modules, nothing needs root or a container
// runtime, and nothing listens on any address but 127.0.0.1.
//
// What is real is everything a rollout is made of: the StatefulSet controller,
// admission, authorization, audit, conflicts. What is played is the kubelet:
// images named by their tags, or annotations, decide what becomes of a pod
// (stages/pod.jq), and the statuses published for it follow recordings of a
// real one.
//
// A lab is a directory. Whatever runs is written down there before it runs,
// with its process id and the moment it began, so that [Lab.Down] and the next
// [Lab.Up] end exactly that and nothing else, however the last command ended.
package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// patience bounds the wait for each component.
const patience = 120 * time.Second

// Lab is one lab: a directory with everything it needs and writes.
type Lab struct {
	// Dir holds the state. It is created by Up and removed by Down.
	Dir string
	// Binaries are what Build returned.
	Binaries Binaries
	// Out receives progress, a line at a time.
	Out io.Writer
}

// Open names a lab without touching the disk.
func Open(dir string, out io.Writer) (*Lab, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve the lab directory: %w", err)
	}
	// Processes are told apart by paths below, which must not depend on the
	// way that the directory was reached.
	if resolved, err := filepath.EvalSymlinks(abs); err == nil {
		abs = resolved
	}
	return &Lab{Dir: abs, Out: out}, nil
}

// Info is what a client of a running lab needs; Up returns it and keeps it in
// the file lab.json.
type Info struct {
	Dir         string            `json:"dir"`
	Server      string            `json:"server"`
	CAFile      string            `json:"caFile"`
	Kubeconfig  string            `json:"kubeconfig"`  // of admin
	Kubeconfigs map[string]string `json:"kubeconfigs"` // by user
	TokenFiles  map[string]string `json:"tokenFiles"`  // by user
	AuditLog    string            `json:"auditLog"`
	Kubectl     string            `json:"kubectl"` // script bound to this lab
	Binaries    Binaries          `json:"binaries"`
	Logs        map[string]string `json:"logs"` // by component
	Nodes       []string          `json:"nodes"`
	UpSeconds   float64           `json:"upSeconds"`
}

// ErrNoLab says that the directory holds no lab.
var ErrNoLab = errors.New("no lab here: run \"lab up\" first")

// Info reads back what Up returned.
func (l *Lab) Info() (Info, error) {
	var info Info
	if err := readJSON(l.path("lab.json"), &info); errors.Is(err, os.ErrNotExist) {
		return info, fmt.Errorf("open the lab in %s: %w", l.Dir, ErrNoLab)
	} else if err != nil {
		return info, fmt.Errorf("open the lab: %w", err)
	}
	return info, nil
}

// path is a path inside the lab.
func (l *Lab) path(elem ...string) string {
	return filepath.Join(append([]string{l.Dir}, elem...)...)
}

// say prints a line of progress.
func (l *Lab) say(format string, args ...any) {
	if l.Out != nil {
		_, _ = fmt.Fprintf(l.Out, format+"\n", args...)
	}
}

// lock takes the lab's lock, which every command that changes it holds.
func (l *Lab) lock() (*os.File, error) {
	return lockFile(l.path(markFile), func() { l.say("waiting for another command on %s", l.Dir) })
}
