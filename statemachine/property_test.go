package statemachine

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawWorld draws a StatefulSet and which of the revisions A, B, C cannot start.
func drawWorld(t *rapid.T) *world {
	bad := map[string]bool{}
	if rev := rapid.SampledFrom([]string{"", "B", "C"}).Draw(t, "bad"); rev != "" {
		bad[rev] = true
	}
	w := newWorld(rapid.Bool().Draw(t, "parallel"), int32(rapid.IntRange(1, 4).Draw(t, "replicas")), bad)
	w.admission = rapid.Bool().Draw(t, "admission")
	return w
}

// move makes one random move of the world: the controller, a pod, people, or Pawl.
func (w *world) move(t *rapid.T) {
	pod := int32(rapid.IntRange(0, 3).Draw(t, "pod"))
	switch rapid.IntRange(0, 21).Draw(t, "move") {
	case 0, 1, 2:
		w.controllerPods()
	case 3, 4:
		w.controllerStatus()
	case 5, 6, 7:
		w.ready(pod)
	case 8, 9:
		w.gone()
	case 10:
		if w.fail(pod, rapid.Bool().Draw(t, "exit")) {
			w.tell("db-%d fails", pod)
		}
	case 11:
		if w.pods[pod] != nil && !w.pods[pod].Terminating {
			w.kill(pod, "someone")
		}
	case 12:
		w.setTemplate(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "template"))
	case 13:
		w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 5, 31, 61, 601}).Draw(t, "seconds")) * time.Second)
	case 14:
		w.paused = !w.paused
	case 15:
		w.replicas = int32(rapid.IntRange(0, 4).Draw(t, "scale"))
		w.tell("scale to %d", w.replicas)
		w.edit()
	case 16:
		if w.admission {
			return // it puts the partition back
		}
		w.partition = int32(rapid.IntRange(0, 4).Draw(t, "partition"))
		w.tell("someone writes partition %d", w.partition)
		w.foreign = true
		w.edit()
	case 17:
		w.decide() // and crash before the write
		w.pending = Intent{}
	default:
		w.decide()
		w.act()
	}
}

func (w *world) report(t *rapid.T) {
	if len(w.violations) > 0 {
		t.Fatalf("%s\n%s", strings.Join(w.violations, "\n"), strings.Join(w.trace, "\n"))
	}
}

// Whatever happens in whatever order, with a crash at any write: I1-I4, I6-I9 and I11 hold, and no event is illegal.
func TestSafety(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.decide()
		w.act()
		for range rapid.IntRange(1, 120).Draw(t, "moves") {
			w.move(t)
			w.report(t)
		}
	})
}

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
func TestLiveness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.decide()
		w.act()
		for range rapid.IntRange(1, 80).Draw(t, "moves") {
			w.move(t)
		}
		w.settle()
		w.report(t)
		if w.state.Name != Done && w.state.Name != Blocked {
			t.Fatalf("stuck in %s %s %s\n%s", w.state.Name, w.state.Reason, w.state.Message, strings.Join(w.trace, "\n"))
		}
		if w.state.Name == Blocked && (w.state.Reason == "" || w.state.Message == "") {
			t.Fatalf("Blocked without a reason")
		}
		events := len(w.log)
		w.settle()
		if w.state.Name == Done && len(w.log) != events {
			t.Fatalf("I9: not quiet: %s\n%s", describe(w.log[len(w.log)-1]), strings.Join(w.trace, "\n"))
		}
	})
}

// I6: a reader who has only the log since the newest Adopted or RolloutStarted computes the same state.
func TestFoldFromAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.decide()
		w.act()
		for range rapid.IntRange(1, 80).Draw(t, "moves") {
			w.move(t)
		}
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
func TestCrashBetweenRecordAndAct(t *testing.T) {
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
