package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S10: someone else writes the partition. With the admission policy nobody can (TestS10Quiet), so these are told
// without it.

// Once, in the middle of a rollout: it is recorded and followed, and not fought.
func TestS10LoweredByHand(t *testing.T) {
	t.Parallel()
	tellWithoutAdmission(t, "s10-lowered", func(s *story) {
		s.create("1")
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		s.someone(2)
		s.waitForEvent("StepCompleted", 1)
		s.stays(2, "the write is left as it is, and there is no step of Pawl's while paused")
		s.someone(1)
		s.waitForEvent("StepCompleted", 2)
		s.stays(1, "the same again")
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.since(2)).To(Equal([]string{
			"RolloutStarted NewRevision",
			"PartitionOverridden", "StepStarted External 2", "StepCompleted 2",
			"PartitionOverridden", "StepStarted External 1", "StepCompleted 1",
			"StepStarted 0", "StepCompleted 0", "RolloutCompleted Completed",
		}))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.judge().fewest).To(Equal(2))
	})
}

// Again and again while nothing goes on: Pawl gives way after the third time. A new template is a new start.
func TestS10Contested(t *testing.T) {
	t.Parallel()
	tellWithoutAdmission(t, "s10-contested", func(s *story) {
		s.create("1")
		s.parkedNow()
		written := len(s.audited(pawlUser, "patch", "statefulsets"))
		for n := range 3 {
			s.someone(0)
			s.waitForEvent("PartitionOverridden", n+1)
			if n < 2 {
				s.parkedNow()
			}
		}
		s.waitFor("Pawl to give way", state("Blocked", "PartitionContested", ""))
		s.someone(1)
		s.someone(0)
		s.stays(0, "the partition is as someone wrote it, and no pod moves for it")
		s.Expect(s.audited(pawlUser, "patch", "statefulsets")).To(HaveLen(written+2), "put back twice, and no more")

		s.setImage("2")
		s.waitFor("the rollout", rolloutDone(2))
		s.parkedNow()
		s.fromTheTop(0, true, "the new template") // at partition 0 Kubernetes begins at once
	})
}

// A controller that holds the partition up in the middle of a rollout: its writes are steps taken back. After three Pawl gives way.
// A revert is a way out.
func TestS10HeldUp(t *testing.T) {
	t.Parallel()
	tellWithoutAdmission(t, "s10-held-up", func(s *story) {
		s.create("1", slowly) // a step takes long enough for the other one to see it
		kept := s.uids(0, 1)
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		written := len(s.audited(pawlUser, "patch", "statefulsets"))
		end := s.controller(3)
		s.pause(false)
		s.waitFor("Pawl to give way", state("Blocked", "PartitionContested", ""))
		s.Consistently(func() int { return len(s.audited(pawlUser, "patch", "statefulsets")) }, 3*time.Second, 500*time.Millisecond).
			Should(BeNumerically("<=", written+3), "no write war")
		end()
		s.Expect(s.count("PartitionOverridden")).To(Equal(3), "one event for each write, and no flood")

		s.setImage("1")
		s.waitFor("the rollback", done("RolledBack"))
		s.Expect(s.uids(0, 1)).To(Equal(kept), "nobody else was touched")
	})
}

// controller writes the partition whenever it is another one, until the story ends it.
func (s *story) controller(p int32) (end func()) {
	s.excused["someone"] = true
	ctx, cancel := context.WithCancel(s.t.Context())
	var gone sync.WaitGroup
	gone.Go(func() {
		for ctx.Err() == nil {
			set := bareSet(s.namespace, "")
			if lab.alice.Get(ctx, client.ObjectKeyFromObject(set), set) == nil && partition(set) != p {
				_ = lab.alice.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(partitionPatch(p))), client.FieldOwner("someone"))
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		gone.Wait()
	}
}
