package e2e

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

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
		if s.via == nil { // a manager that is killed after a record may take its Event with it
			s.expectStepEvents()
		}
	})
}

// S1: what happens to a StatefulSet is decided on caches. The API server is asked beside them once for each log and each
// template, and where a write was refused or its effect is not seen yet; never because someone writes something.
func TestS1ReadsFromCaches(t *testing.T) {
	tell(t, "s1-reads", func(s *story) {
		s.stopManager(syscall.SIGTERM)
		s.metrics, s.open = freeAddress(s), true
		s.startManager()
		s.create("1")
		s.looksOften("with nothing to do")
		s.stepTo("2", 2)
		s.Eventually(func() int { return s.judge().ready }, patience, tick).Should(Equal(3), "waiting for the pod of the step")
		s.looksOften("in the middle of a rollout")
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))

		unexpected := slices.DeleteFunc(s.asked(), func(read string) bool {
			return slices.Contains([]string{
				"list rolloutrecords",                       // once for each log, as is
				"list pods",                                 // whether the cache of the first decision is current,
				"list controllerrevisions",                  // of each template, which revision it is,
				"get statefulsets", "get rolloutprogresses", // and after a write
			}, read)
		})
		s.Expect(unexpected).To(BeEmpty())
	})
}

// looksOften makes the manager look again and again, and expects that it finds all it needs in its caches.
func (s *story) looksOften(when string) {
	const reconciles, often = "controller_runtime_reconcile_total", 20
	looks := func() float64 {
		values, err := sumsAt(s.metrics, reconciles)
		s.Expect(err).NotTo(HaveOccurred())
		return values[reconciles]
	}
	quiet := func() []string { return slices.Sorted(slices.Values(s.asked())) }
	var before []string
	s.Eventually(func(g Gomega) { // the last write of before is seen
		first := quiet()
		s.pass(2 * time.Second)
		before = quiet()
		g.Expect(before).To(Equal(first))
	}, patience, tick).Should(Succeed(), "waiting until all is quiet")
	began := looks()
	for i := range often {
		s.annotate(i%3, "example.com/touched", strconv.Itoa(i))
		s.pass(50 * time.Millisecond)
	}
	s.Eventually(looks, patience, tick).Should(BeNumerically(">=", began+often/2), "the manager looks at what happens")
	s.pass(2 * time.Second)
	s.Expect(quiet()).To(Equal(before), "reads of the API server %s", when)
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
