package statemachine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// wander takes random actions in a new world, as many as take effect.
func wander(s *setting, seed uint64, most int) (world, []action) {
	w := newWorld(s)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:forbidigo // the worlds are random, the decisions are not
	fair, all := s.fairly(), append(s.fairly(), s.moves...)
	actions := []action{{act: actLook}}
	w.do(actions[0])
	for len(actions) < most {
		of := all
		if r.IntN(2) == 0 { //nolint:forbidigo // as above
			of = fair
		}
		if a := of[r.IntN(len(of))]; w.do(a) { //nolint:forbidigo // as above
			actions = append(actions, a)
		}
	}
	return w, actions
}

// What a counterexample tells is what happened: as a script it leads Pawl to the same decisions.
func TestModelTellsScripts(t *testing.T) {
	for _, s := range settings(false) {
		t.Run(s.name, func(t *testing.T) {
			g := NewWithT(t)
			for seed := range uint64(20) {
				_, actions := wander(s, seed, 40)
				told := *s
				told.diary = &diary{keeps: true}
				w := newWorld(&told)
				x := tell(&w, actions)
				g.Expect(x.decided).To(Equal(x.looks), "seed %d\n%s", seed, x)
			}
		})
	}
}

// everything is a world in which all may happen, without bounds: what the model does not go through to its end it walks
// through at random.
func everything(seed uint64) *setting {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:forbidigo // the worlds are random, the decisions are not
	roll := r.IntN                      //nolint:forbidigo // as above
	all := []int8{0, 1, 2, 3}
	s := &setting{
		replicas: int32(1 + roll(4)), parallel: roll(2) == 0, admission: roll(2) == 0, slow: true, contested: true,
		behaves: map[string]behaviour{revisions[roll(3)]: behaviour(roll(4))},
		budget:  budget{100, 100, 100, 100, 100},
		moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actRecreate, 0, 1, 2), each(actPartition, all...), each(actScale, all...),
			each(actMode, 0, 1, 2), each(actPause, 0, 1), each(actForce, all...), each(actUnready, all...), each(actExit, all...),
			each(actHeal, all...), each(actEvict, all...), each(actKill, all...), each(actStick, all...), each(actUnstick, all...),
			each(actSilent, all...), each(actBack, all...), each(actLose, all...), each(actFind, all...),
			each(actLoseLog, 0, 1), []action{{act: actPawlDies}, {act: actForget}, {act: actSleep}, {act: actFreezeSet}, {act: actFreezePods}, {act: actReplaced}}),
	}
	if delete(s.behaves, "A"); roll(2) == 0 {
		s.policy = Policy{
			Gates: []Gate{{}, {}}, CanaryPods: int32(roll(2)), Bake: time.Duration(roll(2)) * time.Minute,
			Budgets: make([]Budget, roll(2)), Slots: Slots{Limit: int32(roll(2))},
		}
		s.moves = slices.Concat(s.moves, each(actGate, 0, 1, 2), each(actGateUp, 0, 1, 2), each(actBudget, 0, 1), each(actSlot, 0, 1),
			[]action{{act: actApprove}})
	}
	return s
}

// Whatever happens in whatever order, no invariant is broken.
func TestModelAtRandom(t *testing.T) {
	const worlds = 3000
	for seed := range uint64(worlds) {
		s := everything(seed)
		w, actions := wander(s, seed, 120)
		if broken := w.diary.violations; len(broken) > 0 {
			told := everything(seed)
			told.diary = &diary{keeps: true}
			again := newWorld(told)
			t.Errorf("seed %d: %s\n%s", seed, strings.Join(broken, "\n"), tell(&again, actions))
			return
		}
	}
}

// I7: a crash between record and act, at any place, leads to the same end as none, with the same Step*, Rollout* and
// PodReplaced events.
func TestI7CrashBetweenRecordAndAct(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		for _, does := range []behaviour{startsWell, cannotPull} {
			for replicas := range int32(4) {
				undisturbed, writes := crashes(parallel, does, replicas+1, -1)
				for at := range writes {
					story, _ := crashes(parallel, does, replicas+1, at)
					NewWithT(t).Expect(story).To(Equal(undisturbed), "parallel: %t, %d pods, killed at write %d", parallel, replicas+1, at)
				}
			}
		}
	}
}

// crashes goes to template B and back to A, fairly, with a crash before one of the writes, and tells what was recorded
// and how many writes there were.
func crashes(parallel bool, does behaviour, replicas int32, at int) (story string, writes int) {
	s := &setting{
		parallel: parallel, replicas: replicas, admission: true, behaves: map[string]behaviour{"B": does}, diary: &diary{keeps: true},
		budget: budget{templates: 2, faults: 1},
	}
	w := newWorld(s)
	for _, template := range []int8{1, 0} {
		w.do(action{act: actTemplate, n: template})
		const rounds = 60
		for range rounds {
			for _, a := range s.fairly() {
				if a.act == actWrite && w.doing.kind != NoIntent {
					if writes == at {
						a = action{act: actPawlDies}
					}
					writes++
				}
				w.do(a)
			}
		}
	}
	return storyOf(s.diary.log) + w.standing(), writes
}

// storyOf is the Step*, Rollout* and PodReplaced events, without times.
func storyOf(log []Event) string {
	var lines []string
	for _, e := range log {
		if strings.HasPrefix(string(e.Type), "Step") || strings.HasPrefix(string(e.Type), "Rollout") || e.Type == PodReplaced {
			lines = append(lines, string(e.Type)+" "+string(e.Reason)+" "+string(e.Ordinals))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
