package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// S10: the template changes again in the middle of a rollout. A, B and C are the images 1, 2 and 3.

// From A to B, pod 2 is at B, then C: nobody moves for it. Lost now, pod 2 returns at A, which is recorded, and the
// rollout goes on to C.
func TestS10ThirdTemplate(t *testing.T) {
	tell(t, "s10-third", func(s *story) {
		second := s.overtaken()
		s.parkedNow()
		s.Expect(s.pod(2).UID).To(Equal(second))
		s.stays(parked, "pod 2 stays at B until its turn comes")
		s.Expect(revision(s.lose(2))).To(Equal(s.good), "lost, it returns at A")
		s.pause(false)
		s.waitFor("the rollout to C", rolloutDone(3))
		s.Expect(s.judge().endings).To(Equal([]int{2, 2, 2, 1, 0}), "the step to B, the loss, and the three steps to C")
		s.Expect(s.judge().fewest).To(Equal(2))
		s.Expect(s.count("PodRegressed")).To(Equal(1), "the log has that pod 2 had been at B")
	})
}

// overtaken has pod 2 be at B when C comes, while paused, and returns its uid.
func (s *story) overtaken() types.UID {
	s.t.Helper()
	s.create("1", slowly)
	s.stepTo("2", 2)
	uid := s.pod(2).UID
	s.heldBack()
	s.setImage("3")
	s.waitForEvent("RolloutStarted", 3)
	return uid
}

// heldBack raises the partition where no admission policy does it with the new template: before Pawl sees that, Kubernetes
// may have begun to replace pod 2, which is released.
func (s *story) heldBack() {
	if !s.admission {
		s.someone(3)
		s.waitForEvent("PartitionOverridden", 1)
	}
}

// From A to B, to C and back to B: what is at B already counts, and is not restarted. Lost before its turn it returns at
// A: the log has that pod 2 was finished and came back older.
func TestS10BackToTheSecond(t *testing.T) {
	tell(t, "s10-and-back", func(s *story) {
		second := s.overtaken()
		s.setImage("2")
		s.waitForEvent("RolloutStarted", 4)
		s.parkedNow()
		s.Expect(s.pod(2).UID).To(Equal(second), "pod 2 was never restarted")
		s.Expect(s.progress().Status.Progress).To(Equal("1/3"), "pod 2 counts")
		s.Expect(revision(s.lose(2))).To(Equal(s.good), "lost while the partition is parked, it returns at A")
		s.waitForEvent("PodRegressed", 1)
		s.pause(false)
		s.waitFor("the rollout to B", rolloutDone(4))
		s.Expect(s.since(4)).To(Equal([]string{
			"RolloutStarted NewRevision", "PodRegressed 2",
			"StepStarted 2", "StepCompleted 2", "StepStarted 1", "StepCompleted 1", "StepStarted 0", "StepCompleted 0",
			"RolloutCompleted Completed",
		}))
		s.Expect(s.judge().endings).To(Equal([]int{2, 2, 2, 1, 0}), "the step, the loss, and the three steps")
	})
}
