package lab

import (
	"fmt"
	"os"
	"slices"
)

// Stop ends one component and leaves the rest running: without kwok the nodes
// are lost after 50 s, without the controller manager nothing is reconciled.
func (l *Lab) Stop(name string) error {
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	r, err := l.recordOf(name)
	if err != nil {
		return err
	}
	return end([]record{r})
}

// Start starts a component again as Up did, unless it runs.
func (l *Lab) Start(name string) error {
	info, err := l.Info()
	if err != nil {
		return err
	}
	l.Binaries = info.Binaries
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	r, err := l.recordOf(name)
	if err != nil || r.alive() {
		return err
	}
	if err := os.Remove(l.recordPath(name)); err != nil {
		return fmt.Errorf("forget the old %s: %w", name, err)
	}
	_, err = l.start(lock, r.component())
	return err
}

// component is what to start to have the process again.
func (r record) component() component {
	c := component{name: r.Name, port: r.Port, args: r.Command[1:]}
	if r.added() {
		c.binary, c.dir = r.Command[0], r.Dir
	}
	return c
}

func (l *Lab) recordOf(name string) (record, error) {
	records, err := l.records()
	if err != nil {
		return record{}, err
	}
	i := slices.IndexFunc(records, func(r record) bool { return r.Name == name })
	if i < 0 {
		return record{}, fmt.Errorf("no component %q in this lab", name)
	}
	return records[i], nil
}
