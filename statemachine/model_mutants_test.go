package statemachine

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// mutant is a Pawl with one fault.
type mutant struct {
	name    string
	breaks  string // the invariant
	in      string // the setting that has what it takes
	without []string
	decide  func(State, Observation) Decision
	acts    bool // before it records
	replace map[string]func(*view)
}

// mostActions is how long a counterexample may be.
const mostActions = 15

var mutants = []mutant{
	{name: "parked when all pods are updated", breaks: "I11", in: "the last step", decide: parksEarly},
	{name: "several steps on one observation", breaks: "I2", in: "pods fail", decide: stepsOnAndOn},
	{name: "act before record", breaks: "I6", in: "pods fail", acts: true},
	{name: "a terminating Ready pod counts as ready", breaks: "I4", in: "pods fail", decide: withPods(staysReady)},
	{name: "the partition rises when a gate closes", breaks: "I11", in: "gates", replace: map[string]func(*view){"15 gate": risesForGate, "13 gate always asked": risesForGate}},
	{name: "currentRevision is believed after a re-creation", breaks: "I5", in: "created again", without: []string{"3 restore the revision"}},
	{name: "a Pending pod is dead", breaks: "I3", in: "pods fail", decide: withPods(diesPending)},
	{name: "the higher of two dead pods is replaced first", breaks: "I3", in: "two dead", replace: map[string]func(*view){"7 repair": repairsHighest}},
	{name: "parked past a pod that is being replaced", breaks: "I5", in: "no admission, another writer", decide: parksPast},

	{name: "a step beside unhealthy pods", breaks: "I4", in: "pods fail", without: []string{"14 pod unhealthy"}},
	{name: "a step while one is in flight", breaks: "I4", in: "pods fail", without: []string{"8 step in flight", "14 pod unhealthy"}},
	{
		name: "nobody looks at what others released", breaks: "I1", in: "no admission, another writer",
		without: []string{"6 released by others", "14 pod unhealthy", "8 step in flight"},
	},
	{name: "the claim of the next pod is not looked at", breaks: "I2", in: "lost claims", without: []string{"15 claim lost"}},
	{name: "a stale read is believed", breaks: "I8", in: "old caches", without: []string{"a0 stale read"}},
}

// TestMutantsAreFound: the model can fail. Each fault breaks its invariant in one of the worlds, after a few actions.
func TestMutantsAreFound(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			g := NewWithT(t)
			defer m.take(t)()
			for _, s := range append(settings(false), settings(true)...) {
				if s.name != m.in {
					continue
				}
				s.decide, s.actsFirst = m.decide, m.acts
				found := explore(s, func(v string) bool { return strings.HasPrefix(v, m.breaks+":") })
				for _, v := range found.violations() {
					if !strings.HasPrefix(v, m.breaks+":") {
						continue
					}
					f := found.broken[v]
					way := found.way(f.from, f.by...)
					t.Logf("%s, after %d actions", v, len(way))
					g.Expect(len(way)).To(BeNumerically("<=", mostActions), found.counterexample(v))
					return
				}
			}
			t.Errorf("nothing broke %s", m.breaks)
		})
	}
}

// take takes rules and facts out, or puts others in their place, and returns what puts them back.
func (m *mutant) take(t *testing.T) func() {
	t.Helper()
	oldRules, oldFacts := slices.Clone(rules), slices.Clone(whatHappened)
	for _, name := range m.without {
		r := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		f := slices.IndexFunc(whatHappened, func(f fact) bool { return f.name == name })
		switch {
		case r >= 0:
			rules[r].when = func(*view) bool { return false }
		case f >= 0:
			whatHappened[f].stops = func(*view) bool { return false }
		default:
			t.Fatalf("there is no rule or fact %q", name)
		}
	}
	for name, then := range m.replace {
		r := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		rules[r].then = then
		if name == "7 repair" {
			rules[r].when = func(v *view) bool { return v.enforce() && highestDead(v) >= 0 }
		}
	}
	return func() { rules, whatHappened = oldRules, oldFacts }
}

// parksEarly takes updatedReplicas for the end: a pod that is not available yet, or a revision that is not promoted, does
// not keep it from parking.
func parksEarly(s State, o Observation) Decision {
	d := Decide(s, o)
	if len(d.Events) > 0 || d.Intent.Kind != NoIntent || !s.Rollout.Open() || o.UpdatedReplicas != o.Replicas || o.Partition == Parked {
		return d
	}
	v := &view{o: &o, s: s, recorded: s}
	v.park()
	return Decision{State: v.s, Events: v.events, Intent: v.intent}
}

// stepsOnAndOn decides again as if the step were done.
func stepsOnAndOn(s State, o Observation) Decision {
	d := Decide(s, o)
	if d.Intent.Kind != SetPartition || !d.State.Step.Open() || len(d.Events) == 0 || d.Intent.Partition == 0 {
		return d
	}
	v := &view{o: &o, s: d.State, recorded: s, events: d.Events}
	o.Partition = d.Intent.Partition
	v.startStep(Event{}, v.nextPod())
	return Decision{State: v.s, Events: v.events, Intent: v.intent}
}

// withPods shows Pawl other pods than there are.
func withPods(change func(*Pod)) func(State, Observation) Decision {
	return func(s State, o Observation) Decision {
		o.Pods = slices.Clone(o.Pods)
		for i := range o.Pods {
			o.Pods[i].Containers = slices.Clone(o.Pods[i].Containers)
			change(&o.Pods[i])
		}
		return Decide(s, o)
	}
}

func staysReady(p *Pod) {
	if p.Ready {
		p.Terminating = false
	}
}

func diesPending(p *Pod) {
	if p.Phase == "Pending" {
		p.Containers[0].Waiting = string(ReasonInvalidImageName)
	}
}

func risesForGate(v *view) {
	if v.o.Partition == Parked {
		return
	}
	v.emit(v.leaving(Parked, Event{Type: PartitionParked}))
	v.setPartition()
}

func highestDead(v *view) int {
	for i := range slices.Backward(v.o.Pods) {
		if v.dead(i) && v.off(i) && v.replaceable(i) && !v.has(v.s.Replaced, i) {
			return i
		}
	}
	return -1
}

func repairsHighest(v *view) {
	i := highestDead(v)
	if !v.s.Step.Open() {
		v.emit(v.leaving(v.o.Partition, v.about(i, Event{Type: StepStarted, Reason: ReasonRepair})))
	}
	v.emit(v.about(i, Event{Type: PodReplaced}))
	v.intent = Intent{Kind: ReplacePod, Pod: v.o.Pods[i]}
}

// parksPast parks as high as can be, whatever the controller is at.
func parksPast(s State, o Observation) Decision {
	d := Decide(s, o)
	if d.Intent.Kind != SetPartition || d.Intent.Partition <= o.Partition {
		return d
	}
	parked := Parked
	for i := range d.Events {
		if e := &d.Events[i]; e.Partition != nil && *e.Partition == d.Intent.Partition {
			e.Partition = &parked
		}
	}
	if s.Name == "" {
		s = State{Name: New, Block: Block{Ordinal: noOrdinal}}.free()
	}
	d.State, _ = Fold(s, d.Events)
	d.Intent.Partition = Parked
	return d
}
