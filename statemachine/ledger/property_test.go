package ledger

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// I6, I7: whatever happens, and wherever the manager dies, the log is whole: it verifies, it leads to the state that all
// events lead to, no number is used twice and none is left out.
func TestTheLogIsWholeWhereverTheManagerDies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cluster{records: map[string]v1alpha1.Page{}}
		var all []statemachine.Event
		for range rapid.IntRange(1, 12).Draw(t, "lives") {
			all = append(all, live(t, &c)...)
			check(t, c, all)
		}
	})
}

// live is one life of a manager: it loads, appends, seals and trims, and may die between any two writes. It returns the
// events that were stored.
func live(t *rapid.T, c *cluster) (stored []statemachine.Event) {
	crash := func() bool { return rapid.IntRange(0, 5).Draw(t, "crash") == 0 }
	l, err := Load("db", c.status, c.pages())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	for range rapid.IntRange(1, 4).Draw(t, "decisions") {
		events := drawEvents(t, l.State(), 60)
		next, err := l.Append(events)
		for errors.Is(err, ErrMustSeal) {
			alive, err2 := true, error(nil)
			if l, alive, err2 = c.seal(l, l.Cut(), crash); err2 != nil || !alive {
				return died(t, stored, err2)
			}
			l = l.TrimSealed()
			next, err = l.Append(events)
		}
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		if len(events) == 0 {
			continue
		}
		if rapid.Bool().Draw(t, "trim") {
			next = next.Trim()
		}
		if crash() {
			return stored
		}
		for i := len(events); i > 0; i-- {
			stored = append(stored, next.entries[len(next.entries)-i].event)
		}
		c.status, l = next.Status(), next
		alive := true
		if l, alive, err = c.seal(l, l.Complete(), crash); err != nil || !alive {
			return died(t, stored, err)
		}
	}
	return stored
}

func died(t *rapid.T, stored []statemachine.Event, err error) []statemachine.Event {
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	return stored
}

func check(t *rapid.T, c cluster, all []statemachine.Event) {
	if err := Verify("db", c.status, c.pages()); err != nil {
		t.Fatalf("verify: %v", err)
	}
	l, err := Load("db", c.status, c.pages())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	want, err := statemachine.FoldFromAnchor(all)
	if err != nil {
		t.Fatalf("fold: %v", err)
	}
	if len(all) > 0 && l.State() != want {
		t.Fatalf("loaded %+v\nwant   %+v", l.State(), want)
	}
	seen := int64(0)
	for _, page := range c.pages() {
		for _, tr := range page.Transitions {
			if seen++; tr.Sequence != seen {
				t.Fatalf("sequence %d in a record, want %d", tr.Sequence, seen)
			}
		}
	}
	if n := len(c.status.Transitions); n > 0 && c.status.Transitions[0].Sequence > seen+1 {
		t.Fatalf("status begins with %d, records end with %d", c.status.Transitions[0].Sequence, seen)
	}
	if c.status.Sequence != int64(len(all)) {
		t.Fatalf("sequence %d after %d events", c.status.Sequence, len(all))
	}
	needed := c.pages()
	for len(needed) > 0 && last(needed[0]) < l.NeedsFrom() {
		needed = needed[1:]
	}
	if again, err := Load("db", c.status, needed); err != nil || again.State() != l.State() {
		t.Fatalf("with the records from %d on: %v", l.NeedsFrom(), err)
	}
}
