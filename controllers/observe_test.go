package controllers

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func statefulSetOfThree() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "t1", Name: "db", UID: "U1", ResourceVersion: "7", Generation: 3},
		Spec: appsv1.StatefulSetSpec{
			Replicas:       new(int32(3)),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 3, UpdateRevision: "db-b", CurrentRevision: "db-a"},
	}
}

// podFrom reads a pod of U1 as a kubelet published it.
func podFrom(t *testing.T, name, published string) corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(published), &pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.Name = "t1", name
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "U1", Controller: new(true)}}
	return pod
}

func TestABareStatefulSet(t *testing.T) {
	g := NewWithT(t)
	o := observe(facts{now: noon.Add(1999 * time.Nanosecond).In(time.FixedZone("X", 3600)), statefulSet: statefulSetOfThree()})
	g.Expect(o.Now).To(Equal(noon.Add(time.Microsecond)))
	g.Expect(o.Partition).To(BeZero(), "as the StatefulSet controller reads an absent rollingUpdate")
	g.Expect(o.Pods).To(HaveLen(3))
	g.Expect(o.Pods[2]).To(Equal(statemachine.Pod{Name: "db-2", Ordinal: 2}))
	g.Expect(o.TemplateRevision).To(Equal("db-b"))
	g.Expect(o.Mode).To(Equal(statemachine.ModeOff))
	g.Expect(o.Created.IsZero()).To(BeTrue())
}

func TestAStatusThatIsBehindSaysNothingOfTheTemplate(t *testing.T) {
	set := statefulSetOfThree()
	set.Status.ObservedGeneration = 2
	NewWithT(t).Expect(observe(facts{statefulSet: set}).TemplateRevision).To(BeEmpty())
	NewWithT(t).Expect(observe(facts{statefulSet: set, templateRevision: "db-c"}).TemplateRevision).To(Equal("db-c"))
}

func TestPodsAreFoundByOwnerAndNumber(t *testing.T) {
	g := NewWithT(t)
	set := statefulSetOfThree()
	set.Spec.Replicas, set.Spec.Ordinals = new(int32(11)), &appsv1.StatefulSetOrdinals{Start: 2}
	pods := []corev1.Pod{}
	for _, name := range []string{"db-10", "db-9", "db-2", "db-13", "db-1", "db-0", "db-03", "db-x", "db", "db-4-5", "other-4"} {
		pods = append(pods, podFrom(t, name, `{}`))
	}
	foreign := podFrom(t, "db-5", `{}`)
	foreign.OwnerReferences[0].UID = types.UID("U0")
	orphan := podFrom(t, "db-6", `{"metadata":{"labels":{"app":"db"}}}`)
	orphan.OwnerReferences = nil
	o := observe(facts{statefulSet: set, pods: append(pods, foreign, orphan)})

	present := []string{}
	for i, p := range o.Pods {
		g.Expect(p.Ordinal).To(Equal(int32(2 + i)))
		if p.Present {
			present = append(present, p.Name)
		}
	}
	g.Expect(present).To(Equal([]string{"db-2", "db-9", "db-10"}), "by number: db-10 after db-9")
	condemned := []int32{}
	for _, p := range o.Condemned {
		condemned = append(condemned, p.Ordinal)
	}
	g.Expect(condemned).To(Equal([]int32{0, 1, 13}))
}

func TestWhoPausedAndWhoForced(t *testing.T) {
	g := NewWithT(t)
	rp := &v1alpha1.RolloutProgress{}
	rp.Annotations = map[string]string{
		v1alpha1.ChangedByAnnotation: "carol", v1alpha1.PausedByAnnotation: "bob", v1alpha1.ForcedByAnnotation: "alice",
	}
	seen := func() statemachine.Observation {
		return observe(facts{statefulSet: statefulSetOfThree(), progress: rp, authentic: true})
	}
	g.Expect(seen().Paused).To(BeFalse())
	g.Expect(seen().PausedBy).To(BeEmpty())
	g.Expect(seen().Force).To(BeZero())
	rp.Spec.Paused = new(true)
	rp.Spec.Force = &v1alpha1.Force{Revision: "db-b", Partition: new(int32(1)), Reason: "incident 7"}
	g.Expect(seen().Paused).To(BeTrue())
	g.Expect(seen().PausedBy).To(Equal("bob"))
	g.Expect(seen().Force).To(Equal(statemachine.Force{Revision: "db-b", Partition: 1, Reason: "incident 7", By: "alice"}))
}

// Without the admission policy, or in a mode that it does not look at, the annotations are anyone's to write.
func TestNobodyIsNamedOnHearsay(t *testing.T) {
	g := NewWithT(t)
	set, rp := statefulSetOfThree(), &v1alpha1.RolloutProgress{}
	set.Labels = map[string]string{v1alpha1.ModeLabel: "Enforce"}
	set.Annotations = map[string]string{v1alpha1.ChangedByAnnotation: "alice"}
	rp.Annotations = map[string]string{v1alpha1.PausedByAnnotation: "bob", v1alpha1.ForcedByAnnotation: "bob"}
	rp.Spec = v1alpha1.RolloutProgressSpec{Paused: new(true), Force: &v1alpha1.Force{Partition: new(int32(0))}}
	seen := func(authentic bool) []string {
		o := observe(facts{statefulSet: set, progress: rp, authentic: authentic})
		return []string{o.ChangedBy, o.PausedBy, o.Force.By}
	}
	g.Expect(seen(true)).To(Equal([]string{"alice", "bob", "bob"}))
	g.Expect(seen(false)).To(Equal([]string{"", "", ""}))
	set.Labels[v1alpha1.ModeLabel] = "Observe"
	g.Expect(seen(true)).To(Equal([]string{"", "bob", "bob"}))
}

func TestDigestTellsTemplatesApart(t *testing.T) {
	g := NewWithT(t)
	a, err := digestOf(corev1.PodTemplateSpec{})
	g.Expect(err).NotTo(HaveOccurred())
	b, _ := digestOf(corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}})
	g.Expect(a).To(MatchRegexp("^[0-9a-f]{64}$"))
	g.Expect(a).NotTo(Equal(b))
}

func TestTheRevisionOfATemplate(t *testing.T) {
	g := NewWithT(t)
	set := statefulSetOfThree()
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}
	revision := func(name, owner string, number int64, image string) appsv1.ControllerRevision {
		r := appsv1.ControllerRevision{Revision: number}
		r.Name = name
		r.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: new(true)}}
		r.Data.Raw = []byte(`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{}},` +
			`"spec":{"volumes":[],"containers":[{"name":"db","image":"` + image + `","resources":{}}]}}}}`)
		return r
	}
	g.Expect(revisionOf(set, []appsv1.ControllerRevision{
		revision("db-other", "U1", 1, "db:2"), revision("db-same", "U1", 2, "db:1"), revision("db-foreign", "U0", 3, "db:1"),
	})).To(Equal("db-same"))
	broken := revision("db-broken", "U1", 4, "db:1")
	broken.Data.Raw = []byte(`{`)
	g.Expect(revisionOf(set, []appsv1.ControllerRevision{broken})).To(BeEmpty())
}
