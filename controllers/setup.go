package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"pawl.dev/pawl/api/v1alpha1"
)

// Options are what a manager may choose about the reconciler.
type Options struct {
	Patience      Patience
	Concurrency   int
	ReadNodes     bool   // may be false where nodes may not be read,
	ReadClaims    bool   // or PersistentVolumeClaims,
	ReadEvents    bool   // or Events
	ReadBudgets   bool   // or PodDisruptionBudgets
	ReadPolicies  bool   // or RolloutPolicies
	JudgePolicies bool   // may be false where the status of RolloutPolicies may not be written
	Restores      bool   // may be false where status.currentRevision may not be written
	Adopts        bool   // may be false where a RolloutProgress may not be patched
	Namespace     string // where Pawl is installed

	Retention  time.Duration // how long RolloutRecords are kept; 0 is for ever
	Namespaces []string      // to look for old ones in; empty is all
}

// Setup adds the reconciler, with its indexes and watches, to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	admission := &Admission{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(reporter), Log: mgr.GetLogger(), Namespace: o.Namespace,
	}
	admission.Check(ctx) // before the first decision
	if err := mgr.Add(admission); err != nil {
		return fmt.Errorf("set up the check of the admission policy: %w", err)
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(reporter),
		Clock: clock.RealClock{}, Patience: o.Patience,
		ReadNodes: o.ReadNodes, ReadClaims: o.ReadClaims, ReadEvents: o.ReadEvents,
		ReadBudgets: o.ReadBudgets, ReadPolicies: o.ReadPolicies, Namespaces: o.Namespaces,
		asking:   flowcontrol.NewTokenBucketPassiveRateLimiter(askQPS, askBurst),
		Restores: o.Restores, Adopts: o.Adopts, Admission: admission,
		backOff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minBackOff, maxBackOff),
	}
	call := &caller{}
	r.slots.wake = call.reconcile
	r.owners = owners{
		cache: mgr.GetCache(), reader: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), client: mgr.GetClient(), namespaces: o.Namespaces,
		wake: call.reconcile,
	}
	if err := addRetention(mgr, o); err != nil {
		return err
	}
	progress := &fleet{cache: mgr.GetClient(), leading: mgr.Elected(), log: mgr.GetLogger()}
	if err := metrics.Registry.Register(progress); err != nil {
		return fmt.Errorf("set up the metrics: %w", err)
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := warm(ctx, mgr.GetCache(), o); err != nil {
		return err
	}
	return r.watch(mgr, o, call)
}

// watch adds the reconciler to the manager, with all that it has to look at again for.
func (r *Reconciler) watch(mgr ctrl.Manager, o Options, call *caller) error {
	w := watcher{mgr.GetClient()}
	b := ctrl.NewControllerManagedBy(mgr).Named(reporter).
		For(&appsv1.StatefulSet{}, builder.WithPredicates(w.ofInterest())).
		Watches(&v1alpha1.RolloutProgress{}, &noteDeleted{traces: &r.traces}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(w.setOfPod)).
		WatchesRawSource(source.Func(call.start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minBackOff, maxBackOff),
			LogConstructor: func(req *ctrl.Request) logr.Logger {
				if req == nil {
					return mgr.GetLogger()
				}
				return mgr.GetLogger().WithValues(logNamespace, req.Namespace, logStatefulSet, req.Name)
			},
		})
	if o.ReadNodes {
		b = b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(w.setsOnNode), builder.WithPredicates(readyChanged()))
	}
	if o.ReadBudgets {
		b = b.Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(w.setsInNamespace), builder.WithPredicates(roomChanged()))
	}
	if o.ReadPolicies {
		b = b.Watches(&v1alpha1.RolloutPolicy{}, handler.EnqueueRequestsFromMapFunc(w.setsWithPolicy), builder.WithPredicates(specChanged()))
	}
	if o.ReadPolicies && o.JudgePolicies {
		if err := addPolicies(mgr, &r.programs); err != nil {
			return err
		}
	}
	if o.ReadClaims {
		b = b.Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(w.setsWithClaim), builder.WithPredicates(phaseChanged()))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	return nil
}

// addRetention has old RolloutRecords deleted, unless they are kept for ever.
func addRetention(mgr ctrl.Manager, o Options) error {
	if o.Retention == 0 {
		return nil
	}
	sweeper := &Retention{
		Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Clock: clock.RealClock{}, Log: mgr.GetLogger(),
		Keep: o.Retention, Namespaces: o.Namespaces,
	}
	if o.ReadPolicies {
		sweeper.Policies = mgr.GetClient()
	}
	if err := mgr.Add(sweeper); err != nil {
		return fmt.Errorf("set up the retention of records: %w", err)
	}
	return nil
}

// addPolicies adds the controller that says of each RolloutPolicy whether it can be used.
func addPolicies(mgr ctrl.Manager, p *programs) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(reporter+"-policies").
		For(&v1alpha1.RolloutPolicy{}, builder.WithPredicates(specChanged())).
		Complete(&Policies{Client: mgr.GetClient(), programs: p})
	if err != nil {
		return fmt.Errorf("set up the controller of RolloutPolicies: %w", err)
	}
	return nil
}

// warm has every cache filled before the controller asks for it: a replica in waiting takes over at once, and being
// ready means something.
func warm(ctx context.Context, informers cache.Informers, o Options) error {
	kinds := []client.Object{&appsv1.StatefulSet{}, &v1alpha1.RolloutProgress{}, &corev1.Pod{}}
	if o.ReadNodes {
		kinds = append(kinds, &corev1.Node{})
	}
	if o.ReadClaims {
		kinds = append(kinds, &corev1.PersistentVolumeClaim{})
	}
	if o.ReadBudgets {
		kinds = append(kinds, &policyv1.PodDisruptionBudget{})
	}
	if o.ReadPolicies {
		kinds = append(kinds, &v1alpha1.RolloutPolicy{})
	}
	for _, kind := range kinds {
		if _, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

// SlimPod is what the cache keeps of a pod: of one that no StatefulSet controls its name only, as most pods of a big
// cluster are none of Pawl's business.
func SlimPod(o any) (any, error) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return o, nil
	}
	if statefulSetOf(pod) != nil {
		pod.ManagedFields = nil
		return pod, nil
	}
	return &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp,
	}}, nil
}

// The indexes of the pod cache.
const (
	indexOwner = "pawl.dev/owner" // uid of the StatefulSet
	indexNode  = "pawl.dev/node"  // name of the node, of pods of StatefulSets only
	indexClaim = "pawl.dev/claim" // names of the claims, of pods of StatefulSets only
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	byOwner := func(o client.Object) []string {
		if owner := statefulSetOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, indexOwner, byOwner); err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	byNode := func(o client.Object) []string {
		if pod, is := o.(*corev1.Pod); is && statefulSetOf(o) != nil && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, indexNode, byNode); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	byClaim := func(o client.Object) []string {
		if pod, is := o.(*corev1.Pod); is && statefulSetOf(o) != nil {
			return claimNames(pod)
		}
		return nil
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, indexClaim, byClaim); err != nil {
		return fmt.Errorf("index pods by claim: %w", err)
	}
	return nil
}
