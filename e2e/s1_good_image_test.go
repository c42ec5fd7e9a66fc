package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S1: a good image goes out one pod at a time, from the highest ordinal down, and the partition is parked afterwards.
func TestS1GoodImage(t *testing.T) {
	tell(t, "s1-good-image", func(s *story) {
		s.create("1")
		before := s.judge()
		s.setImage("2")
		s.waitFor("the rollout to complete", rolloutDone(2))

		s.Eventually(func() []int32 { return s.judge().effective()[len(before.effective()):] }, patience).
			Should(Equal([]int32{2, 1, 0, 3}), "the partition goes down one pod at a time, then it is parked")
		j := s.judge()
		s.Expect(j.endings).To(Equal([]int{2, 1, 0}), "pods are replaced from the highest ordinal down")
		s.Expect(j.fewest).To(Equal(2), "never two pods down")
		s.Expect(partition(s.set())).To(BeEquivalentTo(parked))
		s.Expect(s.deletions()).To(BeEmpty(), "Pawl deletes nothing when all goes well")
		s.Expect(s.diary()).To(Equal([]string{
			"RolloutStarted BringUp", "RolloutCompleted Completed",
			"RolloutStarted NewRevision",
			"StepStarted 2", "StepCompleted 2", "StepStarted 1", "StepCompleted 1", "StepStarted 0", "StepCompleted 0",
			"RolloutCompleted Completed",
		}))
		st := s.progress().Status
		s.Expect(st.Progress).To(Equal("3/3"))
		s.Expect(*st.Rollout.Steps).To(BeEquivalentTo(3))
		s.expectStepEvents()
	})
}

// expectStepEvents: one Event per step, in the words that MOCO's users know, with the pod as the related object.
func (s *story) expectStepEvents() {
	notes := func() map[string]string {
		var list eventsv1.EventList
		s.Expect(lab.alice.List(s.t.Context(), &list, client.InNamespace(s.namespace))).To(Succeed())
		found := map[string]string{}
		for _, e := range list.Items {
			if e.Reason == "PartitionUpdate" && e.Related != nil && e.Related.Name != "" {
				found[e.Related.Name] += e.Note + "\n"
			}
		}
		return found
	}
	s.Eventually(notes, patience).Should(And(
		HaveKeyWithValue("db-2", HavePrefix("Updated partition from 3 to 2")),
		HaveKeyWithValue("db-1", HavePrefix("Updated partition from 2 to 1")),
		HaveKeyWithValue("db-0", HavePrefix("Updated partition from 1 to 0")),
	), "one Event per step")
	for pod, note := range notes() {
		s.Expect(note).To(MatchRegexp(`^[^\n]*\n$`), "one Event for %s", pod)
		s.Expect(note).To(ContainSubstring(s.set().Status.UpdateRevision), "the revision is in the message")
	}
}
