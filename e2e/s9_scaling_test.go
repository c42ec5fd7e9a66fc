package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// S9: scaling. What is added while a rollout is held back comes at the revision that works (I5); what is added above a
// partition that was lowered comes new, and has to be available before the next step (I2). The log has each Scaled.

// The template and the number of pods change in one write: the new pods are parked like the old ones.
func TestS9ScaleUpWithTheTemplate(t *testing.T) {
	tell(t, "s9-up-with-template", func(s *story) {
		s.create("1")
		s.edit(func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = image("2")
			replicas(5)(set)
		})
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect([]string{s.firstBorn(3), s.firstBorn(4)}).To(Equal([]string{s.good, s.good}), "held back as all others")
		s.Expect(s.judge().endings).To(Equal([]int{4, 3, 2, 1, 0}))
		s.Expect(s.steps()).To(Equal([]string{"4", "3", "2", "1", "0"}))
		s.Expect(s.scalings()).To(Equal([]int32{5}))
	})
}

func TestS9ScaleDownWithTheTemplate(t *testing.T) {
	tell(t, "s9-down-with-template", func(s *story) {
		s.create("1", replicas(5))
		s.edit(func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = image("2")
			replicas(2)(set)
		})
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.judge().endings).To(ConsistOf(4, 3, 2, 1, 0))
		s.Expect(s.steps()).To(Equal([]string{"1", "0"}), "only what is left is stepped")
		s.Expect(s.scalings()).To(Equal([]int32{2}))
	})
}

// Paused before the first step: up, then down again, and then the rollout.
func TestS9ScaleBeforeTheFirstStep(t *testing.T) {
	tell(t, "s9-before-steps", func(s *story) {
		s.create("1")
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		s.scale(5)
		s.allReady(5)
		s.Expect(s.born(3, 4)).To(Equal([]string{s.good, s.good}), "parked: at the revision that works")
		s.scale(4)
		s.allReady(4)
		s.Eventually(s.scalings, patience).Should(Equal([]int32{5, 4}), "waiting for the log to say so")
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.steps()).To(Equal([]string{"3", "2", "1", "0"}))
	})
}

// In the middle, while paused: pods above the partition come new, are counted as a step that others made, and are
// waited for.
func TestS9ScaleUpWhilePaused(t *testing.T) {
	tell(t, "s9-up-paused", func(s *story) {
		s.create("1", slowly)
		kept := s.uids(0)
		s.stepTo("2", 1)
		s.scale(5)
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect([]string{s.firstBorn(3), s.firstBorn(4)}).To(Equal([]string{s.target(), s.target()}), "above the partition: at the new revision")
		s.Expect(s.uids(0)).NotTo(Equal(kept))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		steps := s.steps()
		s.Expect(steps[:3]).To(Equal([]string{"2", "1", "4"}), "db-3 may have come up meanwhile")
		s.Expect(steps[len(steps)-1]).To(Equal("0"), "after all that is above it")
		s.Expect(s.scalings()).To(Equal([]int32{5}))
	})
}

// In the middle, while pod 2 is being replaced: nothing else is released until it and the new ones are available.
func TestS9ScaleUpInTheMiddle(t *testing.T) {
	tell(t, "s9-up-stepping", func(s *story) {
		s.create("1", slowly)
		s.setImage("2")
		s.waitFor("the first step", state("Stepping", "", "db-2"))
		s.replaced(2)
		s.edit(replicas(4))
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.firstBorn(3)).To(Equal(s.target()), "above the partition: at the new revision")
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.scalings()).To(Equal([]int32{4}))
	})
}

// In the middle, the pod being replaced goes away: its step is over, and the rest is stepped.
func TestS9ScaleDownInTheMiddle(t *testing.T) {
	tell(t, "s9-down-stepping", func(s *story) {
		s.create("1", replicas(5), slowly)
		s.setImage("2")
		s.waitFor("the first step", state("Stepping", "", "db-4"))
		s.replaced(4)
		s.edit(replicas(3))
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.diary()).To(ContainElements("Scaled", "StepAborted Scaled 4"))
		s.Expect(s.steps()).To(Equal([]string{"2", "1", "0"}))
		s.Expect(s.scalings()).To(Equal([]int32{3}))
	})
}

// Scaled down while paused below the pods that were stepped already: they go, the others are still held.
func TestS9ScaleDownWhilePaused(t *testing.T) {
	tell(t, "s9-down-paused", func(s *story) {
		s.create("1", replicas(5))
		kept := s.uids(0, 1, 2)
		s.stepTo("2", 3)
		s.scale(3)
		s.Eventually(s.scalings, patience).Should(Equal([]int32{3}), "waiting for the log to say so")
		s.allReady(3)
		s.Consistently(func() any { return s.uids(0, 1, 2) }, 3*time.Second, 200*time.Millisecond).Should(Equal(kept), "no pod is touched while paused")
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.steps()).To(Equal([]string{"4", "3", "2", "1", "0"}))
	})
}

// Parked and idle: what is added comes at the current revision, and that is no rollout.
func TestS9ScaleUpWhenIdle(t *testing.T) {
	tell(t, "s9-up-idle", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.scale(5)
		s.allReady(5)
		s.Expect(s.born(3, 4)).To(Equal([]string{s.good, s.good}))
		s.Eventually(func() string { return s.progress().Status.Progress }, patience).Should(Equal("5/5"), "waiting for the log to say so")
		s.Expect(s.diary()).To(Equal([]string{"RolloutStarted BringUp", "RolloutCompleted Completed", "Scaled"}))
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept))
		s.setImage("2")
		s.waitFor("a rollout of five", rolloutDone(2))
		s.Expect(s.steps()).To(Equal([]string{"4", "3", "2", "1", "0"}))
	})
}
