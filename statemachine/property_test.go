package statemachine

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// dice gives a number from 0 to n-1: drawn by rapid, which shrinks what fails, or from a seed.
type dice func(n int) int

func rapidDice(t *rapid.T) dice {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "dice") }
}

func seededDice(seed uint64) dice {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:forbidigo // the worlds are random, the decisions are not
	return r.IntN                       //nolint:forbidigo // as above
}

// drawWorld draws a StatefulSet and which of the revisions A, B, C cannot start, or may not be created.
func drawWorld(roll dice) *world {
	bad, refused := map[string]bool{}, map[string]bool{}
	if rev := []string{"", "B", "C"}[roll(3)]; rev != "" {
		map[bool]map[string]bool{true: bad, false: refused}[roll(2) == 0][rev] = true
	}
	w := newWorld(roll(2) == 0, int32(1+roll(4)), bad)
	w.refused = refused
	w.admission = roll(2) == 0
	return w
}

// move makes one random move of the world: the controller, a pod, people, or Pawl.
func (w *world) move(roll dice) {
	pod := int32(roll(4))
	switch roll(27) {
	case 0, 1, 2:
		w.controllerPods()
	case 3, 4:
		w.controllerStatus()
	case 5, 6, 7:
		w.ready(pod)
	case 8, 9:
		w.gone()
	case 10:
		if w.fail(pod, roll(2) == 0) {
			w.tell("db-%d fails", pod)
		}
	case 11:
		if w.pods[pod] != nil && !w.pods[pod].Terminating {
			w.kill(pod, "someone")
		}
	case 12:
		w.setTemplate([]string{"A", "B", "C"}[roll(3)])
	case 13:
		w.now = w.now.Add(time.Duration([]int{1, 5, 31, 61, 601}[roll(5)]) * time.Second)
	case 14:
		w.paused = !w.paused
	case 15:
		w.replicas = int32(roll(5))
		w.tell("scale to %d", w.replicas)
		w.edit()
	case 16:
		if w.admission {
			return // it puts the partition back
		}
		w.partition = int32(roll(5))
		w.tell("someone writes partition %d", w.partition)
		w.foreign = true
		w.edit()
	case 17:
		w.decide() // and crash before the write
		w.pending = Intent{}
	case 18:
		w.recreate([]string{"A", "B", "C"}[roll(3)])
	case 19:
		w.forgets()
	case 20:
		w.force = Force{Revision: []string{"A", "B", "C"}[roll(3)], Partition: int32(roll(4)), Reason: "dice"}
		w.foreign = true // a person ordered it
	case 21:
		w.lost[pod] = !w.lost[pod]
		w.tell("the claim of db-%d is lost: %t", pod, w.lost[pod])
	case 22:
		clear(w.refused) // who refused thinks better of it
	default:
		w.decide()
		w.act()
	}
}

// wander makes Pawl look once and then a number of random moves.
func wander(roll dice, most int) *world {
	w := drawWorld(roll)
	w.decide()
	w.act()
	for range 1 + roll(most) {
		w.move(roll)
	}
	return w
}

// holds: whatever happens in whatever order, with a crash at any write, the invariant holds.
func holds(t *testing.T, invariant string) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := wander(rapidDice(t), 120)
		if broken := w.broken(invariant); len(broken) > 0 {
			t.Fatalf("%s\n%s", strings.Join(broken, "\n"), strings.Join(w.trace, "\n"))
		}
	})
}

// broken is what was seen against an invariant, or against any if it is empty.
func (w *world) broken(invariant string) []string {
	var found []string
	for _, v := range w.violations {
		if invariant == "" || strings.HasPrefix(v, invariant+":") {
			found = append(found, v)
		}
	}
	return found
}

func TestI1Order(t *testing.T)               { holds(t, "I1") }
func TestI2OneInFlight(t *testing.T)         { holds(t, "I2") }
func TestI3OnlyDeadPodsAreFree(t *testing.T) { holds(t, "I3") }
func TestI4AllOthersHealthy(t *testing.T)    { holds(t, "I4") }
func TestI5LostPodsReturnOld(t *testing.T)   { holds(t, "I5") }
func TestI6NothingUnrecorded(t *testing.T)   { holds(t, "I6") }
func TestI7TwiceIsOnce(t *testing.T)         { holds(t, "I7") }
func TestI8StaleReads(t *testing.T)          { holds(t, "I8") }
func TestI9NoEmptyWrite(t *testing.T)        { holds(t, "I9") }
func TestI11NoStepTakenBack(t *testing.T)    { holds(t, "I11") }
func TestNoIllegalEvent(t *testing.T)        { holds(t, "illegal event") }

// settle lets a fair world run: the controller works, pods that can become ready do, time passes, Pawl looks.
func (w *world) settle() {
	w.paused = false
	for range 400 {
		w.gone()
		w.controllerStatus()
		w.controllerPods()
		for i := range w.pods {
			w.ready(i)
		}
		w.controllerStatus()
		d := w.decide()
		w.act()
		if len(d.Events) == 0 && d.Intent.Kind == NoIntent {
			w.now = w.now.Add(20 * time.Second)
		}
	}
}

// I9 and liveness: left to itself, every rollout ends in Done, or in a Blocked that names its reason; a template that
// works then leads to Done, without anyone deleting a pod.
func TestI9AndLiveness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := wander(rapidDice(t), 80)
		w.settle()
		if w.state.Name != Done && w.state.Name != Blocked {
			t.Fatalf("stuck in %s %s %s\n%s", w.state.Name, w.state.Reason, w.state.Message, strings.Join(w.trace, "\n"))
		}
		if w.state.Name == Blocked && (!blocks(w.state.Reason) || w.state.Message == "") {
			t.Fatalf("Blocked without a reason that says so: %q", w.state.Reason)
		}
		events := len(w.log)
		w.settle()
		if w.state.Name == Done && len(w.log) != events {
			t.Fatalf("I9: not quiet: %s\n%s", describe(w.log[len(w.log)-1]), strings.Join(w.trace, "\n"))
		}
	})
}

// I6: a reader who has only the log since the newest Adopted or RolloutStarted computes the same state.
func TestI6FoldFromAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := wander(rapidDice(t), 80)
		last := 0
		for i, e := range w.log {
			if e.Anchor() {
				last = i
			}
		}
		got, err := FoldFromAnchor(w.log[last:])
		if err != nil || got != w.state {
			t.Fatalf("from the anchor: %v\n%+v\nfrom the beginning:\n%+v", err, got, w.state)
		}
	})
}

// I7: a crash between record and act, at any place, leads to the same end as none, with the same Step*, Rollout* and
// PodReplaced events.
func TestI7CrashBetweenRecordAndAct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parallel, replicas := rapid.Bool().Draw(t, "parallel"), int32(rapid.IntRange(1, 4).Draw(t, "replicas"))
		bad := map[string]bool{}
		if rapid.Bool().Draw(t, "bad image") {
			bad["B"] = true
		}
		run := func(crashAt int) *world {
			w := newWorld(parallel, replicas, bad)
			w.decide()
			w.act()
			for i, rev := range []string{"B", "A"} {
				w.setTemplate(rev)
				w.controllerStatus()
				for n := range 60 {
					w.gone()
					w.controllerPods()
					for i := range w.pods {
						w.ready(i)
					}
					w.controllerStatus()
					w.decide()
					if i*60+n == crashAt {
						w.pending = Intent{}
					}
					w.act()
					w.now = w.now.Add(2 * time.Second)
				}
			}
			return w
		}
		want, got := run(-1), run(rapid.IntRange(0, 119).Draw(t, "crash at"))
		if a, b := want.story(), got.story(); a != b {
			t.Fatalf("undisturbed:\n%s\nwith a crash:\n%s", a, b)
		}
	})
}

// story is the Step*, Rollout* and PodReplaced events, without times.
func (w *world) story() string {
	var lines []string
	for _, e := range w.log {
		if strings.HasPrefix(string(e.Type), "Step") || strings.HasPrefix(string(e.Type), "Rollout") || e.Type == PodReplaced {
			lines = append(lines, string(e.Type)+" "+string(e.Reason)+" "+string(e.Ordinals))
		}
	}
	return strings.Join(lines, "\n") + "\n" + string(w.state.Name) + " " + string(w.state.Reason)
}
