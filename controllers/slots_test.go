package controllers

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

var slotEpoch = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

func stepping(why statemachine.Reason) statemachine.State {
	return statemachine.State{
		Name: statemachine.Stepping, Step: statemachine.Step{Ordinals: "2", Reason: why}, Rollout: statemachine.Rollout{StartedAt: slotEpoch},
	}
}

func queueing(minute int) statemachine.State {
	return statemachine.State{
		Name: statemachine.Waiting, Hold: statemachine.Hold{Reason: statemachine.ReasonConcurrencyLimit},
		Rollout: statemachine.Rollout{StartedAt: slotEpoch.Add(time.Duration(minute) * time.Minute)},
	}
}

func TestSlotsNameHoldersAndThoseWhoseTurnComesFirst(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	s := &slots{wake: func(key types.NamespacedName) { woken = append(woken, key.Name) }}
	me := member{policy: "fleet", since: slotEpoch.Add(3 * time.Minute)}
	_ = s.of(keyOf("me"), me, 2)
	s.follow(keyOf("a"), "fleet", stepping(""))
	s.follow(keyOf("b"), "fleet", stepping(""))
	s.follow(keyOf("dead"), "fleet", stepping(statemachine.ReasonPodDead))
	s.follow(keyOf("unhealthy"), "fleet", stepping(statemachine.ReasonOnlyUnhealthyPod))
	s.follow(keyOf("other"), "default", stepping(""))
	s.follow(types.NamespacedName{Namespace: "elsewhere", Name: "c"}, "default", stepping(""))
	s.follow(keyOf("late"), "fleet", queueing(4))
	s.follow(keyOf("early"), "fleet", queueing(2))
	s.follow(keyOf("me"), "fleet", queueing(3))
	got := s.of(keyOf("me"), me, 2)
	g.Expect(got.beside).To(Equal([]types.NamespacedName{keyOf("a"), keyOf("b"), keyOf("other")}))
	g.Expect(got.slots).To(Equal(statemachine.Slots{Limit: 2, Holders: []string{"shop/a", "shop/b"}, Ahead: []string{"shop/early"}}))
	g.Expect(woken).To(BeEmpty())

	s.follow(keyOf("a"), "fleet", statemachine.State{Name: statemachine.Done})
	g.Expect(woken).To(Equal([]string{"early"}), "one slot is free: the oldest is called")
	s.follow(keyOf("early"), "fleet", statemachine.State{Name: statemachine.Waiting}) // paused meanwhile
	g.Expect(woken).To(Equal([]string{"early", "me"}), "and if that one does not take it, the next")
	s.leave(keyOf("b"))
	g.Expect(woken).To(Equal([]string{"early", "me", "me", "late"}))
}

// A StatefulSet whose log is damaged, or that some error keeps, is first in the queue for ever: those behind it must not wait.
func TestOneThatCannotGoOnLetsOthersPass(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	s := &slots{wake: func(key types.NamespacedName) { woken = append(woken, key.Name) }}
	me := member{policy: "fleet", since: slotEpoch.Add(3 * time.Minute)}
	g.Expect(s.of(keyOf("me"), me, 1).slots.Ahead).To(BeEmpty())
	s.follow(keyOf("damaged"), "fleet", queueing(2))
	s.follow(keyOf("me"), "fleet", queueing(3))
	g.Expect(s.of(keyOf("me"), me, 1).slots.Ahead).To(Equal([]string{"shop/damaged"}))
	woken = nil
	s.pass(keyOf("damaged"))
	g.Expect(woken).To(Equal([]string{"me"}))
	g.Expect(s.of(keyOf("me"), me, 1).slots.Ahead).To(BeEmpty())

	s.follow(keyOf("damaged"), "fleet", stepping(""))
	s.pass(keyOf("damaged"))
	g.Expect(s.of(keyOf("me"), me, 1).slots.Holders).To(Equal([]string{"shop/damaged"}), "what is being replaced stays so")
}

// The room of a budget may have been free in its status for long when the step that took it ends.
func TestTheEndOfAStepCallsThoseThatWaitForABudget(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	s := &slots{wake: func(key types.NamespacedName) { woken = append(woken, key.Name) }}
	waits := statemachine.State{Name: statemachine.Waiting, Hold: statemachine.Hold{Reason: statemachine.ReasonDisruptionBudget}}
	blocked := statemachine.State{Name: statemachine.Blocked, Block: statemachine.Block{Reason: statemachine.ReasonDisruptionBudget}}
	s.follow(keyOf("a"), "default", stepping(""))
	s.follow(keyOf("b"), "default", waits)
	s.follow(keyOf("c"), "fleet", blocked)
	s.follow(types.NamespacedName{Namespace: "elsewhere", Name: "d"}, "default", waits)
	g.Expect(woken).To(BeEmpty())
	s.follow(keyOf("a"), "default", statemachine.State{Name: statemachine.Waiting})
	g.Expect(woken).To(ConsistOf("b", "c"))
}

// However many workers ask at once, no more than the limit take a slot.
func TestSlotsAreNotTakenTwice(t *testing.T) {
	g := NewWithT(t)
	const limit, sets, rounds = 3, 50, 40
	s := &slots{wake: func(types.NamespacedName) {}}
	var mutex sync.Mutex
	held, most := 0, 0
	var workers sync.WaitGroup
	for i := range sets {
		workers.Go(func() {
			key, me := keyOf(fmt.Sprint("s", i)), member{policy: "fleet", since: slotEpoch}
			for range rounds {
				seen := s.of(key, me, limit)
				if len(seen.slots.Holders) >= limit || !s.take(key, me, seen.version) {
					continue
				}
				mutex.Lock()
				held++
				most = max(most, held)
				mutex.Unlock()
				// Waits for nothing: the slot is held for a while, so that the others meet it taken.
				time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
				mutex.Lock()
				held--
				mutex.Unlock()
				s.leave(key)
			}
		})
	}
	workers.Wait()
	g.Expect(most).To(And(BeNumerically(">", 1), BeNumerically("<=", limit)))
}

// What a restarted manager takes from status: a step that takes a slot is open, or in doubt may be.
func TestStepsThatWereRecordedBeforeARestartHoldSlots(t *testing.T) {
	type line struct{ kind, reason string }
	for _, c := range []struct {
		name  string
		state v1alpha1.State
		log   []line
		want  bool
	}{
		{"stepping", v1alpha1.StateStepping, []line{{"RolloutStarted", ""}, {"StepStarted", ""}, {"Held", "NotReady"}}, true},
		{"stepping a dead pod", v1alpha1.StateStepping, []line{{"StepStarted", "PodDead"}}, false},
		{"blocked in a step", v1alpha1.StateBlocked, []line{{"StepStarted", ""}, {"Blocked", "ImagePullBackOff"}}, true},
		{"blocked between steps", v1alpha1.StateBlocked, []line{{"StepStarted", ""}, {"StepCompleted", ""}, {"Blocked", "GateClosed"}}, false},
		{"stepping, and the page is full of other things", v1alpha1.StateStepping, []line{{"Held", ""}, {"Released", ""}}, true},
		{"blocked, and the page is full of other things", v1alpha1.StateBlocked, []line{{"Blocked", ""}, {"BlockedAgain", ""}}, true},
		{"waiting", v1alpha1.StateWaiting, []line{{"StepStarted", ""}, {"StepAborted", ""}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := v1alpha1.RolloutProgressStatus{State: c.state}
			for _, l := range c.log {
				status.Transitions = append(status.Transitions, v1alpha1.Transition{Type: l.kind, Reason: l.reason, Time: metav1.NowMicro()})
			}
			NewWithT(t).Expect(stepOpen(status)).To(Equal(c.want))
		})
	}
}
