package statemachine

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// BenchmarkDecide is one decision in the middle of a rollout, in which every pod has to be looked at.
func BenchmarkDecide(b *testing.B) {
	for _, pods := range []int{3, 1000} {
		s := newScript()
		s.scale(pods)
		for i := range s.o.Pods {
			if err := s.setPod(i, "A", "ready"); err != nil {
				b.Fatal(err)
			}
		}
		s.o.Policy.Gates = []Gate{{Name: "healthy", Verdict: GateClosed, Message: "Healthy=False"}}
		s.state = Decide(s.state, s.o).State
		if err := s.template([]datadriven.CmdArg{{Key: "B"}}); err != nil {
			b.Fatal(err)
		}
		s.state = Decide(s.state, s.o).State
		b.Run(fmt.Sprintf("%d pods", pods), func(b *testing.B) {
			for b.Loop() {
				if d := Decide(s.state, s.o); d.Bug != nil {
					b.Fatal(d.Bug)
				}
			}
		})
	}
}
