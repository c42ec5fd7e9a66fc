package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// attempts bounds the tries with other ports, when some other program took one
// between the choice and the use.
const attempts = 3

// errPortTaken says that a component found its port taken.
var errPortTaken = errors.New("a port was taken meanwhile")

// markFile tells a lab's directory from any other, which is never touched.
const markFile = ".pawl-lab"

// Up starts a fresh lab. What an earlier one left in the directory, running or
// not, goes first. With an owner, a process id, a watchdog takes the lab down
// when that process is gone.
func (l *Lab) Up(ctx context.Context, owner int) (Info, error) {
	var owned string
	if owner != 0 {
		started, err := startTime(owner)
		if err != nil {
			return Info{}, fmt.Errorf("find the owner: %w", err)
		}
		owned = started
	}
	lock, err := l.claim()
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = lock.Close() }()
	began := time.Now()
	for attempt := 1; ; attempt++ {
		if err := l.clear(); err != nil {
			return Info{}, err
		}
		info, err := l.bringUp(ctx, lock, owner, owned)
		if err == nil {
			info.UpSeconds = time.Since(began).Round(time.Millisecond).Seconds()
			return info, writeJSON(l.path("lab.json"), info)
		}
		// Nothing is left running behind a failure; the logs stay.
		err = errors.Join(err, l.stopAll())
		if !errors.Is(err, errPortTaken) || attempt == attempts {
			return Info{}, err
		}
		l.say("%v; trying others", err)
	}
}

// claim makes the directory and takes its lock.
func (l *Lab) claim() (*os.File, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look into the lab directory: %w", err)
	}
	if _, err := os.Stat(l.path(markFile)); err != nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty and is not a lab", l.Dir)
	}
	for {
		if err := os.MkdirAll(l.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the lab directory: %w", err)
		}
		// The lock file is the mark: there is no moment with one and not the
		// other. A Down that held it has removed the directory with it.
		lock, err := l.lock()
		if !errors.Is(err, os.ErrNotExist) {
			return lock, err
		}
	}
}

// clear ends what runs and removes everything but the lock.
func (l *Lab) clear() error {
	if err := l.stopAll(); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return fmt.Errorf("clear the lab directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == markFile {
			continue
		}
		if err := os.RemoveAll(l.path(entry.Name())); err != nil {
			return fmt.Errorf("clear the lab directory: %w", err)
		}
	}
	return nil
}

func (l *Lab) bringUp(ctx context.Context, lock *os.File, owner int, owned string) (Info, error) {
	ports, err := freePorts(3)
	if err != nil {
		return Info{}, err
	}
	info, err := l.prepare(ports[0])
	if err != nil {
		return info, err
	}
	if owner != 0 {
		if _, err := l.start(lock, l.watchdogComponent(owner, owned)); err != nil {
			return info, err
		}
	}
	client, err := info.Client("admin")
	if err != nil {
		return info, err
	}
	run := bringing{lab: l, lock: lock, client: client}
	// The API server waits for etcd by itself.
	if err := run.start(l.etcdComponent(ports[1], ports[2]), l.apiserverComponent(ports[0], ports[1])); err != nil {
		return info, err
	}
	if err := run.await(ctx, apiserver, "the API server to be ready", run.apiReady); err != nil {
		return info, err
	}
	if err := run.start(l.controllerComponent(), l.schedulerComponent(), l.kwokComponent()); err != nil {
		return info, err
	}
	if err := run.populate(ctx, info.Nodes); err != nil {
		return info, err
	}
	if err := run.await(ctx, controller, "the default service account", run.accountExists); err != nil {
		return info, err
	}
	if err := run.await(ctx, kwok, "the nodes to be Ready", run.nodesReady(info.Nodes)); err != nil {
		return info, err
	}
	return info, nil
}

// prepare writes every file that the components read.
func (l *Lab) prepare(port int) (Info, error) {
	info := Info{
		Dir: l.Dir, Server: "https://" + loopback(port), CAFile: l.path("pki", "ca.crt"),
		AuditLog: l.path("audit.jsonl"), Binaries: l.Binaries, Logs: map[string]string{},
		Nodes: []string{"lab-node-0", "lab-node-1", "lab-node-2"},
	}
	for _, name := range startOrder[1:] {
		info.Logs[name] = l.logPath(name)
	}
	for _, dir := range []string{"pki", "logs", "run"} {
		if err := os.MkdirAll(l.path(dir), 0o700); err != nil {
			return info, fmt.Errorf("make the lab directory: %w", err)
		}
	}
	creds, err := newCredentials(time.Now())
	if err != nil {
		return info, err
	}
	stages, err := kwokConfig()
	if err != nil {
		return info, err
	}
	for name, data := range map[string]string{
		"pki/ca.crt": string(creds.ca), "pki/server.crt": string(creds.cert), "pki/server.key": string(creds.key),
		"pki/accounts.key": string(creds.accounts), "pki/accounts.pub": string(creds.accountsPublic),
		"audit-policy.yaml": auditPolicy, "kwok.yaml": stages, "audit.jsonl": "",
	} {
		if err := writeFile(filepath.Join(l.Dir, name), []byte(data), 0o600); err != nil {
			return info, err
		}
	}
	if err := l.writeUsers(&info, creds.ca); err != nil {
		return info, err
	}
	return info, l.writeKubectl(&info)
}

// portTaken recognizes the death of a component whose port was taken.
func portTaken(log string) bool { return strings.Contains(log, "address already in use") }
