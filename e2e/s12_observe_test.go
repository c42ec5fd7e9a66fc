package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S12: Observe is the way to try Pawl. It needs no right to write to a StatefulSet or a pod, so here the manager runs as
// an account that has none.

// A native rollout is recorded and classified, a bad image is named, and its revert followed to the end. Not one write
// to a StatefulSet or a pod is even tried.
func TestS12ObserveWithoutTheRight(t *testing.T) {
	tell(t, "s12-observe", func(s *story) {
		s.runAs(watcherAccount)
		s.Eventually(func() []string { return s.manager.lines("only Observe works") }, patience).Should(HaveLen(1), "waiting for the manager to say what it cannot do")
		s.create("1", mode("Observe"), slowly) // so that each pod is seen on its way
		s.setImage("2")
		s.waitFor("the rollout to be seen to the end", rolloutDone(2))
		s.Expect(s.since(2)).To(Equal([]string{
			"RolloutStarted NewRevision",
			"StepStarted External 2", "StepCompleted 2", "StepStarted External 1", "StepCompleted 1", "StepStarted External 0", "StepCompleted 0",
			"RolloutCompleted Completed",
		}))
		s.toolsSay("Current", "Healthy", "Healthy")
		s.good = s.progress().Status.StableRevision
		s.setImage("bad")
		s.waitFor("the stall to be named", state("Blocked", pullReasons, podName(2)))
		s.Expect(partition(s.set())).To(BeZero(), "the partition is the owner's")
		s.toolsSay("Failed", "Degraded", "Progressing")

		s.setImage("2")
		s.waitForEvent("RolloutStarted", 4)
		if s.policy == "OrderedReady" { // where nobody may delete the broken pod, a person has to
			s.waitFor("the casualty to be named", state("Blocked", pullReasons, podName(2)))
			s.Expect(revision(s.lose(2))).To(Equal(s.good))
		}
		s.waitFor("the rollback", done("RolledBack"))
		s.Expect(s.tried(watcherUser)).To(HaveEach(Or(
			Equal("create rolloutprogresses"), Equal("update rolloutprogresses/status"), Equal("create rolloutrecords"),
		)), "no other write was even tried")
		s.Expect(s.tried(pawlUser)).To(BeEmpty(), "and nobody did it instead")
		s.Expect(s.manager.errors()).To(BeEmpty(), "nothing is missing for this")
	})
}

// In mode Enforce the right is missing, and that is said where people look: once, with the remedy, as a Warning Event on
// the StatefulSet. No pod moves. With the right the rollout goes on, and the step that was recorded is taken once.
func TestS12EnforceWithoutTheRight(t *testing.T) {
	tell(t, "s12-no-right", func(s *story) {
		s.create("1")
		s.parkedNow()
		s.runAs(watcherAccount)
		s.setImage("2")
		s.Eventually(s.warnings, patience).Should(HaveKeyWithValue("Forbidden", And(
			ContainSubstring("cannot patch resource"), ContainSubstring("statefulsets"), ContainSubstring("config/rbac"),
		)), "waiting for a Warning Event that says what is missing")
		s.stays(parked, "no step")
		s.Expect(s.manager.errors()).To(HaveLen(1), "once, and not with every try")
		s.Expect(s.count("StepStarted")).To(Equal(1), "the step is recorded before it is tried")

		s.runAs(pawlAccount)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.since(2)).To(Equal(stepwise))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
	})
}

// watcherAccount is a service account that may do all that Pawl may, except to write to StatefulSets and pods;
// blindAccount may not see what is good to have: nodes, claims, and Events.
const (
	watcherAccount = "pawl-watcher"
	watcherUser    = "system:serviceaccount:" + pawlNamespace + ":" + watcherAccount
	blindAccount   = "pawl-blind"
)

// lesser are the accounts that have less than config/rbac gives to Pawl, each made when a story first needs it.
var lesser = map[string]func() error{
	watcherAccount: sync.OnceValue(func() error {
		return lab.addLesser(context.Background(), watcherAccount, func(rule *rbacv1.PolicyRule) {
			if slices.Contains(rule.APIGroups, "apps") || slices.Contains(rule.APIGroups, "") {
				rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
			}
		})
	}),
	blindAccount: sync.OnceValue(func() error {
		return lab.addLesser(context.Background(), blindAccount, nil, "pawl-read-nodes", "pawl-read-claims", "pawl-read-events")
	}),
}

// addLesser gives an account the roles that config/rbac gives to Pawl, but for those that are withheld, and of each rule
// what take leaves of it.
func (c *cluster) addLesser(ctx context.Context, account string, take func(*rbacv1.PolicyRule), withheld ...string) error {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := c.admin.List(ctx, bindings); err != nil {
		return fmt.Errorf("read who may do what: %w", err)
	}
	less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}}
	for _, b := range bindings.Items {
		ofPawl := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: pawlAccount, Namespace: pawlNamespace}
		if !slices.Contains(b.Subjects, ofPawl) || slices.Contains(withheld, b.RoleRef.Name) {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := c.admin.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, role); err != nil {
			return fmt.Errorf("read a role of Pawl: %w", err)
		}
		for _, rule := range role.Rules {
			if take != nil {
				take(&rule)
			}
			if len(rule.Verbs) > 0 {
				less.Rules = append(less.Rules, rule)
			}
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: pawlNamespace}},
	}
	for _, o := range []client.Object{less, binding} {
		if err := c.admin.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s: %w", o.GetName(), err)
		}
	}
	return c.loginAs(ctx, account)
}

// runAs has the manager run as another account from now on.
func (s *story) runAs(account string) {
	if add := lesser[account]; add != nil {
		s.Expect(add()).To(Succeed())
	}
	s.stopManager(syscall.SIGTERM)
	s.account = account
	s.startManager()
}

// warnings are the notes of the Warning Events on StatefulSets, by reason.
func (s *story) warnings() map[string]string {
	var list eventsv1.EventList
	s.Expect(lab.alice.List(s.t.Context(), &list, client.InNamespace(s.namespace))).To(Succeed())
	notes := map[string]string{}
	for _, e := range list.Items {
		if e.Type == "Warning" && e.Regarding.Kind == "StatefulSet" {
			notes[e.Reason] = e.Note
		}
	}
	return notes
}
