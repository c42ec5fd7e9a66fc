package ledger

import (
	"fmt"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// point is a place between two transitions: everything that the ones before it led to.
type point struct {
	sequence int64  // of the transition before it
	digest   string // the head of the chain
	anchor   int64  // sequence of the newest transition that a fold can begin with; 0 if none is known
	state    statemachine.State
}

// entry is a transition in its place.
type entry struct {
	transition v1alpha1.Transition
	event      statemachine.Event
	size       int // of the transition as it is stored, in bytes
	after      point
}

// append places a new event here.
func (p point) append(e statemachine.Event) (entry, error) {
	t := transitionOf(e)
	t.Sequence = p.sequence + 1
	next, err := p.place(t)
	if err != nil {
		return entry{}, err
	}
	if !next.event.Anchor() {
		return next, nil
	}
	// Status is trimmed down to its anchor one day: what the anchor does not carry would be gone.
	alone, err := statemachine.FoldFromAnchor([]statemachine.Event{next.event})
	if err != nil {
		return entry{}, fmt.Errorf("fold %s alone: %w", e.Type, err)
	}
	if alone != next.after.state {
		return entry{}, fmt.Errorf("%s does not carry all that is remembered: alone it leads to %+v, here to %+v", e.Type, alone, next.after.state)
	}
	return next, nil
}

// follow places a stored transition here, if it belongs here.
func (p point) follow(t v1alpha1.Transition) (entry, error) {
	if t.Sequence != p.sequence+1 {
		return entry{}, fmt.Errorf("its sequence is %d, want %d", t.Sequence, p.sequence+1)
	}
	if t.State == "" {
		return entry{}, fmt.Errorf("it has no state")
	}
	return p.place(t)
}

func (p point) place(t v1alpha1.Transition) (entry, error) {
	if _, err := statemachine.ParseOrdinals(t.Ordinals); err != nil {
		return entry{}, fmt.Errorf("read %s: %w", t.Type, err)
	}
	e := eventOf(t)
	state, err := statemachine.Fold(p.state, []statemachine.Event{e})
	if err != nil {
		return entry{}, fmt.Errorf("fold %s: %w", t.Type, err)
	}
	t.State, e.State = v1alpha1.State(state.Name), state.Name
	text := Canonical(t)
	after := point{sequence: t.Sequence, digest: chain(p.digest, text), anchor: p.anchor, state: state}
	if e.Anchor() {
		after.anchor = t.Sequence
	}
	return entry{transition: t, event: e, size: len(text), after: after}, nil
}

// before is the point that a fold begins at if the first transition is t. It is false if something older is needed.
func before(t v1alpha1.Transition, previousDigest string) (point, bool) {
	p := point{sequence: t.Sequence - 1, digest: previousDigest, state: statemachine.State{Name: statemachine.New}}
	switch statemachine.EventType(t.Type) {
	case statemachine.Adopted:
	case statemachine.RolloutStarted:
		p.state.Name = statemachine.Done
	default:
		return p, t.Sequence == 1
	}
	return p, true
}
