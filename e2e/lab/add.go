package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Program is one more process that a running lab is to have, for as long as it
// runs itself.
type Program struct {
	// Name is what status, logs, stop and start call it.
	Name string
	// Command is the program with its arguments. In these, {port} becomes a port
	// of 127.0.0.1 that nobody holds.
	Command []string
	// Ready is a URL that answers with success once the program works; {port}
	// is the same one. Without it, a program that was started counts as ready.
	Ready string
}

// portMark stands for a free port in what is asked for.
const portMark = "{port}"

var programName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Add starts a program as a component of the lab: written down before it does
// anything, with a log in the lab, ended by Down and by the next Up. It works
// in the directory of the caller. Only the process itself is ended; what it
// starts is its own to end.
func (l *Lab) Add(ctx context.Context, p Program) error {
	c, err := p.component()
	if err != nil {
		return err
	}
	info, err := l.Info()
	if err != nil {
		return err
	}
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := l.makeRoom(&info, p.Name); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := l.addOnce(ctx, lock, c, p.Ready)
		if err == nil {
			return nil
		}
		// Nothing is left running behind a failure; the log stays.
		r, _ := l.recordOf(p.Name)
		err = errors.Join(err, end([]record{r}))
		if !errors.Is(err, errPortTaken) || attempt == attempts {
			return err
		}
		l.say("%v; trying another", err)
	}
}

// component resolves the program as the caller's shell would.
func (p Program) component() (component, error) {
	if !programName.MatchString(p.Name) {
		return component{}, fmt.Errorf("add %q: a name is of lower-case letters, digits and dashes", p.Name)
	}
	if slices.Contains(startOrder, p.Name) {
		return component{}, fmt.Errorf("add %q: every lab has one", p.Name)
	}
	if len(p.Command) == 0 {
		return component{}, fmt.Errorf("add %s: no program is given", p.Name)
	}
	binary, err := exec.LookPath(p.Command[0])
	if err == nil {
		binary, err = filepath.Abs(binary)
	}
	if err != nil {
		return component{}, fmt.Errorf("add %s: %w", p.Name, err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return component{}, fmt.Errorf("add %s: %w", p.Name, err)
	}
	return component{name: p.Name, args: p.Command[1:], binary: binary, dir: dir}, nil
}

// makeRoom forgets one of this name that has ended, and makes the directories.
func (l *Lab) makeRoom(info *Info, name string) error {
	if r, err := l.recordOf(name); err == nil {
		if r.alive() {
			return fmt.Errorf("add %s: it runs already, as process %d", name, r.PID)
		}
		if err := os.Remove(l.recordPath(name)); err != nil {
			return fmt.Errorf("forget the old %s: %w", name, err)
		}
	}
	if err := os.MkdirAll(l.path("tmp"), 0o700); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	info.Logs[name] = l.logPath(name)
	return writeJSON(l.path("lab.json"), info)
}

func (l *Lab) addOnce(ctx context.Context, lock *os.File, c component, ready string) error {
	if strings.Contains(strings.Join(c.args, " "), portMark) {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		c.port = ports[0]
		port := strconv.Itoa(c.port)
		ready = strings.ReplaceAll(ready, portMark, port)
		c.args = slices.Clone(c.args)
		for i := range c.args {
			c.args[i] = strings.ReplaceAll(c.args[i], portMark, port)
		}
	}
	run := bringing{lab: l, lock: lock}
	if err := run.start(c); err != nil {
		return err
	}
	if ready == "" {
		return nil
	}
	return run.await(ctx, c.name, c.name+" to be ready", func(ctx context.Context) error { return answers(ctx, ready) })
}

// answers asks whether a URL answers with success.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
