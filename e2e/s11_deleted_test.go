package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// S11: deleted, in the middle of a rollout or when all is done: the pods go, the RolloutProgress goes, and RolloutRecords
// hold all that there was to say, up to the end.

func TestS11DeletedInTheForeground(t *testing.T) {
	tell(t, "s11-foreground", func(s *story) { s.isDeleted("foreground") })
}

func TestS11DeletedInTheBackground(t *testing.T) {
	tell(t, "s11-background", func(s *story) { s.isDeleted("background") })
}

func TestS11DeletedWhenDone(t *testing.T) {
	tell(t, "s11-deleted-done", func(s *story) {
		s.create("1")
		s.setImage("2")
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.deleteSet("background")
		s.isGone()
		s.recordsEndWith("Abandoned Deleted")
		s.Expect(s.diary()[len(s.diary())-2:]).To(Equal([]string{"RolloutCompleted Completed", "Abandoned Deleted"}))
	})
}

// Deleted with its pods left behind: the log says that it ended, and waits for the next one of this name.
func TestS11DeletedWithOrphans(t *testing.T) {
	tell(t, "s11-orphans", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.stepTo("2", 2)
		delete(kept, 2)
		s.deleteSet("orphan")
		s.waitFor("the end of it", state("Done", "Deleted", ""))
		s.Consistently(func() any { return s.uids(0, 1) }, 3*time.Second, 200*time.Millisecond).Should(Equal(kept), "the pods stay")
		s.recordsEndWith("Abandoned Deleted")
	})
}

// No manager runs: nothing waits for one. The end of the log is lost then: there is nobody to write it down.
func TestS11DeletedWithoutAManager(t *testing.T) {
	for _, how := range []string{"foreground", "background"} {
		t.Run(how, func(t *testing.T) {
			tell(t, "s11-away-"+how, func(s *story) {
				s.create("1")
				s.stepTo("2", 2)
				s.stopManager(syscall.SIGKILL)
				s.deleteSet(how)
				s.isGone()
				s.startManager() // it makes nothing of what it finds
				s.Consistently(func() any { return []any{s.progress().UID, s.manager.errors()} }, 3*time.Second, 200*time.Millisecond).
					Should(HaveExactElements(BeEmpty(), BeEmpty()), "no RolloutProgress, no complaint")
			})
		})
	}
}

// A person deletes the RolloutProgress alone, in the middle: the log begins again and says so, the rollout goes on from
// where it is, and what was in the deleted one is in a RolloutRecord.
func TestS11OnlyTheLogIsDeleted(t *testing.T) {
	tell(t, "s11-rp-deleted", func(s *story) {
		s.create("1")
		s.stepTo("2", 2)
		before := s.events()
		s.Expect(s.kubectl("delete", "rp", name)).To(ContainSubstring("deleted"))
		s.waitFor("the rollout to complete", done("Completed"))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}), "no pod is replaced twice")
		s.Expect(s.events()).To(ContainElement(And(HaveField("Type", "Adopted"), HaveField("Reason", "LogRestarted"))))
		s.Expect(s.events()[:len(before)]).To(Equal(before), "nothing of what was written down is lost")
	})
}

// Deleted, and another one of its name created at once: the garbage collector may take the RolloutProgress when Pawl has
// already written into it what it did about the new one. Nothing of either is lost.
func TestS11DeletedAndCreatedAtOnce(t *testing.T) {
	tell(t, "s11-at-once", func(s *story) {
		s.create("1")
		s.setImage("never")
		s.waitFor("a step", state("Stepping", "", ""))
		s.replaced(2)
		before := s.events()
		for i := range 3 {
			s.excused[string(s.pod(i).UID)] = true // they go with the old one
		}
		s.deleteSet("background")
		s.submit("2")
		uid := s.set().UID
		s.Eventually(func() []string { return s.born(0, 1, 2) }, patience).Should(HaveEach(s.target()), "waiting for the pods of the new one")
		s.allReady(3)
		s.Eventually(func() []any {
			rp := s.progress()
			owned := len(rp.OwnerReferences) == 1 && rp.OwnerReferences[0].UID == uid
			return []any{rp.Status.StatefulSetUID, string(rp.Status.State), owned}
		}, patience).Should(Equal([]any{string(uid), "Done", true}), "waiting for the new one to come up, with a RolloutProgress of its own")
		s.Expect(s.events()[:len(before)]).To(Equal(before))
		s.Expect(s.events()).To(ContainElement(And(HaveField("Type", "Adopted"), HaveField("Reason", "Recreated"))))
		s.Expect(s.outcome(2)).To(Equal("Abandoned"), "of the rollout that it was in")
		s.parkedNow()
	})
}

// isDeleted deletes the StatefulSet while a pod of it is being replaced.
func (s *story) isDeleted(how string) {
	s.create("1")
	s.setImage("never")
	s.waitFor("a step", state("Stepping", "", ""))
	s.replaced(2)
	before := s.events()
	s.deleteSet(how)
	s.isGone()
	s.recordsEndWith("Abandoned Deleted")
	s.Expect(s.events()[:len(before)]).To(Equal(before))
	s.Expect(s.outcome(2)).To(Equal("Abandoned"))
}

// deleteSet deletes the StatefulSet and waits until it is gone.
func (s *story) deleteSet(cascade string) {
	s.t.Helper()
	lab.collects(s.t)
	out := s.kubectl("delete", "sts", name, "--cascade="+cascade, fmt.Sprintf("--timeout=%s", patience))
	s.Expect(out).To(And(ContainSubstring("deleted"), Not(ContainSubstring("timed out"))))
}

// isGone waits until neither pods nor the RolloutProgress are left.
func (s *story) isGone() {
	s.t.Helper()
	s.Eventually(func() string { return s.kubectl("get", "sts,pods,rp", "-o", "name") }, patience).
		Should(BeEmpty(), "waiting for all of it to be gone")
}

func (s *story) records() []pawlv1alpha1.RolloutRecord { return s.recordsOf(name) }

func (s *story) recordsOf(set string) []pawlv1alpha1.RolloutRecord {
	var records pawlv1alpha1.RolloutRecordList
	s.Expect(lab.admin.List(s.t.Context(), &records, client.InNamespace(s.namespace), client.MatchingFields{"page.statefulSet": set})).To(Succeed())
	return records.Items
}

// outcome is how a rollout ended, as its RolloutRecord has it.
func (s *story) outcome(rollout int64) string {
	outcome := ""
	for _, record := range s.records() {
		if r := record.Page.Rollout; r != nil && r.Number == rollout {
			outcome = string(r.Outcome) // the last page knows
		}
	}
	return outcome
}

// recordsEndWith waits until RolloutRecords, which outlive everything, hold the log up to this.
func (s *story) recordsEndWith(event string) {
	s.t.Helper()
	s.Eventually(func() string {
		records := s.records()
		if len(records) == 0 {
			return ""
		}
		page := records[len(records)-1].Page.Transitions
		return page[len(page)-1].Type + " " + page[len(page)-1].Reason
	}, patience, tick).Should(Equal(event), "waiting for the last RolloutRecord")
}
