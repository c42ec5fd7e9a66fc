package statemachine

import (
	"testing"

	. "github.com/onsi/gomega"
)

// The library keeps the last of two lines with one event and source, and says nothing.
func TestTableHasNoDuplicate(t *testing.T) {
	g := NewWithT(t)
	seen := map[[2]string]string{}
	for _, e := range transitions() {
		for _, src := range e.Src {
			key := [2]string{e.Name, src}
			g.Expect(seen).NotTo(HaveKey(key), "the table has two lines for %s in %s", e.Name, src)
			seen[key] = e.Dst
		}
	}
	g.Expect(seen).NotTo(BeEmpty())
}

// Every event is in the table, and the machine agrees with it in every state.
func TestTableIsWhatTheMachineDoes(t *testing.T) {
	lines := map[EventType]line{}
	for _, l := range table {
		lines[l.event] = l
	}
	for event, l := range lines {
		for _, from := range append([]StateName{New}, anyState...) {
			t.Run(string(event)+" in "+string(from), func(t *testing.T) {
				g := NewWithT(t)
				to, err := newMachine(from).fire(event)
				folded, foldErr := after(from, event)
				g.Expect(folded).To(Equal(to), "the fold goes where the machine goes")
				g.Expect(foldErr != nil).To(Equal(err != nil))
				legal := false
				for _, f := range l.from {
					legal = legal || f == from
				}
				if !legal {
					g.Expect(err).To(MatchError(ContainSubstring(string(event))))
					g.Expect(to).To(Equal(from), "an illegal event moves nothing")
					return
				}
				g.Expect(err).NotTo(HaveOccurred())
				want := l.to
				if want == same {
					want = from
				}
				g.Expect(to).To(Equal(want))
			})
		}
	}
	NewWithT(t).Expect(lines).To(HaveLen(20), "twenty events")
}
