package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S3: a revert goes through with no hand on any pod. Pods that worked are not restarted; Pawl deletes each casualty at
// most once, exactly once under OrderedReady, where the StatefulSet controller would never replace it.

func TestS3RevertBadImage(t *testing.T) {
	tell(t, "s3-revert-bad-image", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1)
		s.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, "db-2"))
		s.setImage("1")
		s.rolledBack(kept, "db-2")
		want := []any{
			"RolloutStarted BringUp", "RolloutCompleted Completed",
			"RolloutStarted NewRevision", "StepStarted 2", MatchRegexp("Blocked .* 2"), "RolloutStarted Rollback",
		}
		if len(s.deletions()) > 0 { // under Parallel the StatefulSet controller may be there first
			want = append(want, "StepStarted Repair 2", "PodReplaced 2", "StepCompleted 2")
		}
		s.Expect(s.diary()).To(HaveExactElements(append(want, "RolloutCompleted RolledBack")...), "the history says it all")
	})
}

func TestS3RevertWithinTwoSeconds(t *testing.T) {
	tell(t, "s3-revert-at-once", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1)
		s.setImage("bad")
		s.waitFor("the step", state("Stepping", "", "db-2"))
		s.Eventually(func() string {
			pod := &corev1.Pod{}
			_ = lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "db-2"}, pod)
			return revision(pod)
		}, patience, 20*time.Millisecond).ShouldNot(BeElementOf("", s.good), "waiting for the bad pod")
		s.setImage("1")
		s.rolledBack(kept, "db-2")
	})
}

func TestS3RevertCrashLoop(t *testing.T) {
	tell(t, "s3-revert-crash-loop", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1)
		s.setImage("crash")
		s.waitFor("Blocked", state("Blocked", crashReasons, "db-2"))
		s.setImage("1")
		s.rolledBack(kept, "db-2")
	})
}

func TestS3FixForward(t *testing.T) {
	tell(t, "s3-fix-forward", func(s *story) {
		s.create("1")
		s.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, "db-2"))
		s.setImage("2")
		s.waitFor("the fix to complete", done("Completed"))
		s.Expect(s.progress().Status.StableRevision).To(Equal(s.set().Status.UpdateRevision))
		s.expectDeletions("db-2")
		s.Expect(s.judge().endings[0]).To(Equal(2))
	})
}

// A revision that fails an hour later: pods 2 and 1 run it and die.
func TestS3TwoCasualties(t *testing.T) {
	tell(t, "s3-two-casualties", func(s *story) {
		s.create("1")
		kept := s.uids(0)
		s.stepTo("2", 1)
		s.fate(2, "crash")
		s.fate(1, "crash")
		s.waitFor("the verdict", state("Blocked", crashReasons, ""))
		s.setImage("1")
		s.pause(false)
		s.rolledBack(kept, "db-1", "db-2")
	})
}

// Pod 2 is healthy at the bad revision and pod 1 is dead there.
func TestS3CasualtyIsNotNext(t *testing.T) {
	tell(t, "s3-casualty-below", func(s *story) {
		s.create("1")
		kept := s.uids(0)
		s.stepTo("2", 1)
		s.fate(1, "bad")
		s.waitFor("the verdict", state("Blocked", pullReasons, "db-1"))
		s.setImage("1")
		s.pause(false)
		s.rolledBack(kept, "db-1")
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 1, 2}), "db-1 is repaired first, then db-2 is stepped back")
	})
}

// stepTo rolls a revision out down to a partition and holds it there.
func (s *story) stepTo(tag string, p int32) {
	s.setImage(tag)
	s.Eventually(func() int32 { return partition(s.set()) }, patience, 20*time.Millisecond).Should(BeNumerically("<=", p+1), "waiting for the steps")
	s.Eventually(func() int32 { return partition(s.set()) }, patience, 20*time.Millisecond).Should(Equal(p), "waiting for partition %d", p)
	s.pause(true)
	s.waitFor("the hold", state("Waiting", "Paused", ""))
	s.Expect(partition(s.set())).To(Equal(p), "paused in time")
}

func (s *story) uids(ordinals ...int) map[int]types.UID {
	uids := map[int]types.UID{}
	for _, i := range ordinals {
		uids[i] = s.pod(i).UID
	}
	return uids
}

// rolledBack waits for the end of the revert and looks at what it took.
func (s *story) rolledBack(kept map[int]types.UID, casualties ...string) {
	s.waitFor("the rollback", done("RolledBack"))
	s.Expect(s.set().Status.UpdateRevision).To(Equal(s.good))
	for i := range 3 {
		pod := s.pod(i)
		s.Expect(ready(pod)).To(BeTrue(), "pod %d works again", i)
		s.Expect(revision(pod)).To(Equal(s.good), "pod %d is back at the stable revision", i)
	}
	for i, uid := range kept {
		s.Expect(s.pod(i).UID).To(Equal(uid), "pod %d was never restarted", i)
	}
	s.expectDeletions(casualties...)
	s.Expect(s.audited("alice", "delete", "pods")).To(BeEmpty(), "no hand on any pod")
}

// expectDeletions: at most one deletion by Pawl per casualty, exactly one under OrderedReady.
func (s *story) expectDeletions(casualties ...string) {
	deleted := s.deletions()
	if s.policy == appsv1.OrderedReadyPodManagement {
		s.Expect(deleted).To(ConsistOf(casualties), "each casualty is deleted exactly once")
		return
	}
	seen := map[string]int{}
	for _, pod := range deleted {
		seen[pod]++
		s.Expect(casualties).To(ContainElement(pod))
		s.Expect(seen[pod]).To(Equal(1), "%s was deleted more than once", pod)
	}
}
