package controllers

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"pawl.dev/pawl/api/v1alpha1"
)

// watcher turns what changed into the StatefulSets to look at. It lets everything else pass by, so that a cluster full
// of unmanaged StatefulSets costs nothing but the cache (I9, I10).
type watcher struct{ cache client.Reader }

// caller puts a StatefulSet into the queue for another reason than a change of an object that is watched.
type caller struct {
	mutex sync.Mutex
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
}

func (c *caller) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.queue = queue
	return nil
}

func (c *caller) reconcile(key types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.queue != nil { // before the start everything is looked at anyway
		c.queue.Add(ctrl.Request{NamespacedName: key})
	}
}

// ofInterest passes StatefulSets that carry the label, carried it until now, or have a RolloutProgress.
func (w watcher) ofInterest() predicate.Predicate {
	labelled := func(o client.Object) bool { return o != nil && o.GetLabels()[v1alpha1.ModeLabel] != "" }
	known := func(o client.Object) bool { return labelled(o) || w.hasProgress(client.ObjectKeyFromObject(o)) }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return known(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return labelled(e.ObjectOld) || known(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return known(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return known(e.Object) },
	}
}

func (w watcher) hasProgress(key types.NamespacedName) bool {
	p, err := fetch(context.Background(), w.cache, key, &v1alpha1.RolloutProgress{})
	return err != nil || p != nil // in doubt it is looked at
}

// setOfPod is the StatefulSet that owns a pod, if Pawl has to do with it.
func (w watcher) setOfPod(ctx context.Context, pod client.Object) []ctrl.Request {
	owner := statefulSetOf(pod)
	if owner == nil {
		return nil
	}
	key := types.NamespacedName{Namespace: pod.GetNamespace(), Name: owner.Name}
	set, err := fetch(ctx, w.cache, key, &appsv1.StatefulSet{})
	if err == nil && (set == nil || set.Labels[v1alpha1.ModeLabel] == "") && !w.hasProgress(key) {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}

// setsOnNode are the StatefulSets with a pod on a node.
func (w watcher) setsOnNode(ctx context.Context, node client.Object) []ctrl.Request {
	return w.setsOf(ctx, client.MatchingFields{indexNode: node.GetName()})
}

// setsOf are the StatefulSets of these pods.
func (w watcher) setsOf(ctx context.Context, which ...client.ListOption) []ctrl.Request {
	var pods corev1.PodList
	if err := w.cache.List(ctx, &pods, which...); err != nil {
		return nil // the cache is being stopped
	}
	var requests []ctrl.Request
	for i := range pods.Items {
		requests = append(requests, w.setOfPod(ctx, &pods.Items[i])...)
	}
	return requests
}

// readyChanged passes a node when it comes, goes, or changes its Ready condition, but not its heartbeats.
func readyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*corev1.Node)
		after, are := e.ObjectNew.(*corev1.Node)
		if !is || !are {
			return true
		}
		was, _ := nodeNotReady(*before)
		now, _ := nodeNotReady(*after)
		return was != now
	}}
}

// statefulSetOf is the StatefulSet that controls an object, or nil.
func statefulSetOf(o client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != "StatefulSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}
