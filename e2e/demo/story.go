package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// patience bounds every wait.
const patience = 90 * time.Second

// story is the telling: what is shown, and what is kept to be judged at the end.
type story struct {
	page    *page
	cluster *cluster
	rows    rows
	kept    string // which pods there were before the bad image
}

// enter shows a command, runs it and shows what it prints.
func (s *story) enter(ctx context.Context, command string) error {
	s.page.command(command)
	out, err := s.cluster.shell(ctx, command)
	if err != nil {
		return err
	}
	s.page.output(out)
	return nil
}

// await runs a command unseen until its output has a text in it: Events come a moment after what they tell.
func (s *story) await(ctx context.Context, command, text string) error {
	deadline := time.Now().Add(patience)
	for {
		out, err := s.cluster.shell(ctx, command)
		switch {
		case err != nil:
			return err
		case strings.Contains(out, text):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("waited %s for %q in the output of %s:\n%s", patience, text, command, out)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// change watches while a command has its effect, until the row that ends it. All rows are shown but those that say the
// same as the one before; with a watch for each change, none falls between two: before and after, nothing moves.
func (s *story) change(ctx context.Context, command string, last func(row) bool) error {
	w, err := s.cluster.watch(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	s.page.command(watchCommand + " &")
	s.page.line(header.String())
	before, err := s.next(ctx, w, row{})
	if err != nil {
		return err
	}
	if err := s.enter(ctx, command); err != nil {
		return err
	}
	return s.follow(ctx, w, before, last)
}

// follow shows rows until the last one.
func (s *story) follow(ctx context.Context, w *watch, seen row, last func(row) bool) error {
	for {
		next, err := s.next(ctx, w, seen)
		if err != nil {
			return err
		}
		seen = next
		if last(seen) {
			return nil
		}
	}
}

// next shows the next row that differs from the one before.
func (s *story) next(ctx context.Context, w *watch, before row) (row, error) {
	timeout := time.After(patience)
	for {
		select {
		case r, open := <-w.rows:
			if !open {
				return r, errors.Join(ctx.Err(), errors.New("kubectl --watch ended"))
			}
			if r.same(before) {
				continue
			}
			s.page.row(r)
			s.rows.add(r)
			return r, nil
		case <-ctx.Done():
			return row{}, fmt.Errorf("watch: %w", ctx.Err())
		case <-timeout:
			return row{}, fmt.Errorf("waited %s for a row after this one:\n%s", patience, before)
		}
	}
}

// is tells a row by its state and, if given, its reason.
func is(state, reason string) func(row) bool {
	return func(r row) bool { return r.state == state && (reason == "" || r.reason == reason) }
}
