package statemachine

import (
	"fmt"
)

var (
	noHold  = Hold{Ordinal: noOrdinal}
	noClock = Clock{Ordinal: noOrdinal}
)

// free is the state with nothing that holds it.
func (s State) free() State {
	s.Hold, s.Clock = noHold, noClock
	return s
}

// next is the hold after a Held or Blocked event. Which of the gates it is may change and change back: none of them
// begins the wait anew.
func (h Hold) next(e Event) Hold {
	n := Hold{Reason: e.Reason, Ordinal: first(e.Ordinals), Gate: shutGate(e.Gates), Changed: e.Time, Since: e.Time}
	if h.Reason.gate() && n.Reason.gate() {
		n.Since = h.Since
	}
	return n
}

// remember takes over the facts that any event may carry.
func (s State) remember(e Event) State {
	if e.Generation > 0 {
		s.Generation = e.Generation
	}
	if e.Partition != nil {
		s.Partition, s.PreviousPartition, s.PartitionAt = *e.Partition, *e.Partition, e.Generation
		if e.PreviousPartition != nil && e.Type != PartitionOverridden { // which was written, by someone else
			s.PreviousPartition = *e.PreviousPartition
		}
	}
	if e.Replicas != nil {
		s.Replicas = *e.Replicas
	}
	if e.Start != nil {
		s.Start = *e.Start
	}
	if e.TemplateDigest != "" {
		s.TemplateDigest = e.TemplateDigest
	}
	return s
}

// next is the clock after a Held or Blocked event.
func (c Clock) next(e Event) Clock {
	n := Clock{Ordinal: first(e.Ordinals), Reason: e.Reason, Named: e.Time, Since: e.Time, Any: e.Time}
	if c.Ordinal != noOrdinal {
		n.Any = c.Any
	}
	switch {
	case e.Reason.class() == classNone:
		return noClock
	case n.Ordinal == noOrdinal, e.Reason == ReasonSupersededPodStuck && c.Ordinal == n.Ordinal:
		return c
	case c.Ordinal != n.Ordinal:
		return n
	}
	n.Named = c.Named
	if c.Reason.class() == n.Reason.class() {
		n.Since = c.Since
	}
	return n
}

// next is the block after a Blocked event.
func (b Block) next(e Event) Block {
	n := Block{Reason: e.Reason, Ordinal: first(e.Ordinals), Gate: shutGate(e.Gates), Since: e.Time, Changed: e.Time}
	if b.Reason != "" {
		n.Since = b.Since
	}
	return n
}

// scaled forgets the ordinals that are out of range. A step of which none is left is aborted by an event of its own.
func (s State) scaled() State {
	inRange := func(n int32) bool { return n >= s.Start && n-s.Start < s.Replicas }
	if s.Name == Done && !s.Rollout.Open() {
		s.Finished = ordinalRange(s.Start, s.Replicas) // new pods come at the revision that all have
	}
	s.Finished = s.Finished.keep(inRange)
	if rest := s.Step.Ordinals.keep(inRange); rest != "" {
		s.Step.Ordinals = rest
	}
	return s
}

// ordinalRange is the set of n ordinals from start on.
func ordinalRange(start, n int32) Ordinals {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return OrdinalsOf(start)
	default:
		return Ordinals(fmt.Sprintf("%d-%d", start, start+n-1))
	}
}

// first is the lowest ordinal of the set, or noOrdinal.
func first(o Ordinals) int32 {
	for n := range o.All() {
		return n
	}
	return noOrdinal
}
