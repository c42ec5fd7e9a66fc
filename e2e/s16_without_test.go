package e2e

import (
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// What Pawl can do without is withheld, one role at a time: it says at its start what it may not, and rolls out all the same.
// The other accounts are not excepted by the admission policies, so these are not there.
func TestS16Without(t *testing.T) {
	t.Parallel()
	for role, may := range map[string]string{
		"pawl-delete-pods":         "delete pods",
		"pawl-restore-revisions":   "patch statefulsets/status.apps",
		"pawl-read-nodes":          "list nodes",
		"pawl-read-claims":         "list persistentvolumeclaims",
		"pawl-read-events":         "list events",
		"pawl-read-policies":       "list rolloutpolicies.pawl.dev",
		"pawl-write-policy-status": "update rolloutpolicies/status.pawl.dev",
		"pawl-write-events":        "create events.events.k8s.io",
		"pawl-delete-records":      "delete rolloutrecords.pawl.dev",
		"pawl-review-tokens":       "create tokenreviews.authentication.k8s.io",
	} {
		t.Run(role, func(t *testing.T) {
			tellWithoutAdmission(t, "s16-without-"+role[len("pawl-"):], func(s *story) {
				s.metrics = freeAddress(s) // else nobody's token is reviewed
				s.runWithout(role)
				s.Eventually(func() []string { return s.manager.lines("Pawl may not " + may) }, patience).Should(HaveLen(1), "waiting for what it may not")
				s.create("1")
				s.setImage("2")
				s.waitFor("the rollout to complete", rolloutDone(2))
				s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
				s.Expect(s.deletions()).To(BeEmpty())
			})
		})
	}
}

// Without the right to delete pods a revert waits for a person: nothing else moves. With it, it goes on by itself. Under
// Parallel Kubernetes replaces the pod.
func TestS16WithoutDeletions(t *testing.T) {
	t.Parallel()
	tellOne(t, "s16-no-deletions", appsv1.OrderedReadyPodManagement, false, settings{}, func(s *story) {
		s.runWithout("pawl-delete-pods")
		s.create("1")
		kept := s.uids(0, 1)
		s.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, podName(2)))
		casualty := s.pod(2).UID
		s.setImage("1")
		s.Eventually(s.warnings, patience).Should(HaveKeyWithValue("Forbidden", ContainSubstring("cannot delete resource")), "waiting for a Warning Event that says what is missing")
		s.Consistently(func() any { return s.uids(0, 1) }, 3*time.Second, 200*time.Millisecond).Should(Equal(kept), "the others are untouched")
		s.Expect(s.deletions()).To(BeEmpty())

		s.runAs(pawlAccount)
		s.waitFor("the rollback", done("RolledBack"))
		s.Expect(s.pod(2).UID).NotTo(Equal(casualty))
		s.Expect(s.uids(0, 1)).To(Equal(kept))
	})
}

// Without the right to read PodDisruptionBudgets nobody can respect them: no step, until the policy says that they do not
// count.
func TestS16WithoutBudgets(t *testing.T) {
	tellWithoutAdmission(t, "s16-no-budgets", func(s *story) {
		s.runWithout("pawl-read-budgets")
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{})
		s.create("1", s.governed)
		s.setImage("2")
		s.waits("DisruptionBudget", 3, "Pawl may not list PodDisruptionBudgets", "disruptionBudgets: Ignore")
		s.changePolicy(func(p *pawlv1alpha1.RolloutPolicySpec) { p.DisruptionBudgets = pawlv1alpha1.IgnoreBudgets })
		s.waitFor("the rollout to complete", rolloutDone(2))
	})
}

// runWithout has the manager run as an account that has all of Pawl's roles but one.
func (s *story) runWithout(role string) {
	account := s.namespace
	s.Expect(lab.addLesser(s.t.Context(), account, nil, role)).To(Succeed())
	s.stopManager(syscall.SIGTERM)
	s.account = account
	s.startManager()
}
