package lab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// The grace of a component is short: nothing in a lab is worth saving. It is
// there for etcd and the API server to close their sockets in order.
const (
	stopGrace = 1500 * time.Millisecond
	stopForce = 10 * time.Second
)

// stopAll ends everything recorded, except this process itself.
func (l *Lab) stopAll() error {
	records, err := l.records()
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r record) bool { return r.PID == os.Getpid() })
	// What was added goes first: it works on the lab, and can only end in order
	// as long as that answers.
	own := slices.IndexFunc(records, record.added)
	if own < 0 {
		own = len(records)
	}
	if err := errors.Join(end(records[own:]), end(records[:own])); err != nil {
		return err
	}
	for _, r := range records {
		if err := os.Remove(l.recordPath(r.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget %s: %w", r.Name, err)
		}
	}
	return nil
}

// end asks all to end and then makes them. All at once: clients that outlive
// their server do no harm here, and one after the other takes seconds.
func end(records []record) error {
	for _, r := range records {
		signal(r, syscall.SIGTERM)
	}
	left := awaitEnd(records, stopGrace)
	for _, r := range left {
		signal(r, syscall.SIGKILL)
	}
	if left = awaitEnd(left, stopForce); len(left) > 0 {
		return fmt.Errorf("stop %s: process %d does not end", left[0].Name, left[0].PID)
	}
	return nil
}

// signal reaches a recorded process, and never one that only has its number.
// Between look and kill a number could in theory change hands; the kernel
// hands them out in turn, so that it takes a full round within microseconds.
func signal(r record, s syscall.Signal) {
	if r.alive() {
		_ = syscall.Kill(r.PID, s)
	}
}

// awaitEnd waits for the end of all and returns those left at the deadline.
func awaitEnd(records []record, limit time.Duration) []record {
	deadline := time.Now().Add(limit)
	for {
		records = slices.DeleteFunc(slices.Clone(records), func(r record) bool { return !r.alive() })
		if len(records) == 0 || time.Now().After(deadline) {
			return records
		}
		time.Sleep(20 * time.Millisecond)
	}
}
