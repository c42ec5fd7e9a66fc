package controllers

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
)

// Which RolloutPolicy holds: the one that the label names, which has to be there, or the one called default, which need not.
func TestWhichPolicyHolds(t *testing.T) {
	for name, c := range map[string]struct {
		label   string
		lacks   string
		mayRead bool
		days    int32 // of the policy that holds; 0 is none
		missing string
	}{
		"the one that is named":            {label: "short", mayRead: true, days: 60},
		"default":                          {mayRead: true, days: 120},
		"default, by its name":             {label: "default", mayRead: true, days: 120},
		"none, and none is needed":         {lacks: "default", mayRead: true},
		"default is named and is missing":  {label: "default", lacks: "default", mayRead: true, missing: "there is no RolloutPolicy of this name"},
		"what is named is missing":         {label: "mysql", mayRead: true, missing: "there is no RolloutPolicy of this name"},
		"none may be read, one is named":   {label: "short", missing: "Pawl may not list and watch RolloutPolicies; apply config/rbac"},
		"none may be read, none is needed": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := &appsv1.StatefulSet{}
			if c.label != "" {
				set.Labels = map[string]string{v1alpha1.PolicyLabel: c.label}
			}
			policy, missing, err := (&Reconciler{Client: library{lacks: c.lacks}, ReadPolicies: c.mayRead}).policyOf(t.Context(), set)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(missing).To(Equal(c.missing))
			if c.days == 0 {
				g.Expect(policy).To(BeNil())
				return
			}
			g.Expect(policy.Spec.RetentionDays).To(Equal(c.days))
		})
	}
}

// depot is a cache of StatefulSets.
type depot struct {
	client.Reader
	sets []appsv1.StatefulSet
}

func (b depot) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(opts)
	for _, set := range b.sets {
		if l, is := list.(*appsv1.StatefulSetList); is && asked.LabelSelector.Matches(labels.Set(set.Labels)) {
			l.Items = append(l.Items, set)
		}
	}
	return nil
}

// A policy that is changed calls the StatefulSets that it holds for: default those that name none.
func TestAPolicyCallsItsStatefulSets(t *testing.T) {
	set := func(name string, labels map[string]string) appsv1.StatefulSet {
		return appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
	}
	const mode, policy = v1alpha1.ModeLabel, v1alpha1.PolicyLabel
	w := watcher{depot{sets: []appsv1.StatefulSet{
		set("plain", map[string]string{mode: "Enforce"}),
		set("by-name", map[string]string{mode: "Observe", policy: "default"}),
		set("mysql", map[string]string{mode: "Enforce", policy: "mysql"}),
		set("unmanaged", map[string]string{policy: "mysql"}),
		set("unlabelled", nil),
	}}}
	for name, want := range map[string][]string{"default": {"plain", "by-name"}, "mysql": {"mysql"}, "other": nil} {
		t.Run(name, func(t *testing.T) {
			var called []string
			for _, r := range w.setsWithPolicy(t.Context(), &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}) {
				called = append(called, r.Name)
			}
			NewWithT(t).Expect(called).To(ConsistOf(want))
		})
	}
}
