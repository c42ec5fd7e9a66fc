package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// S9: scaled away, all of it or some of it, while a template is pending.

// Scaled to nothing with a template pending: the StatefulSet controller takes the new revision for the current one, and
// no gate can be asked. The log says so, and what comes back is new.
func TestS9ScaleToNothingAndBack(t *testing.T) {
	tell(t, "s9-to-nothing", func(s *story) {
		s.create("1")
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		s.scale(0)
		s.waitFor("the end without a gate", outsideGates(2))
		s.Expect(s.set().Status.CurrentRevision).To(Equal(s.target()), "promoted")
		s.scale(3)
		s.allReady(3)
		s.Expect(s.born(0, 1, 2)).To(Equal([]string{s.target(), s.target(), s.target()}))
		s.Expect(s.progress().Status.StableRevision).To(Equal(s.target()))
		s.Eventually(s.scalings, patience).Should(Equal([]int32{0, 3}), "waiting for the log to say so")
		s.Consistently(func() string { return outsideGates(2)(s.progress().Status) }, 3*time.Second, 200*time.Millisecond).Should(BeEmpty(), "that was all")
		s.Expect(s.steps()).To(BeEmpty())
	})
}

// A pod that was scaled away hangs: all others are updated, and still the rollout is not complete before it is gone.
func TestS9ScaledAwayButStuck(t *testing.T) {
	tell(t, "s9-stuck", func(s *story) {
		s.create("1", slowly)
		s.stepTo("2", 1)
		s.keep(2, true)
		s.pause(false)
		s.replaced(0)
		s.edit(replicas(2)) // while the last pod comes up
		s.waitFor("the reason to show", state("Waiting", "NotPromoted", ""))
		s.Expect(s.steps()).To(Equal([]string{"2", "1", "0"}), "nothing is left to step")
		s.Consistently(func() string { return state("Waiting", "NotPromoted", "")(s.progress().Status) }, 3*time.Second, 200*time.Millisecond).
			Should(BeEmpty(), "not complete")
		s.keep(2, false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.parkedNow()
	})
}

// The same in one write with the template, before any step: it may take the StatefulSet controller's attention, but the
// steps go on as soon as it is gone, and it is not complete before.
func TestS9ScaledAwayAndStuckFromTheBeginning(t *testing.T) {
	tell(t, "s9-stuck-first", func(s *story) {
		s.create("1")
		s.keep(2, true)
		s.edit(func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = image("2")
			replicas(2)(set)
		})
		s.Eventually(s.scalings, patience).Should(Equal([]int32{2}), "waiting for the log to say so")
		s.Consistently(func() string { return rolloutDone(2)(s.progress().Status) }, 10*time.Second, 200*time.Millisecond).ShouldNot(BeEmpty(), "not complete")
		s.keep(2, false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.steps()).To(Equal([]string{"1", "0"}))
	})
}
