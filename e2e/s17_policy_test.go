package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// S17: a RolloutPolicy says what else has to be so before a step.

// policy makes a RolloutPolicy for this story, named as its namespace.
func (s *story) rolloutPolicy(spec pawlv1alpha1.RolloutPolicySpec) *pawlv1alpha1.RolloutPolicy {
	p := &pawlv1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: spec}
	s.Expect(lab.admin.Create(s.t.Context(), p)).To(Succeed())
	s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), p) })
	return p
}

// changePolicy edits the RolloutPolicy of this story.
func (s *story) changePolicy(change func(*pawlv1alpha1.RolloutPolicySpec)) {
	p := &pawlv1alpha1.RolloutPolicy{}
	s.Expect(lab.admin.Get(s.t.Context(), client.ObjectKey{Name: s.namespace}, p)).To(Succeed())
	before := p.DeepCopy()
	change(&p.Spec)
	s.Expect(lab.admin.Patch(s.t.Context(), p, client.MergeFrom(before))).To(Succeed())
}

// governed has the StatefulSet name the policy of this story.
func (s *story) governed(set *appsv1.StatefulSet) { set.Labels["pawl.dev/policy"] = s.namespace }

// waits: the rollout waits for a reason, with words in its message, and checks that the partition is p.
func (s *story) waits(reason string, p int32, words ...string) {
	s.t.Helper()
	s.waitFor(reason, state("Waiting", reason, ""))
	for _, w := range words {
		s.Expect(s.progress().Status.Message).To(ContainSubstring(w))
	}
	s.Expect(*s.progress().Status.Partition).To(Equal(p))
}

func TestS17Approval(t *testing.T) {
	tell(t, "s17-approval", func(s *story) {
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{CanaryPods: new(int32(1))})
		s.create("1", s.governed)
		s.setImage("2")
		s.waits("AwaitingApproval", 2, "1 of 3 pods run")
		s.Expect(s.progress().Status.Message).To(ContainSubstring(`"approvedRevision":"` + s.set().Status.UpdateRevision + `"`))
		s.approve(s.good)
		s.Consistently(func() int32 { return partition(s.set()) }, 2*time.Second, tick).Should(BeEquivalentTo(2), "another revision is approved, not this")

		message := s.progress().Status.Message // a person pastes what it says
		_, command, found := strings.Cut(message, "Approve: ")
		s.Expect(found).To(BeTrue())
		code, said := lab.sh(s.t.Context(), s.t.TempDir(), command, 30*time.Second)
		s.Expect(code).To(BeZero(), said)
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.oneByOne()
		for _, e := range s.events() {
			if e.Type == "StepStarted" && e.Ordinals != "2" {
				s.Expect(e.Actor).To(Equal(s.known(s.admin())[0]), "who approved it")
			}
		}

		// A way back never waits for anybody, be its pods dead
		s.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, "db-2"))
		s.setImage("2")
		s.waitFor("the rollback", done("RolledBack"))
		// or well: two go back, and the second does not wait for the first to be baked either.
		s.changePolicy(func(p *pawlv1alpha1.RolloutPolicySpec) { p.CanaryPods = new(int32(2)) })
		s.setImage("3")
		s.waits("AwaitingApproval", 1, "2 of 3 pods run")
		s.changePolicy(func(p *pawlv1alpha1.RolloutPolicySpec) { p.BakeSeconds = new(int32(3600)) })
		s.approve(s.good) // and no longer what it goes back to
		s.setImage("2")
		s.waitFor("the rollback", done("RolledBack"))

		// The page has the commands of a person who approves.
		s.changePolicy(func(p *pawlv1alpha1.RolloutPolicySpec) { p.BakeSeconds = nil })
		s.setImage("3")
		s.waits("AwaitingApproval", 1, "2 of 3 pods run")
		s.runs(commands(s, "policy.md", "The fields"))
		s.waitFor("the rollout to complete", done("Completed"))
	})
}

func TestS17BakeTime(t *testing.T) {
	tell(t, "s17-bake", func(s *story) {
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{BakeSeconds: new(int32(6))})
		s.create("1", s.governed)
		s.setImage("2")
		s.waits("Baking", 2, "Baking until ", "db-2 is at ", "Next: db-1")
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.oneByOne()
		var completed time.Time
		for _, e := range s.events() {
			switch {
			case e.Type == "StepCompleted":
				completed = e.Time.Time
			case e.Type == "StepStarted" && !completed.IsZero():
				s.Expect(e.Time.Sub(completed)).To(BeNumerically(">=", 5*time.Second), "the pod had been available for a moment when its step was complete")
			}
		}
	})
}

func TestS17DisruptionBudget(t *testing.T) {
	tell(t, "s17-budget", func(s *story) {
		never := intstr.FromInt32(0)
		pdb := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "strict", Namespace: s.namespace},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &never, Selector: s.written("1").Spec.Selector},
		}
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{})
		s.create("1", s.governed)
		s.Expect(lab.alice.Create(s.t.Context(), pdb)).To(Succeed())
		s.setImage("2")
		s.waits("DisruptionBudget", 3, "budget strict never allows a disruption", "3 of 3 pods")
		before := pdb.DeepCopy()
		one := intstr.FromString("34%")
		pdb.Spec.MaxUnavailable = &one
		s.Expect(lab.alice.Patch(s.t.Context(), pdb, client.MergeFrom(before))).To(Succeed())
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.oneByOne()

		// Two budgets: both have to have room. The policy may say that they do not count.
		second := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "second", Namespace: s.namespace}, Spec: *before.Spec.DeepCopy()}
		s.Expect(lab.alice.Create(s.t.Context(), second)).To(Succeed())
		s.setImage("3")
		s.waits("DisruptionBudget", 3, "budget second never allows")
		s.changePolicy(func(p *pawlv1alpha1.RolloutPolicySpec) { p.DisruptionBudgets = pawlv1alpha1.IgnoreBudgets })
		s.waitFor("the rollout to complete", rolloutDone(3))
	})
}

func TestS17NoSuchPolicy(t *testing.T) {
	tell(t, "s17-missing", func(s *story) {
		s.create("1")
		s.edit(s.governed)
		s.waitFor("Blocked", state("Blocked", "PolicyNotFound", ""))
		s.Expect(s.progress().Status.Message).To(ContainSubstring("RolloutPolicy " + s.namespace + " is missing"))
		s.setImage("2")
		s.Consistently(func() int32 { return partition(s.set()) }, 2*time.Second, tick).Should(BeEquivalentTo(parked), "no step without its policy")
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{})
		s.waitFor("the rollout to complete", rolloutDone(2))
	})
}

// A gate that does not compile: the policy says where, and its StatefulSets stop; mended, they go on.
func TestS17InvalidExpression(t *testing.T) {
	tell(t, "s17-invalid", func(s *story) {
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{Gates: []pawlv1alpha1.Gate{{Name: "ready", Expression: "statefulSet.status.readyReplicas == replicas"}}})
		s.Eventually(func() string { return run(lab.lab.Kubectl, "describe", "rolloutpolicy", s.namespace) }, patience, time.Second).
			Should(And(ContainSubstring("InvalidExpression"), ContainSubstring("gates[0] ready: expression: 1:37: undeclared reference to 'replicas'")))
		s.create("1", s.governed)
		s.setImage("2")
		s.waits("GateError", 3, "gate ready cannot be evaluated", "undeclared reference to 'replicas'")
		s.changePolicy(func(p *pawlv1alpha1.RolloutPolicySpec) {
			p.Gates[0].Expression = "statefulSet.status.readyReplicas == statefulSet.spec.replicas && pods.all(p, p.status.phase == 'Running')"
		})
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.oneByOne()
		s.Expect(run(lab.lab.Kubectl, "wait", "--for=condition=Ready", "--timeout=10s", "rolloutpolicy/"+s.namespace)).To(ContainSubstring("condition met"))
		said := s.kubectl("create", "--dry-run=server", "-f", "../config/samples/policies")
		s.Expect(strings.Count(said, "created (server dry run)")).To(Equal(3), "the examples are valid: %s", said)
	})
}

// Many StatefulSets are changed at once. Never more than the limit have a pod being replaced, also while the manager is
// killed and another takes over, and all of them get there.
func TestS17ConcurrentSteps(t *testing.T) {
	t.Parallel()
	sets := int32(50)
	if half {
		sets = 12
	}
	tellOne(t, "s17-slots", appsv1.ParallelPodManagement, true, settings{}, func(s *story) {
		const limit = 3
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{MaxConcurrentSteps: new(int32(limit))})
		small := func(set *appsv1.StatefulSet) {
			s.governed(set)
			set.Spec.Replicas = new(int32(2))
		}
		s.create("1", small)
		names := []string{name}
		for i := range sets - 1 {
			names = append(names, fmt.Sprintf("fleet-%d", i))
			s.submit("1", small, func(set *appsv1.StatefulSet) {
				set.Name = names[len(names)-1]
				labels := map[string]string{"app": set.Name}
				set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = labels, labels
			})
		}
		all := func() (done, stepping int) {
			var list pawlv1alpha1.RolloutProgressList
			s.Expect(lab.alice.List(s.t.Context(), &list, client.InNamespace(s.namespace))).To(Succeed())
			for _, rp := range list.Items {
				if rp.Status.State == "Done" && rp.Status.Rollout != nil {
					done++
				}
				if rp.Status.State == "Stepping" {
					stepping++
				}
			}
			return done, stepping
		}
		s.Eventually(func() int { done, _ := all(); return done }, 2*patience).Should(Equal(len(names)), "waiting for all to come up")
		watch := s.watchSteps()
		for _, n := range names {
			s.kubectl("set", "image", "sts/"+n, "mysqld="+image("2"))
		}
		s.Eventually(func() int { _, stepping := all(); return stepping }, patience, tick).Should(Equal(limit), "waiting for all slots to be taken")
		s.Eventually(func() string { return s.kubectl("get", "rp") }, patience).Should(ContainSubstring("ConcurrencyLimit"))
		s.stopManager(syscall.SIGKILL)
		s.startManager()
		s.Eventually(func() int { return watch.finished() }, 4*patience).Should(Equal(len(names)), "waiting for all to be updated")
		most, held := watch.end()
		s.Expect(most).To(Equal(limit), "as many as are allowed, and never more")
		s.Expect(held).To(ContainSubstring("RolloutPolicy "), "who waits says for what")
		s.Expect(held).To(ContainSubstring(s.namespace+"/"), "and for whom")
	})
}

// One PodDisruptionBudget over several StatefulSets, all changed at once: what it allows is for one of them at a time. Its
// status shows room to all until the first pod is gone.
func TestS17SharedBudget(t *testing.T) {
	t.Parallel()
	tellOne(t, "s17-shared", appsv1.ParallelPodManagement, true, settings{}, func(s *story) {
		const sets = 6
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{})
		tier := map[string]string{"tier": "database"}
		small := func(set *appsv1.StatefulSet) {
			s.governed(set)
			set.Spec.Replicas = new(int32(2))
			maps.Copy(set.Spec.Template.Labels, tier)
		}
		one := intstr.FromInt32(1)
		s.Expect(lab.alice.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: s.namespace},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: tier}},
		})).To(Succeed())
		s.create("1", small)
		names := []string{name}
		for i := range sets - 1 {
			names = append(names, fmt.Sprintf("shard-%d", i))
			s.submit("1", func(set *appsv1.StatefulSet) {
				set.Name = names[len(names)-1]
				set.Spec.Selector.MatchLabels = map[string]string{"app": set.Name}
				set.Spec.Template.Labels = map[string]string{"app": set.Name}
			}, small)
		}
		s.Eventually(func() (int32, error) {
			budget := &policyv1.PodDisruptionBudget{}
			err := lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "shared"}, budget)
			return budget.Status.CurrentHealthy, err
		}, 2*patience).Should(BeEquivalentTo(2*sets), "waiting for all pods to be healthy")
		watch := s.watchSteps()
		for _, n := range names {
			s.kubectl("set", "image", "sts/"+n, "mysqld="+image("2"))
		}
		s.Eventually(watch.finished, 4*patience).Should(Equal(len(names)), "waiting for all to be updated")
		most, held := watch.end()
		s.Expect(most).To(Equal(1), "what the budget allows, and never more")
		s.Expect(held).To(ContainSubstring("budget shared "), "who waits says for what")
	})
}

// The right to read the owner is withdrawn after it was read: nobody knows how it is now, so there is no step.
func TestS17OwnerNoLongerReadable(t *testing.T) {
	t.Parallel()
	tellOne(t, "s17-withdrawn", appsv1.ParallelPodManagement, true, settings{}, func(s *story) {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{ownerOfStory}, Verbs: []string{"list", "watch"}}},
		}
		s.Expect(lab.admin.Create(s.t.Context(), role)).To(Succeed())
		s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), role) })
		binding := func() *rbacv1.ClusterRoleBinding {
			return &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: pawlNamespace, Name: pawlAccount}},
			}
		}
		may := func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: pawlUser, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: ownerOfStory},
			}}
			s.Expect(lab.admin.Create(s.t.Context(), review)).To(Succeed())
			return review.Status.Allowed
		}
		s.Expect(lab.admin.Create(s.t.Context(), binding())).To(Succeed())
		s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), binding()) })
		s.Eventually(may, patience).Should(BeTrue(), "waiting for the right to read owners")
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster", Namespace: s.namespace}, Data: map[string]string{"healthy": "yes"}}
		s.Expect(lab.alice.Create(s.t.Context(), owner)).To(Succeed())
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{Gates: []pawlv1alpha1.Gate{{Name: "healthy", Expression: "owner.data.healthy == 'yes'"}}})
		s.create("1", s.governed, func(set *appsv1.StatefulSet) {
			set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
		})
		s.setImage("2")
		s.waitFor("the rollout with the right", rolloutDone(2))

		s.Expect(lab.admin.Delete(s.t.Context(), binding())).To(Succeed())
		s.Eventually(may, patience).Should(BeFalse(), "waiting for the right to be withdrawn")
		s.setImage("3")
		s.waits("GateError", 3, "gate healthy cannot be evaluated", "Pawl may not list configmaps; grant that to its service account")
		s.Expect(lab.admin.Create(s.t.Context(), binding())).To(Succeed())
		s.waitFor("the rollout to complete", rolloutDone(3))
	})
}

// stepWatch counts, in the order in which the API server stored them, how many have a pod being replaced.
type stepWatch struct {
	stop     context.CancelFunc
	ended    chan struct{}
	state    map[string]string
	updated  chan map[string]bool
	most     int
	lastHeld string
}

func (s *story) watchSteps() *stepWatch {
	ctx, stop := context.WithCancel(s.t.Context())
	events, err := lab.alice.Watch(ctx, &pawlv1alpha1.RolloutProgressList{}, client.InNamespace(s.namespace))
	s.Expect(err).NotTo(HaveOccurred())
	w := &stepWatch{stop: stop, ended: make(chan struct{}), state: map[string]string{}, updated: make(chan map[string]bool, 1)}
	w.updated <- map[string]bool{}
	go func() {
		defer close(w.ended)
		for e := range events.ResultChan() {
			rp, is := e.Object.(*pawlv1alpha1.RolloutProgress)
			if !is {
				continue
			}
			w.see(rp)
		}
	}()
	return w
}

func (w *stepWatch) see(rp *pawlv1alpha1.RolloutProgress) {
	w.state[rp.Name] = string(rp.Status.State)
	stepping := 0
	for _, state := range w.state {
		if state == "Stepping" {
			stepping++
		}
	}
	w.most = max(w.most, stepping)
	if r := rp.Status.Reason; r == "ConcurrencyLimit" || r == "DisruptionBudget" {
		w.lastHeld = rp.Status.Message
	}
	if r := rp.Status.Rollout; rp.Status.State == "Done" && r != nil && r.Number == 2 {
		done := <-w.updated
		done[rp.Name] = true
		w.updated <- done
	}
}

func (w *stepWatch) finished() int {
	done := <-w.updated
	defer func() { w.updated <- done }()
	return len(done)
}

// end stops the watch and returns the most that there were at once, and the newest words of one that waited.
func (w *stepWatch) end() (most int, held string) {
	w.stop()
	<-w.ended
	return w.most, w.lastHeld
}

func (s *story) approve(revision string) {
	rp := s.progress()
	before := rp.DeepCopy()
	rp.Spec.ApprovedRevision = revision
	s.Expect(lab.alice.Patch(s.t.Context(), rp, client.MergeFrom(before))).To(Succeed())
}
