package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// S10: the label comes, goes or changes at a bad moment.

const modeLabel = "pawl.dev/mode"

func mode(word string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Labels = map[string]string{modeLabel: word} }
}

func unlabelled(set *appsv1.StatefulSet) { delete(set.Labels, modeLabel) }

// The label is taken away in the same write that changes the template: the way out is no way around. No pod moves.
func TestS10LeavingWithATemplate(t *testing.T) {
	tell(t, "s10-leaving", func(s *story) {
		s.create("1")
		s.parkedNow()
		kept := s.uids(0, 1, 2)
		s.edit(func(set *appsv1.StatefulSet) {
			unlabelled(set)
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})
		s.waitFor("the end of it", state("Done", "Unmanaged", ""))
		s.Consistently(func() int32 { return partition(s.set()) }, 3*time.Second, 200*time.Millisecond).Should(BeEquivalentTo(parked), "the partition holds every pod back")
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept), "no pod moved")
		s.Expect(s.progress().Status.Message).To(ContainSubstring("kubectl patch sts db"), "how to let go")
	})
}

// A rollout that Kubernetes began is taken over: the pod that it had begun with is let come up, the others wait for
// their turn.
func TestS10TakenOver(t *testing.T) {
	tell(t, "s10-taken-over", func(s *story) {
		s.submit("1", unlabelled)
		s.allReady(3)
		s.good = s.target()
		s.edit(func(set *appsv1.StatefulSet) {
			slowly(set)
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})
		s.replaced(2)
		s.fate(2, "never") // Kubernetes waits for it, for as long as the story likes
		s.edit(mode("Enforce"))
		s.waitForEvent("RolloutStarted", 1)
		s.Eventually(func() int32 { return partition(s.set()) }, patience, tick).Should(BeNumerically(">=", 2), "waiting for the partition")
		s.fate(2, "ready")
		s.waitFor("the rollout to complete", rolloutDone(1))
		diary := s.since(1)
		s.Expect(diary[:2]).To(Or(
			Equal([]string{"RolloutStarted Adopted", "StepSkipped AlreadyUpdated 2"}), // it was parked above pod 2
			Equal([]string{"RolloutStarted Adopted", "StepStarted Adopted 2"}),
		))
		s.Expect(diary[len(diary)-5:]).To(Equal([]string{
			"StepStarted 1", "StepCompleted 1", "StepStarted 0", "StepCompleted 0", "RolloutCompleted Completed",
		}))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.judge().fewest).To(Equal(2))
	})
}

// Observe and back, while nothing goes on: nothing is written. And in the middle of a rollout: the partition is the
// owner's until Pawl is told to go on.
func TestS10ModeSwitched(t *testing.T) {
	tell(t, "s10-modes", func(s *story) {
		s.create("1", slowly)
		s.parkedNow()
		kept, written := s.uids(0, 1, 2), len(s.audited(pawlUser, "patch", "statefulsets"))
		adopted := s.count("Adopted")
		for n, word := range []string{"Observe", "Enforce"} {
			s.edit(mode(word))
			s.waitForEvent("Adopted", adopted+n+1)
		}
		s.stays(parked, "there was nothing to do")
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept))
		s.Expect(s.audited(pawlUser, "patch", "statefulsets")).To(HaveLen(written))

		s.stepTo("2", 2)
		s.edit(mode("Observe"))
		s.pause(false)
		s.waitFor("Pawl to watch", state("Waiting", "Observing", "db-1"))
		s.stays(2, "Pawl only watches")
		written = len(s.audited(pawlUser, "patch", "statefulsets"))
		s.someone(1)
		s.Eventually(s.steps, patience, tick).Should(Equal([]string{"2", "1"}), "waiting for the owner's step")
		s.stays(1, "the partition is the owner's")
		s.Expect(s.audited(pawlUser, "patch", "statefulsets")).To(HaveLen(written), "Pawl wrote nothing while it watched")

		s.edit(mode("Enforce"))
		s.Eventually(s.steps, patience, tick).Should(Equal([]string{"2", "1", "0"}), "waiting for the last step")
		s.waitFor("the rollout to complete", done("Completed"))
		s.parkedNow()
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.judge().fewest).To(Equal(2))
	})
}
