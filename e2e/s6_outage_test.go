package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// S6: a database that once worked is wholly down. That is no licence to release it (rule 12); a person may, by force.

func TestS6OutageAndForce(t *testing.T) {
	tell(t, "s6-outage", func(s *story) {
		s.create("1")
		s.outage()
		before, kept := s.judge(), s.uids(0, 1, 2)
		s.setImage("2")
		s.waitFor("the refusal", state("Blocked", "TotalOutage "+crashReasons, ""))
		s.Consistently(func() any { return s.uids(0, 1, 2) }, 8*time.Second, 200*time.Millisecond).Should(Equal(any(kept)), "no pod is touched")
		s.Expect(s.judge().byPawl).To(Equal(before.byPawl), "parked as before")

		s.force(s.set().Status.UpdateRevision, "it is down anyway")
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Eventually(func() []string { return s.judge().byPawl[len(before.byPawl):] }, patience).
			Should(Equal([]string{"2147483647>0", "0>2147483647"}), "one write releases all")
		s.Expect(s.events()).To(ContainElement(And(
			HaveField("Type", "StepStarted"), HaveField("Reason", "Forced"), HaveField("Ordinals", "0-2"),
			HaveField("Actor", s.known("alice")[0]), HaveField("Cause", "it is down anyway"),
		)), "the log says who took it upon themselves, and why")
		s.Expect(s.audited("alice", "delete", "pods")).To(BeEmpty(), "no hand on any pod")
	})
}

// Healing one pod is no way out of an outage: once all are known to be dead, it says so, and what a person can do.
func TestS6OutageSaysHowToForce(t *testing.T) {
	tell(t, "s6-outage-says", func(s *story) {
		s.create("1")
		s.outage()
		s.setImage("2")
		s.waitFor("the way out to be named", func(st status) string {
			return state("Blocked", "TotalOutage", "")(st) + messageSays(s.target())(st) + messageSays("force")(st)
		})
	})
}

// A force is for one revision. For another it has no effect, and that is not met with silence.
func TestS6ForceForAnotherRevision(t *testing.T) {
	tell(t, "s6-force-other", func(s *story) {
		s.create("1")
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		before := s.judge().byPawl
		s.force(s.good, "the wrong one")
		s.Eventually(func() string {
			var list eventsv1.EventList
			s.Expect(lab.alice.List(s.t.Context(), &list, client.InNamespace(s.namespace))).To(Succeed())
			for _, e := range list.Items {
				if e.Reason == "ForceHasNoEffect" && e.Type == "Warning" && e.Regarding.Kind == "RolloutProgress" {
					return e.Note
				}
			}
			return ""
		}, patience).Should(And(ContainSubstring(s.good), ContainSubstring(s.set().Status.UpdateRevision)), "a warning Event that names both revisions")
		s.Consistently(func() int32 { return partition(s.set()) }, 3*time.Second, 200*time.Millisecond).Should(BeEquivalentTo(parked))
		s.Expect(s.judge().byPawl).To(Equal(before), "no effect")

		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.events()).NotTo(ContainElement(HaveField("Reason", "Forced")))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}), "step by step, as if nobody had forced anything")
	})
}

// outage has every pod crash.
func (s *story) outage() {
	for i := range 3 {
		s.fate(i, "crash")
	}
	s.Eventually(func() int { return s.judge().ready }, patience).Should(BeZero(), "waiting for the outage")
}

// force releases every pod for one revision, as a person does.
func (s *story) force(revision, reason string) {
	s.excused[revision] = revision == s.set().Status.UpdateRevision
	rp := s.progress()
	before := rp.DeepCopy()
	rp.Spec.Force = &pawlv1alpha1.Force{Revision: revision, Partition: new(int32), Reason: reason}
	s.Expect(lab.alice.Patch(s.t.Context(), rp, client.MergeFrom(before))).To(Succeed())
}
