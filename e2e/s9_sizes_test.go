package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// S9: StatefulSets of every size. The order is that of numbers, the partition is an index, and none is too small.

// Twelve pods go 11, 10, 9, ... 0: by number, as by name db-9 would come before db-11 (I1, I2).
func TestS9TwelveReplicas(t *testing.T) {
	tell(t, "s9-twelve", func(s *story) {
		s.create("1", replicas(12), func(set *appsv1.StatefulSet) { set.Spec.Template.Annotations = nil })
		s.setImage("2")
		s.Eventually(func() string { return rolloutDone(2)(s.progress().Status) }, 3*patience, 100*time.Millisecond).
			Should(BeEmpty(), "waiting for twelve steps")
		s.Expect(s.judge().endings).To(Equal([]int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}))
		s.Expect(s.judge().fewest).To(Equal(11), "never two pods down")
		s.Expect(s.steps()).To(Equal([]string{"11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0"}))
	})
}

// Ordinals that start at 5: the partition counts from there, so it goes 2, 1, 0 while db-7, db-6 and db-5 are replaced.
func TestS9OrdinalsStartAtFive(t *testing.T) {
	tell(t, "s9-start-5", func(s *story) {
		s.create("1", func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5} })
		before := len(s.judge().effective())
		s.setImage("2")
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Eventually(func() []int32 { return s.judge().effective()[before:] }, patience).Should(Equal([]int32{2, 1, 0, 3}), "the partition")
		s.Expect(s.judge().endings).To(Equal([]int{7, 6, 5}))
		s.Expect(s.steps()).To(Equal([]string{"7", "6", "5"}), "the log speaks of ordinals, as the names of pods do")
	})
}

// One pod, said or not said: there is no other pod to wait for, and the partition still is parked and lowered.
func TestS9OneReplica(t *testing.T) {
	for title, edit := range map[string]func(*appsv1.StatefulSet){
		"said":    replicas(1),
		"absent":  func(set *appsv1.StatefulSet) { set.Spec.Replicas = nil }, // the API server makes it 1
		"stopped": replicas(1),
	} {
		t.Run(title, func(t *testing.T) {
			tell(t, "s9-one-"+title, func(s *story) {
				s.create("1", edit)
				s.Expect(*s.set().Spec.Replicas).To(BeEquivalentTo(1))
				if title == "stopped" {
					s.fate(0, "bad") // the one pod is broken: replacing it costs nothing (I3)
					s.Eventually(func() bool { return ready(s.pod(0)) }, patience).Should(BeFalse(), "waiting for the pod to fail")
				}
				s.setImage("2")
				s.waitFor("the rollout to complete", rolloutDone(2))
				s.Expect(s.judge().endings).To(Equal([]int{0}))
				s.Expect(s.steps()).To(Equal([]string{"0"}))
				s.parkedNow()
			})
		})
	}
}

// No pods at all: a new template has nothing to step through, and is what pods come up with later.
func TestS9NoReplicas(t *testing.T) {
	tell(t, "s9-none", func(s *story) {
		s.submit("1", replicas(0))
		s.waitFor("the StatefulSet to be seen", outsideGates(1))
		s.setImage("2")
		s.waitFor("the rollout to complete", outsideGates(2))
		s.Expect(s.steps()).To(BeEmpty())
		s.scale(2)
		s.Eventually(func() []string { return s.born(0, 1) }, patience).Should(Equal([]string{s.target(), s.target()}), "waiting for pods at the new revision")
		s.setImage("3")
		s.waitFor("a rollout with pods", rolloutDone(3))
		s.Expect(s.steps()).To(Equal([]string{"1", "0"}))
	})
}
