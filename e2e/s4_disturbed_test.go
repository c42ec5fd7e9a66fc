package e2e

import (
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// S4: what disturbs a rollout: pods that lie about being ready, people who pause, and a manager that dies.

// A template without a readiness probe, and a revision that exits half a second after it was Ready: one pod is hurt.
func TestS4ReadyForHalfASecond(t *testing.T) {
	tell(t, "s4-ready-and-gone", func(s *story) {
		s.create("1", func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].ReadinessProbe = nil })
		kept := s.uids(0, 1)
		s.setImage("exits-500ms")
		s.waitFor("Blocked", state("Blocked", crashReasons, "db-2"))
		s.Consistently(func() int32 { return partition(s.set()) }, 5*time.Second, 100*time.Millisecond).Should(BeEquivalentTo(2))
		for i, uid := range kept {
			s.Expect(s.pod(i).UID).To(Equal(uid), "pod %d is untouched", i)
		}
	})
}

func TestS4PauseAndResume(t *testing.T) {
	tell(t, "s4-pause-resume", func(s *story) {
		s.create("1")
		s.setImage("2")
		s.waitFor("a step", state("Stepping", "", ""))
		s.pause(true)
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		held := partition(s.set())
		s.Expect(held).To(BeNumerically(">", 0), "paused in the middle")
		s.Consistently(func() int32 { return partition(s.set()) }, 3*time.Second, 100*time.Millisecond).Should(Equal(held), "no step while paused")
		s.Expect(s.progress().Status.Message).To(ContainSubstring("kubectl patch rp db"))
		s.pause(false)
		s.waitFor("the rollout to complete", done("Completed"))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
	})
}

// The template changes while no manager runs: parked as before, so that nothing moves until it is back.
func TestS4ManagerAwayDuringChange(t *testing.T) {
	tell(t, "s4-manager-away", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.stopManager(syscall.SIGTERM)
		s.setImage("2")
		s.Consistently(func() map[int]any {
			now := map[int]any{}
			for i := range 3 {
				now[i] = s.pod(i).UID
			}
			return now
		}, 3*time.Second, 200*time.Millisecond).Should(Equal(map[int]any{0: kept[0], 1: kept[1], 2: kept[2]}), "the partition is parked: no pod moves")
		s.startManager()
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.judge().fewest).To(Equal(2))
	})
}

// SIGKILL twice in the middle: the same steps, none twice, none skipped.
func TestS4ManagerKilledTwice(t *testing.T) {
	tell(t, "s4-manager-killed", func(s *story) {
		s.create("1")
		s.setImage("2")
		for _, p := range []int32{2, 1} {
			s.Eventually(func() int32 { return partition(s.set()) }, patience, 10*time.Millisecond).Should(BeNumerically("<=", p), "waiting for partition %d", p)
			s.stopManager(syscall.SIGKILL)
			s.startManager()
		}
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.diary()).To(Equal([]string{
			"RolloutStarted BringUp", "RolloutCompleted Completed", "RolloutStarted NewRevision",
			"StepStarted 2", "StepCompleted 2", "StepStarted 1", "StepCompleted 1", "StepStarted 0", "StepCompleted 0",
			"RolloutCompleted Completed",
		}), "as undisturbed")
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.judge().fewest).To(Equal(2))
	})
}
