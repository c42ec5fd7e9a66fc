package ledger

import (
	"fmt"
	"slices"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Log is the history of the rollouts of one StatefulSet name, as far as status holds it. It is a value: every method
// that changes something returns a new Log.
type Log struct {
	name    string
	outside v1alpha1.RolloutProgressStatus // conditions and observedGeneration, which are not part of the log
	base    point
	entries []entry
	sealed  int64 // the records hold every transition up to here
}

// State is what the log leads to: what to decide on. Of a log that has just begun it is New, with the number and the
// stable revision of an older log of this name, if its records are still there.
func (l Log) State() statemachine.State { return l.end().state }

// Sequence is the number of the newest transition; 0 if there is none.
func (l Log) Sequence() int64 { return l.end().sequence }

// Digest is the head of the chain; empty if there is no transition. A log that goes on from the newest record has that
// record's.
func (l Log) Digest() string { return l.end().digest }

// SealedThrough is the sequence up to which records hold the log.
func (l Log) SealedThrough() int64 { return l.sealed }

// NeedsFrom is the sequence from which on records must be kept, because status cannot be read without them. Everything
// older is history and may be deleted.
func (l Log) NeedsFrom() int64 {
	if len(l.entries) > 0 && l.entries[0].event.Anchor() {
		return l.entries[0].transition.Sequence
	}
	return l.base.anchor
}

// maxBytes is how large the transitions in status may become together. A hundred of the largest that the API takes would be
// more than etcd does: RolloutStarted may hold 32 kB of ordinals.
const maxBytes = 250_000

// Append adds the events of one decision. The error is ErrMustSeal if there is no room for them, ErrTooManyEvents if
// there never will be; any other says which event cannot follow. The State of the new Log is the one that Load will
// find, so it may differ from the one that was decided in what storing takes away: times are cut to microseconds,
// and texts to what the API takes.
func (l Log) Append(events []statemachine.Event) (Log, error) {
	if len(events) > MaxEvents {
		return l, ErrTooManyEvents
	}
	if len(l.entries)+len(events) > v1alpha1.MaxTransitions {
		return l, ErrMustSeal
	}
	entries := slices.Clip(l.entries)
	p := l.end()
	for i, e := range events {
		next, err := p.append(e)
		if err != nil {
			return l, fmt.Errorf("append event %d of %d: %w", i+1, len(events), err)
		}
		entries = append(entries, next)
		p = next.after
	}
	if len(l.entries) > 1 && size(entries) > maxBytes { // Cut leaves one: more room than that cannot be made
		return l, ErrMustSeal
	}
	l.entries = entries
	return l, nil
}

// size is how many bytes the transitions are when they are stored.
func size(entries []entry) int {
	n := 0
	for _, e := range entries {
		n += e.size
	}
	return n
}

// Trim drops what is of earlier rollouts, once it is sealed: status keeps the current or last one.
func (l Log) Trim() Log {
	for i, e := range slices.Backward(l.entries) {
		if e.event.Type == statemachine.RolloutStarted {
			if i > 0 && l.entries[i-1].after.sequence <= l.sealed {
				return l.drop(i)
			}
			return l
		}
	}
	return l
}

// TrimSealed drops everything that is sealed, to make room. What is left may not make a log without its records.
func (l Log) TrimSealed() Log {
	return l.drop(l.index(l.sealed + 1))
}

func (l Log) drop(n int) Log {
	if n > 0 {
		l.base = l.entries[n-1].after
		l.entries = slices.Clone(l.entries[n:])
	}
	return l
}

// end is the point after the newest transition.
func (l Log) end() point { return l.point(len(l.entries)) }

// point is the point before the i-th transition in status.
func (l Log) point(i int) point {
	if i == 0 {
		return l.base
	}
	return l.entries[i-1].after
}

// index is the place of a sequence among the entries, or the nearest there is.
func (l Log) index(sequence int64) int {
	return int(min(max(sequence-l.base.sequence-1, 0), int64(len(l.entries))))
}
