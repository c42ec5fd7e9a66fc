package e2e

import (
	"fmt"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the stories about sizes ask, and do.

func replicas(n int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n }
}

// outsideGates: the rollout with this number is complete, and no gate was asked, as there was no pod to ask for.
func outsideGates(number int64) is {
	return func(st status) string {
		if missing := begun(number)(st); missing != "" {
			return missing
		}
		return done("OutsideGates")(st)
	}
}

// scale goes by the scale subresource, as autoscalers do: no admission policy looks at it.
func (s *story) scale(n int) {
	s.t.Helper()
	s.Expect(s.kubectl("scale", "sts", name, fmt.Sprintf("--replicas=%d", n))).To(ContainSubstring("scaled"))
}

// target is the revision of the template, once the StatefulSet controller knows it.
func (s *story) target() string {
	s.t.Helper()
	s.Eventually(func() bool {
		set := s.set()
		return set.Status.ObservedGeneration == set.Generation
	}, patience, tick).Should(BeTrue(), "waiting for the StatefulSet controller")
	return s.set().Status.UpdateRevision
}

// steps are the ordinals of the steps that completed, in order.
func (s *story) steps() []string {
	var ordinals []string
	for _, t := range s.events() {
		if t.Type == "StepCompleted" {
			ordinals = append(ordinals, t.Ordinals)
		}
	}
	return ordinals
}

// scalings are the numbers of replicas that the log says there were.
func (s *story) scalings() []int32 {
	var to []int32
	for _, t := range s.events() {
		if t.Type == "Scaled" {
			to = append(to, *t.Replicas)
		}
	}
	return to
}

// born are the revisions at which the newest pods of these ordinals came; "" for one that is not there.
func (s *story) born(ordinals ...int) []string {
	at := map[int]string{}
	for _, seen := range s.observer.history() {
		if seen.pod != nil {
			i := ordinal(seen.pod.Name)
			if at[i] = revision(seen.pod); seen.what == watch.Deleted {
				at[i] = ""
			}
		}
	}
	var revisions []string
	for _, i := range ordinals {
		revisions = append(revisions, at[i])
	}
	return revisions
}

// firstBorn is the revision at which the very first pod of an ordinal came.
func (s *story) firstBorn(i int) string {
	for _, seen := range s.observer.history() {
		if seen.pod != nil && ordinal(seen.pod.Name) == i {
			return revision(seen.pod)
		}
	}
	return ""
}

// keep puts a finalizer on a pod, or takes it off: with it a deleted pod stays.
func (s *story) keep(i int, kept bool) {
	pod := s.pod(i)
	before := pod.DeepCopy()
	pod.Finalizers = nil
	if kept {
		pod.Finalizers = []string{"stories.pawl.dev/keep"}
	}
	s.Expect(lab.alice.Patch(s.t.Context(), pod, client.MergeFrom(before))).To(Succeed())
}

// allReady waits until all wanted pods are ready, whatever the log says.
func (s *story) allReady(n int) {
	s.t.Helper()
	s.Eventually(func() int {
		var pods corev1.PodList
		s.Expect(lab.alice.List(s.t.Context(), &pods, client.InNamespace(s.namespace))).To(Succeed())
		up := 0
		for i := range pods.Items {
			if ready(&pods.Items[i]) {
				up++
			}
		}
		return up
	}, patience).Should(Equal(n), "waiting for %d ready pods", n)
}
