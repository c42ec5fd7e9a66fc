package statemachine

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
)

// A pod that flaps ten thousand times beside a rollout leaves a short log, whatever the beat, also while no deadline ends
// it: why the rollout waits first is in it, and what it is at the end. Nothing is taken out afterwards; what comes and goes
// is no event to begin with.
func TestFlapsAreCoalesced(t *testing.T) {
	for _, turn := range []struct{ up, down string }{{"ready", "unready"}, {"restarted", "crash"}} {
		for _, every := range []time.Duration{time.Second, 5 * time.Second, 40 * time.Second} {
			for _, deadline := range []time.Duration{10 * time.Minute, 24 * time.Hour} { // the default, and the most there can be
				t.Run(fmt.Sprint(turn.down, " and ", turn.up, " every ", every, " until ", deadline), func(t *testing.T) {
					t.Parallel()
					flap(t, turn.up, turn.down, every, deadline)
				})
			}
		}
	}
}

func flap(t *testing.T, up, down string, every, deadline time.Duration) {
	t.Helper()
	const flaps = 10_000
	g, s := NewWithT(t), newScript()
	s.o.ProgressDeadline = deadline
	s.look(g, 0)
	g.Expect(s.setPod(0, "", down)).To(Succeed())
	g.Expect(s.template([]datadriven.CmdArg{{Key: "B"}})).To(Succeed())
	s.log = nil
	begin := s.o.Now
	s.look(g, 2*settleTime)
	for range flaps {
		g.Expect(s.setPod(0, "", up)).To(Succeed())
		s.look(g, every)
		g.Expect(s.setPod(0, "", down)).To(Succeed())
		s.look(g, every)
	}
	s.look(g, deadline+time.Hour) // it stays down

	for i, e := range s.log {
		minutes := e.Time.Sub(begin).Minutes()
		g.Expect(float64(i+1)).To(BeNumerically("<=", 6+1.2*minutes), "%d events in %.0f minutes; the last is %s", i+1, minutes, describe(e))
	}
	g.Expect(len(s.log)).To(BeNumerically("<", 10), "a handful, however long it goes on")
	first, last := s.log[1], s.log[len(s.log)-1]
	g.Expect(s.log[0].Type).To(Equal(RolloutStarted))
	g.Expect(first).To(And(HaveField("Type", Held), HaveField("Pod", "db-0"), HaveField("Time", BeTemporally("<=", begin.Add(settleTime)))))
	g.Expect(last).To(And(HaveField("Type", BlockedEvent), HaveField("Pod", "db-0"), HaveField("State", s.state.Name)))
	t.Logf("%d flaps in %.0f minutes are %d events", flaps, s.o.Now.Sub(begin).Minutes(), len(s.log))
}

// look decides now, at every moment that was asked for while that time passes, and at its end.
func (s *script) look(g *WithT, pass time.Duration) {
	for end := s.o.Now.Add(pass); ; {
		d := Decide(s.state, s.o)
		g.Expect(d.Bug).NotTo(HaveOccurred())
		s.state, s.log = d.State, append(s.log, d.Events...)
		s.carryOut(d.Intent)
		if !s.o.Now.Before(end) {
			return
		}
		if d.WakeAt.After(s.o.Now) && d.WakeAt.Before(end) {
			s.o.Now = d.WakeAt
		} else {
			s.o.Now = end
		}
	}
}
