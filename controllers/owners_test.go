package controllers

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// ward is a cache of owners. It keeps a list of which kinds are watched, and a diary of when that began and ended.
type ward struct {
	cache.Cache
	watched []string
	diary   []string
}

func (w *ward) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	w.watched, w.diary = append(w.watched, kind), append(w.diary, "watch "+kind)
	return controllertest.NewFakeInformer(), nil // which never syncs: what waits for that has to be stopped
}

func (w *ward) RemoveInformer(_ context.Context, o client.Object) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	w.watched = slices.DeleteFunc(w.watched, func(k string) bool { return k == kind })
	w.diary = append(w.diary, "remove "+kind)
	return nil
}

// gateway is an API server that allows everything and has nothing.
type gateway struct{ client.Client }

func (gateway) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
		review.Status.Allowed = true
	}
	return nil
}

func (gateway) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func kindOf(owner string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: owner}
}

// asking is a Reconciler that may watch Kafkas and MySQLs, and what becomes of its watches.
func asking() (*Reconciler, *ward) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Kafka", "MySQL"} {
		mapper.Add(kindOf(kind), meta.RESTScopeNamespace)
	}
	w := &ward{}
	r := &Reconciler{Client: gateway{}, Live: gateway{}, backOff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minBackOff, maxBackOff)}
	r.owners.cache, r.owners.client, r.owners.mapper = w, gateway{}, mapper
	r.owners.wake = func(types.NamespacedName) {}
	return r, w
}

// setOf is a StatefulSet that an operator made of an owner of this kind.
func setOf(name, ownerKind string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{v1alpha1.ModeLabel: "Enforce"}}}
	owner := &unstructured.Unstructured{}
	owner.SetName(name + "-owner")
	if ownerKind != "" {
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kindOf(ownerKind))}
	}
	return set
}

func gated(expressions ...string) *v1alpha1.RolloutPolicy {
	policy := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID(strings.Join(expressions, " "))}}
	for _, e := range expressions {
		policy.Spec.Gates = append(policy.Spec.Gates, v1alpha1.Gate{Name: "g", Expression: e})
	}
	return policy
}

// ask asks the gates of a StatefulSet, as each reconcile does.
func ask(t *testing.T, r *Reconciler, set *appsv1.StatefulSet, policy *v1alpha1.RolloutPolicy) {
	t.Helper()
	o := statemachine.Observation{Mode: statemachine.Mode(set.Labels[v1alpha1.ModeLabel])}
	_, _, err := r.gatesOf(t.Context(), policy, facts{now: epoch, statefulSet: set}, o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// Nobody pays for owners that no gate asks for.
func TestOwnersThatNoGateAsksForAreNotWatched(t *testing.T) {
	r, w := asking()
	ask(t, r, setOf("a", "Kafka"), nil)
	ask(t, r, setOf("a", "Kafka"), gated())
	ask(t, r, setOf("a", "Kafka"), gated("pods.size() > 0"))
	ask(t, r, setOf("a", ""), gated("owner.ok"))
	ask(t, r, setOf("a", "Unserved"), gated("owner.ok"))
	NewWithT(t).Expect(w.diary).To(BeEmpty())
}

// A kind of owner is watched once, from the first StatefulSet on whose gates ask for it until the last, in whatever way
// that one comes to ask no more; and anew when it is asked for again.
func TestOwnersAreWatchedFromTheFirstNeedToTheLast(t *testing.T) {
	asksOwner := gated("owner.ok")
	now := func(owner string, policy *v1alpha1.RolloutPolicy) func(*testing.T, *Reconciler, string) {
		return func(t *testing.T, r *Reconciler, name string) { t.Helper(); ask(t, r, setOf(name, owner), policy) }
	}
	for name, release := range map[string]func(*testing.T, *Reconciler, string){
		"it has no policy":             now("Kafka", nil),
		"its policy has no gates":      now("Kafka", gated()),
		"its gates ask the pods":       now("Kafka", gated("pods.size() > 0")),
		"it has no owner":              now("", asksOwner),
		"its owner is not served":      now("Unserved", asksOwner),
		"its owner is of another kind": now("MySQL", asksOwner),
		"its label is gone, and its log is there": func(t *testing.T, r *Reconciler, name string) {
			t.Helper()
			set := setOf(name, "Kafka")
			set.Labels = nil
			ask(t, r, set, asksOwner)
		},
		"it is gone": func(t *testing.T, r *Reconciler, name string) {
			t.Helper()
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: keyOf(name)})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, w := asking()
			for range 3 {
				ask(t, r, setOf("a", "Kafka"), asksOwner)
				ask(t, r, setOf("b", "Kafka"), asksOwner)
			}
			g.Expect(w.diary).To(Equal([]string{"watch Kafka"}), "once for both")
			stopped := 0
			k := r.owners.kinds[kindOf("Kafka")]
			stop := k.stop
			k.stop = func() { stopped++; stop() }

			release(t, r, "a")
			g.Expect(w.diary).NotTo(ContainElement("remove Kafka"), "the other still asks")
			g.Expect(stopped).To(BeZero())
			release(t, r, "b")
			g.Expect(w.diary).To(ContainElement("remove Kafka"))
			g.Expect(w.watched).NotTo(ContainElement("Kafka"))
			g.Expect(stopped).To(Equal(1), "nobody waits for it to be read")

			before := len(w.diary)
			ask(t, r, setOf("b", "Kafka"), asksOwner)
			g.Expect(w.diary[before:]).To(ContainElement("watch Kafka"))
			g.Expect(w.watched).To(ContainElement("Kafka"))
		})
	}
}
