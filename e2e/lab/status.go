package lab

import (
	"fmt"
	"slices"
)

// ComponentStatus is what Status knows of one component.
type ComponentStatus struct {
	Name  string `json:"name"`
	PID   int    `json:"pid,omitempty"`
	Up    bool   `json:"up"`
	Port  int    `json:"port,omitempty"`
	Bytes int64  `json:"residentBytes,omitempty"`
	Log   string `json:"log"`
}

// Status looks at every component, including those that have no record: an Up
// that was cut short leaves some unstarted.
func (l *Lab) Status() ([]ComponentStatus, error) {
	if _, err := l.Info(); err != nil {
		return nil, err
	}
	records, err := l.records()
	if err != nil {
		return nil, err
	}
	var all []ComponentStatus
	for _, name := range startOrder {
		i := slices.IndexFunc(records, func(r record) bool { return r.Name == name })
		if i < 0 {
			if name != watchdog { // which only an owner asks for
				all = append(all, ComponentStatus{Name: name, Log: l.logPath(name)})
			}
			continue
		}
		all = append(all, records[i].status())
	}
	for _, r := range records {
		if r.added() {
			all = append(all, r.status())
		}
	}
	return all, nil
}

func (r record) status() ComponentStatus {
	status := ComponentStatus{Name: r.Name, PID: r.PID, Port: r.Port, Log: r.Log, Up: r.alive()}
	if status.Up {
		status.Bytes = residentBytes(r.PID)
	}
	return status
}

// Logs names the components that have a log, in the order of starting; the
// watchdog has nothing to say.
func (l *Lab) Logs() ([]string, error) {
	names := slices.Clone(startOrder[1:])
	records, err := l.records()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.added() {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

// Log is the path of a component's log.
func (l *Lab) Log(name string) (string, error) {
	names, err := l.Logs()
	if err != nil {
		return "", err
	}
	if name != watchdog && !slices.Contains(names, name) {
		return "", fmt.Errorf("no component %q: there are %v", name, names)
	}
	return l.logPath(name), nil
}
