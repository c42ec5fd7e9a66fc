package statemachine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// What a budget says when it has no room, and of several the one that has none.
func TestBudgets(t *testing.T) {
	all := Ordinals("0-2")
	room := Budget{Name: "room", Ordinals: all, Allowed: 1, Healthy: 3, Desired: 2, Expected: 3}
	for _, c := range []struct {
		name    string
		budgets []Budget
		says    string
	}{
		{"none", nil, ""},
		{"room", []Budget{room}, ""},
		{"of another pod", []Budget{{Name: "b", Ordinals: "0-1", Desired: 2, Expected: 2}}, ""},
		{"one of two", []Budget{room, {Name: "b", Ordinals: all, Healthy: 2, Desired: 2, Expected: 3}},
			"budget b allows no disruption: 2 of 3 pods are healthy, it wants 2"},
		{"never", []Budget{{Name: "b", Ordinals: all, Healthy: 3, Desired: 3, Expected: 3}},
			"budget b never allows a disruption: it wants 3 of 3 pods healthy"},
		{"no status", []Budget{{Name: "b", Ordinals: all, Stale: true, Allowed: 1}}, "budget b has no status of its newest generation yet"},
		{"unreadable", []Budget{{Ordinals: all, Problem: "Pawl may not list them", Allowed: 1}}, "Pawl may not list them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newScript()
			s.o.Policy.Budgets = c.budgets
			got := (&view{o: &s.o}).budget()
			g.Expect(got.Message).To(Equal(c.says))
			g.Expect(got.Result == GateOpen).To(Equal(c.says == ""))
		})
	}
}

// Every message of the policy's reasons stays short and ends in what comes next or what to do, whatever names are like.
func TestPolicyMessages(t *testing.T) {
	for _, name := range []string{"db", strings.Repeat("d", 52)} {
		for _, why := range []Reason{
			ReasonPolicyNotFound, ReasonGateClosed, ReasonGateError, ReasonDisruptionBudget, ReasonAwaitingApproval, ReasonBaking,
			ReasonConcurrencyLimit,
		} {
			t.Run(string(why), func(t *testing.T) {
				g := NewWithT(t)
				s := newScript()
				s.o.Name, s.o.UpdateRevision = name, name+"-6d74cb67d5"
				s.o.Policy = Policy{
					Name: strings.Repeat("p", 63), Missing: "there is none", Bake: time.Minute,
					Slots: Slots{Limit: 2, Holders: []string{"shop/" + strings.Repeat("a", 52), "shop/" + strings.Repeat("b", 52)}},
				}
				v := &view{o: &s.o, s: State{}.free()}
				message := v.explainStall(why, 1, finding{what: name + "-1 waits: gate " + strings.Repeat("g", maxGateName) + " is closed",
					detail: strings.Repeat("value ", 40)}, v.waitsUntil(why, 1, finding{reason: why}))
				g.Expect(length(message)).To(BeNumerically("<=", maxMessage), message)
				g.Expect(message).To(Or(MatchRegexp(`\d\d:\d\d:\d\dZ`), ContainSubstring("Approve: ")), message)
				if reasons[why].class != classNone {
					g.Expect(message).To(HaveSuffix(reasons[why].next))
				}
			})
		}
	}
}

// Whatever the pods are like and however often it is looked: no step and no repair passes a gate that is always asked and
// is not open, and none but those for a pod that is down passes any (I12). An answer that is no answer is an error.
func TestNoStepPastAGateThatIsNotOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScript()
		s.o.Parallel = rapid.Bool().Draw(t, "parallel")
		answers := rapid.SampledFrom([]Verdict{GateOpen, GateOpen, GateOpen, GateClosed, GateError, "", "Ajar", GateBypassed})
		drawGates := func() {
			s.o.Policy.Gates = nil
			for i := range rapid.IntRange(0, 3).Draw(t, "gates") {
				s.o.Policy.Gates = append(s.o.Policy.Gates, Gate{
					Name: fmt.Sprint("g", i), Verdict: answers.Draw(t, "answer"), Bypass: rapid.SampledFrom([]Bypass{BypassNever, BypassWhenPodDown, ""}).Draw(t, "bypass"),
				})
			}
		}
		for range 12 {
			switch rapid.IntRange(0, 3).Draw(t, "move") {
			case 0:
				if err := s.template([]datadriven.CmdArg{{Key: rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "template")}}); err != nil {
					t.Fatal(err)
				}
			case 1:
				rev := rapid.SampledFrom([]string{s.o.UpdateRevision, s.o.CurrentRevision}).Draw(t, "revision")
				if err := s.setPod(rapid.IntRange(0, 2).Draw(t, "pod"), rev, rapid.SampledFrom([]string{"ready", "pull", "crash", "unready", "absent"}).Draw(t, "state")); err != nil {
					t.Fatal(err)
				}
			case 2:
				s.o.Now = s.o.Now.Add(rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Second, 31 * time.Second, 61 * time.Second, 11 * time.Minute}).Draw(t, "wait"))
			default:
				drawGates()
			}
			d := Decide(s.state, s.o)
			if d.Bug != nil {
				t.Fatal(d.Bug)
			}
			v := &view{o: &s.o}
			for _, e := range d.Events {
				acts := e.Type == PodReplaced || e.Type == StepStarted && e.Reason != ReasonExternal && e.Reason != ReasonAdopted
				if acts && (v.shut(true) || e.Reason == "" && e.Type == StepStarted && v.shut(false)) {
					t.Fatalf("%s with gates %+v", describe(e), s.o.Policy.Gates)
				}
			}
			if d.Intent.Kind == ReplacePod && v.shut(true) {
				t.Fatalf("a pod is deleted with gates %+v", s.o.Policy.Gates)
			}
			s.state = d.State
			if rapid.Bool().Draw(t, "carried out") {
				s.carryOut(d.Intent)
			}
		}
	})
}
