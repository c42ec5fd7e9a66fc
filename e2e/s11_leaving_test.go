package e2e

import (
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S11: handing back and leaving. Nothing ever hangs (I10), nothing moves because Pawl lets go, and what was written
// down stays (I6).

// The label goes when all is done: partition 0, as it would be without Pawl, and no pod moves.
func TestS11LabelRemovedWhenDone(t *testing.T) {
	tell(t, "s11-label-done", func(s *story) {
		s.create("1")
		s.setImage("2")
		s.waitFor("the rollout to complete", rolloutDone(2))
		kept := s.uids(0, 1, 2)
		s.unlabel()
		s.waitFor("the end of it", state("Done", "Unmanaged", ""))
		s.Eventually(func() int32 { return partition(s.set()) }, patience).Should(BeZero(), "handed back with partition 0")
		s.Consistently(func() any { return s.uids(0, 1, 2) }, 3*time.Second, 200*time.Millisecond).Should(Equal(kept), "no pod moves")
		s.Expect(s.lastEvent()).To(Equal("Abandoned Unmanaged"))
		s.isItsOwn("3")
	})
}

// The label goes in the middle: the StatefulSet is left as it is, as partition 0 would release every pod at once.
func TestS11LabelRemovedInTheMiddle(t *testing.T) {
	tell(t, "s11-label-middle", func(s *story) {
		s.create("1")
		s.stepTo("2", 2)
		kept := s.uids(0, 1, 2)
		s.unlabel()
		s.waitFor("the end of it", state("Done", "Unmanaged", ""))
		s.pause(false)
		s.Consistently(func() any { return []any{partition(s.set()), s.uids(0, 1, 2)} }, 3*time.Second, 200*time.Millisecond).
			Should(Equal([]any{int32(2), kept}), "left as it is")
		s.Expect(s.lastEvent()).To(Equal("Abandoned Unmanaged"))
		st := s.progress().Status
		s.Expect(st.Message).To(ContainSubstring("partition"), "it says that the partition stays")
		s.Expect(string(st.Rollout.Outcome)).To(Equal("Abandoned"))

		// From now on the partition is the owner's.
		s.someone(0)
		s.Eventually(func() []string { return s.born(0, 1) }, patience).Should(Equal([]string{s.target(), s.target()}), "waiting for the StatefulSet controller")
		s.Expect(s.lastEvent()).To(Equal("Abandoned Unmanaged"), "nothing of that is Pawl's business")
	})
}

// The namespace goes, with everything in it, with a manager running or without. A RolloutRecord is refused there; that
// is nobody's fault, and said at most once.
func TestS11NamespaceDeleted(t *testing.T) {
	for title, running := range map[string]bool{"running": true, "away": false} {
		t.Run(title, func(t *testing.T) {
			tell(t, "s11-ns-"+title, func(s *story) {
				s.create("1")
				s.stepTo("2", 2)
				if !running {
					s.stopManager(syscall.SIGTERM)
				}
				for i := range 3 {
					s.excused[string(s.pod(i).UID)] = true // the namespace takes them, in no order
				}
				s.namespaceGone = true
				ns := &corev1.Namespace{}
				ns.Name = s.namespace
				s.Expect(lab.alice.Delete(s.t.Context(), ns)).To(Succeed())
				s.Eventually(func() error { return lab.alice.Get(s.t.Context(), client.ObjectKeyFromObject(ns), ns) }, patience).
					Should(MatchError(ContainSubstring("not found")), "waiting for the namespace to go")
				if running {
					s.Consistently(s.manager.errors, 10*time.Second, time.Second).Should(Or(BeEmpty(), HaveExactElements(ContainSubstring("rejected event"))),
						"no complaint about what ends by itself, but for the one Event that says so")
				}
			})
		})
	}
}

func (s *story) unlabel() {
	s.Expect(s.kubectl("label", "sts", name, "pawl.dev/mode-")).To(ContainSubstring("unlabeled"))
}

// isItsOwn: unlabelled, it rolls as any other does, and Pawl writes nothing.
func (s *story) isItsOwn(tag string) {
	writes := len(s.audited(pawlUser, "patch", "statefulsets"))
	s.setImage(tag)
	s.Eventually(func() []string { return s.born(0, 1, 2) }, patience).Should(HaveEach(s.target()), "waiting for the StatefulSet controller")
	s.allReady(3)
	s.Expect(s.audited(pawlUser, "patch", "statefulsets")).To(HaveLen(writes))
}

func (s *story) lastEvent() string {
	all := s.events()
	return all[len(all)-1].Type + " " + all[len(all)-1].Reason
}
