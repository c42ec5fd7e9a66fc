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
		for range rapid.IntRange(1, 8).Draw(t, "lives") {
			all = append(all, live(t, &c)...)
			check(t, c, all)
		}
	})
}

// life is one life of a manager. It may die before any write.
type life struct {
	t *rapid.T
	*cluster
	dead bool
}

func (m *life) crash() bool {
	m.dead = m.dead || rapid.IntRange(0, 5).Draw(m.t, "crash") == 0
	return m.dead
}

// live loads, appends, seals and trims. It returns the events that were stored.
func live(t *rapid.T, c *cluster) (stored []statemachine.Event) {
	m := &life{t: t, cluster: c}
	l, err := Load("db", c.status, c.pages())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	for range rapid.IntRange(1, 4).Draw(t, "decisions") {
		events := drawEvents(t, l.State(), 50)
		next := m.append(l, events)
		if m.dead {
			return stored
		}
		if len(events) == 0 {
			continue
		}
		if rapid.Bool().Draw(t, "trim") {
			next = next.Trim()
		}
		if m.crash() {
			return stored
		}
		for _, e := range next.entries[len(next.entries)-len(events):] {
			stored = append(stored, e.event)
		}
		c.status = next.Status()
		l = m.seal(next, next.Complete())
		if m.dead {
			return stored
		}
	}
	return stored
}

// append makes room as often as it takes.
func (m *life) append(l Log, events []statemachine.Event) Log {
	for {
		next, err := l.Append(events)
		if err == nil {
			return next
		}
		if !errors.Is(err, ErrMustSeal) {
			m.t.Fatalf("append: %v", err)
		}
		if l = m.seal(l, l.Cut()).TrimSealed(); m.dead {
			return l
		}
	}
}

// seal creates records.
func (m *life) seal(l Log, pages []v1alpha1.Page) Log {
	for _, page := range pages {
		if first(page) != l.SealedThrough()+1 {
			return l // an earlier record ended elsewhere: the pages have to be asked for again
		}
		if m.crash() {
			return l
		}
		name := RecordName("db", first(page))
		if _, exists := m.records[name]; !exists {
			m.records[name] = page
		}
		var err error
		if l, err = l.Sealed(m.records[name]); err != nil {
			m.t.Fatalf("seal: %v", err)
		}
	}
	return l
}

// check loads and verifies what is left after a life.
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
	if c.status.Sequence != int64(len(all)) {
		t.Fatalf("sequence %d after %d events", c.status.Sequence, len(all))
	}
	checkNumbers(t, c)
	needed := c.pages()
	for len(needed) > 0 && last(needed[0]) < l.NeedsFrom() {
		needed = needed[1:]
	}
	if again, err := Load("db", c.status, needed); err != nil || again.State() != l.State() {
		t.Fatalf("with the records from %d on: %v", l.NeedsFrom(), err)
	}
}

func checkNumbers(t *rapid.T, c cluster) {
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
}
