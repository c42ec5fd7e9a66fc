package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// S6: creation. Parked from the first moment on (I5), and a first revision that never worked has nothing to protect.

func TestS6Creation(t *testing.T) {
	tell(t, "s6-creation", func(s *story) {
		s.create("1")
		j := s.judge()
		if s.admission {
			s.Expect(j.partitions).To(Equal([]int32{parked}), "the very first version is parked")
			s.Expect(j.byPawl).To(BeEmpty())
		} else {
			s.Expect(j.partitions).To(Equal([]int32{0, parked}), "Pawl parks it when it sees it")
		}
		first := s.events()[0]
		s.Expect([]any{first.Type, first.Reason, *first.Partition}).To(Equal([]any{"Adopted", "Created", int32(parked)}))
		s.Consistently(func() int { return len(s.judge().endings) }, 3*time.Second, 200*time.Millisecond).Should(BeZero(), "no pod is replaced")
		for i := range 3 {
			s.Expect(s.judge().uids[i]).To(HaveLen(1), "pod %d came up once", i)
		}
		s.Expect(s.diary()).To(Equal([]string{"RolloutStarted BringUp", "RolloutCompleted Completed"}))
	})
}

// The first revision never worked: a new template is all it takes, and no hand on any pod.

func TestS6FirstImageBad(t *testing.T) {
	tell(t, "s6-first-bad", func(s *story) {
		s.submit("bad")
		s.waitFor("the verdict", state("Blocked", pullReasons, "db-0"))
		s.fixedByTemplate()
	})
}

func TestS6FirstRevisionCrashes(t *testing.T) {
	tell(t, "s6-first-crash", func(s *story) {
		s.submit("crash")
		s.waitFor("the verdict", state("Blocked", crashReasons, "")) // under Parallel it is about whichever crashed first
		s.fixedByTemplate()
	})
}

func TestS6FirstRevisionNeverReady(t *testing.T) {
	tell(t, "s6-first-never", func(s *story) {
		s.submit("never")
		s.waitFor("the reason to show", state("Waiting", "NotReady", "db-0"))
		s.fixedByTemplate()
	})
}

// fixedByTemplate changes the template of a StatefulSet that never worked, and sees it come up.
func (s *story) fixedByTemplate() {
	before := len(s.judge().byPawl)
	s.setImage("2")
	written := func() []string { return s.judge().byPawl[before:] }
	s.Eventually(written, 2*patience).ShouldNot(BeEmpty(), "waiting for the pods to be released; pods that run are given the deadline")
	s.waitFor("the fix to come up", rolloutDone(2))
	s.Eventually(written, patience).
		Should(Equal([]string{"2147483647>0", "0>2147483647"}), "all are released in one write, and parked afterwards")
	s.Expect(s.events()).To(ContainElement(And(
		HaveField("Type", "StepStarted"), HaveField("Reason", "NothingToProtect"), HaveField("Ordinals", "0-2"),
	)))
	s.Expect(s.audited("alice", "delete", "pods")).To(BeEmpty(), "no hand on any pod")
	for i := range 3 {
		s.Expect(ready(s.pod(i))).To(BeTrue(), "pod %d works", i)
	}
}
