package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// WatchdogCommand is the hidden first argument under which the program that
// uses this package must call [Watch].
const WatchdogCommand = "__watchdog"

// Down ends everything of the lab and removes its directory. A directory with
// no lab in it is no error and is not touched.
func (l *Lab) Down() error {
	if _, err := os.Stat(l.path(markFile)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := l.lock()
	if errors.Is(err, os.ErrNotExist) {
		return nil // somebody else's Down was first
	} else if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := l.clear(); err != nil {
		return err
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return fmt.Errorf("remove the lab directory: %w", err)
	}
	return nil
}

// Watch waits for the end of the owner and takes the lab down. It works by
// polling, which is the same on every system, and holds no tie to the owner
// that could be cut without its death.
func Watch(dir, owner, started string) error {
	pid, err := strconv.Atoi(owner)
	if err != nil {
		return fmt.Errorf("watch the owner: %w", err)
	}
	for (record{PID: pid, Started: started}).alive() {
		time.Sleep(250 * time.Millisecond)
	}
	l, err := Open(dir, nil)
	if err != nil {
		return err
	}
	// An Up that is under way holds the lock. It either finishes or fails, and
	// then the lab goes.
	return l.Down()
}
