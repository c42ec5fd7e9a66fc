package statemachine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/looplab/fsm"
)

// anyState is every state that is stored.
var anyState = []StateName{Waiting, Stepping, Blocked, Done}

// line is a line of the table: where an event may happen and where it leads; no state means "where it was".
type line struct {
	event EventType
	from  []StateName
	to    StateName
}

const same StateName = ""

// table is the whole state machine.
var table = []line{
	{Adopted, append([]StateName{New}, anyState...), Done},
	{RolloutStarted, anyState, Waiting},
	{StepStarted, []StateName{Waiting, Stepping, Blocked}, Stepping},
	{StepCompleted, []StateName{Stepping, Blocked}, Waiting},
	{StepAborted, []StateName{Stepping, Blocked}, Waiting},
	{StepSkipped, []StateName{Waiting, Blocked}, same},
	{PodReplaced, anyState, same},
	{RevisionRestored, anyState, same},
	{PartitionParked, anyState, same},
	{Scaled, anyState, same},
	{PartitionOverridden, anyState, same},
	{PodRegressed, anyState, same},
	{Held, anyState, same},
	{Released, anyState, same},
	{BlockedEvent, anyState, Blocked},
	{Unblocked, []StateName{Blocked}, Waiting},
	{StepResumed, []StateName{Blocked}, Stepping},
	{Settled, []StateName{Waiting, Blocked}, Done},
	{RolloutCompleted, []StateName{Waiting, Blocked}, Done},
	{Abandoned, anyState, Done},
}

// transitions is the table as looplab/fsm takes it. The library keeps the last of two lines with the same event and
// source without a word; TestTableHasNoDuplicate forbids them.
func transitions() fsm.Events {
	var events fsm.Events
	for _, l := range table {
		for _, from := range l.from {
			to := l.to
			if to == same {
				to = from
			}
			events = append(events, fsm.EventDesc{Name: string(l.event), Src: []string{string(from)}, Dst: string(to)})
		}
	}
	return events
}

// EventTypes are all the types of events, in the order of the table.
func EventTypes() []EventType {
	types := make([]EventType, len(table))
	for i, l := range table {
		types[i] = l.event
	}
	return types
}

// machine walks the table.
type machine struct{ fsm *fsm.FSM }

func newMachine(at StateName) machine {
	return machine{fsm.NewFSM(string(at), transitions(), nil)}
}

// fire moves the machine along an event and returns the state after it.
func (m machine) fire(event EventType) (StateName, error) {
	at := m.fsm.Current()
	err := m.fsm.Event(context.Background(), string(event))
	if stays := (fsm.NoTransitionError{}); err != nil && !errors.As(err, &stays) {
		return StateName(at), fmt.Errorf("%s cannot happen in state %s", event, at)
	}
	return StateName(m.fsm.Current()), nil
}

// move is an event in a state.
type move struct {
	at    StateName
	event EventType
}

// moves is where the machine goes, asked once for every move. Building a machine for each event of a log would cost
// more than all the rest of a decision.
var moves = sync.OnceValue(func() map[move]StateName {
	to := map[move]StateName{}
	for _, l := range table {
		for _, from := range l.from {
			if state, err := newMachine(from).fire(l.event); err == nil {
				to[move{from, l.event}] = state
			}
		}
	}
	return to
})

// after is the state after an event, or an error if it cannot happen in this one.
func after(at StateName, event EventType) (StateName, error) {
	if to, legal := moves()[move{at, event}]; legal {
		return to, nil
	}
	return at, fmt.Errorf("%s cannot happen in state %s", event, at)
}
