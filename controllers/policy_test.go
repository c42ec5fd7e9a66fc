package controllers

import (
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Every field of a policy reaches the decision, and one that is not set leaves what the flags say.
func TestEveryFieldOfAPolicyCounts(t *testing.T) {
	flags := statemachine.Observation{StallGrace: 30 * time.Second, ProgressDeadline: 10 * time.Minute}
	for field, c := range map[string]struct {
		spec v1alpha1.RolloutPolicySpec
		want func(*statemachine.Observation)
	}{
		"none":                    {v1alpha1.RolloutPolicySpec{}, func(*statemachine.Observation) {}},
		"CanaryPods":              {v1alpha1.RolloutPolicySpec{CanaryPods: new(int32(2))}, func(o *statemachine.Observation) { o.Policy.CanaryPods = 2 }},
		"BakeSeconds":             {v1alpha1.RolloutPolicySpec{BakeSeconds: new(int32(90))}, func(o *statemachine.Observation) { o.Policy.Bake = 90 * time.Second }},
		"ProgressDeadlineSeconds": {v1alpha1.RolloutPolicySpec{ProgressDeadlineSeconds: 1200}, func(o *statemachine.Observation) { o.ProgressDeadline = 20 * time.Minute }},
		"StallGraceSeconds":       {v1alpha1.RolloutPolicySpec{StallGraceSeconds: new(int32(0))}, func(o *statemachine.Observation) { o.StallGrace = 0 }},
		"MaxConcurrentSteps":      {v1alpha1.RolloutPolicySpec{MaxConcurrentSteps: new(int32(5))}, func(o *statemachine.Observation) { o.Policy.Slots.Limit = 5 }},
	} {
		t.Run(field, func(t *testing.T) {
			got, want := flags, flags
			apply(c.spec, &got)
			c.want(&want)
			NewWithT(t).Expect(got).To(Equal(want))
		})
	}
	// The others are asked of the cluster: S17 tells of gates and budgets, TestRetentionIsThePolicys of records.
	elsewhere := []string{"Gates", "DisruptionBudgets", "RetentionDays"}
	NewWithT(t).Expect(reflect.TypeFor[v1alpha1.RolloutPolicySpec]().NumField()).To(Equal(5+len(elsewhere)), "a new field needs a line here")
}

// A budget is asked of the pods that it selects, by what its controller last wrote.
func TestBudgetOfPods(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "u1"}}
	pod := func(name string, uid types.UID, labels map[string]string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: uid, Controller: new(true),
		}}}}
	}
	f := facts{statefulSet: set, pods: []corev1.Pod{
		pod("db-0", "u1", map[string]string{"app": "db", "role": "primary"}), pod("db-1", "u1", map[string]string{"app": "db"}),
		pod("db-2", "another", map[string]string{"app": "db"}),
	}}
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		want     statemachine.Ordinals
	}{
		"all":       {&metav1.LabelSelector{}, "0-1"},
		"some":      {&metav1.LabelSelector{MatchLabels: map[string]string{"role": "primary"}}, "0"},
		"others":    {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, ""},
		"none":      {nil, ""},
		"not valid": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}, "0-1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := f.budget(&policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 2}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: c.selector},
				Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 4},
			})
			g.Expect(b.Ordinals).To(Equal(c.want))
			g.Expect(b.Problem != "").To(Equal(name == "not valid"))
			g.Expect([]int32{b.Allowed, b.Healthy, b.Desired, b.Expected}).To(Equal([]int32{1, 3, 2, 4}))
			g.Expect(b.Stale).To(BeTrue())
		})
	}
}

// A budget over pods that are not all of StatefulSets and Deployments has numbers that nobody worked out.
func TestABudgetWhoseStatusFailedIsNotBelieved(t *testing.T) {
	f := facts{statefulSet: &appsv1.StatefulSet{}}
	b := f.budget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: policyv1.PodDisruptionBudgetStatus{
		DisruptionsAllowed: 1,
		Conditions: []metav1.Condition{{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no controllers for pod db-0",
		}},
	}})
	NewWithT(t).Expect(b.Problem).To(Equal("the status of budget b cannot be worked out: found no controllers for pod db-0"))
}

// The gates of a policy are compiled once, however often they are asked, and again for what is another policy.
func TestGatesAreCompiledOncePerGeneration(t *testing.T) {
	g := NewWithT(t)
	var p programs
	policy := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mysql", UID: "u1", Generation: 1}}
	first := p.of(policy)
	for range 100 {
		g.Expect(p.of(policy.DeepCopy())).To(BeIdenticalTo(first))
	}
	policy.Generation = 2
	second := p.of(policy)
	g.Expect(second).NotTo(BeIdenticalTo(first), "its spec is another")
	policy.UID, policy.Generation = "u2", 1
	g.Expect(p.of(policy)).NotTo(BeIdenticalTo(first), "it was made anew")
}
