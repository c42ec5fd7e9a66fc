package controllers

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch,roleName=pawl-read-nodes
// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutprogresses,verbs=get;list;watch

// sight is the pair of objects that one key stands for; either may be absent.
type sight struct {
	key      types.NamespacedName
	set      *appsv1.StatefulSet
	progress *v1alpha1.RolloutProgress
	departed *v1alpha1.RolloutProgress // deleted, and what it held is not sealed
	pods     []corev1.Pod
	stale    bool // the cache has yet to show our own write (I8)
	live     bool // progress is as the API server has it now
}

// look reads the pair, and the pods, from the cache; live only what the cache may not have yet.
func (r *Reconciler) look(ctx context.Context, key types.NamespacedName, t *trace) (sight, error) {
	s := sight{key: key}
	var err error
	if s.set, err = fetch(ctx, r.Client, key, &appsv1.StatefulSet{}); err != nil {
		return s, fmt.Errorf("read the StatefulSet: %w", err)
	}
	if s.progress, err = fetch(ctx, r.Client, key, &v1alpha1.RolloutProgress{}); err != nil {
		return s, fmt.Errorf("read the RolloutProgress: %w", err)
	}
	s.departed = r.traces.departed(key) // last: it is told after the cache
	if s, err = r.lookAgain(ctx, s, t); err != nil {
		return s, err
	}
	if s.set == nil {
		return s, nil
	}
	if s.pods, err = r.podsOwnedBy(ctx, s.set); err != nil {
		return s, err
	}
	s.stale = s.stale || !t.sawStatefulSet(s.set) || !t.sawPods(s.pods)
	if !s.stale && !t.current && underWay(s.progress) {
		t.current, err = r.podsAreCurrent(ctx, s.set, s.pods)
		s.stale = !t.current
	}
	return s, err
}

// underWay reports whether a rollout has begun and not ended.
func underWay(progress *v1alpha1.RolloutProgress) bool {
	return progress != nil && progress.Status.State != "" && progress.Status.State != v1alpha1.StateDone
}

// podsAreCurrent compares the pods of the cache with those of the API server. The list that filled the cache may be older
// than what an earlier process recorded, where the API server does not stream lists: a pod that was replaced since would
// look as if it had come back.
func (r *Reconciler) podsAreCurrent(ctx context.Context, set *appsv1.StatefulSet, cached []corev1.Pod) (bool, error) {
	var live corev1.PodList
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return true, nil //nolint:nilerr // the API server lets none through
	}
	if err := r.Live.List(ctx, &live, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return false, fmt.Errorf("list the pods once more: %w", err)
	}
	versions := map[types.UID]string{}
	for i := range live.Items {
		if owner := statefulSetOf(&live.Items[i]); owner != nil && owner.UID == set.UID {
			versions[live.Items[i].UID] = live.Items[i].ResourceVersion
		}
	}
	for i := range cached {
		version, there := versions[cached[i].UID]
		if !there || older(cached[i].ResourceVersion, version) {
			return false, nil
		}
	}
	return len(versions) == len(cached), nil
}

// lookAgain reads live what the cache may not be believed about: what this process wrote or failed to write, what an earlier
// one may have written to the StatefulSet of a rollout under way, the absence of a StatefulSet, since a cache that lags must
// not end a rollout, and its presence when its RolloutProgress was deleted.
func (r *Reconciler) lookAgain(ctx context.Context, s sight, t *trace) (sight, error) {
	first := !t.looked && underWay(s.progress)
	if absent := s.set == nil && s.progress != nil; first || t.doubt || absent || s.departed != nil {
		live, err := r.expectLive(ctx, s.key, t)
		if err != nil {
			return s, err
		}
		s.stale = live != (s.set != nil)
		t.looked = true
	}
	if t.believes(s.progress) {
		return s, nil
	}
	progress, err := fetch(ctx, r.Live, s.key, &v1alpha1.RolloutProgress{})
	if err != nil {
		return s, fmt.Errorf("read the RolloutProgress again: %w", err)
	}
	if progress == nil && s.departed == nil && (s.progress != nil || t.progress != "") {
		s.stale = true // what it held comes with the watch event of its deletion
		if s.progress == nil {
			t.progress = "" // but is not waited for twice
		}
		return s, nil
	}
	s.progress, s.live, t.progress, t.doubt = progress, true, "", false
	if progress != nil {
		t.progress = progress.ResourceVersion
	}
	return s, nil
}

// expectLive asks the API server what has become of a StatefulSet, whether it is there at all, and has the cache catch
// up with that first: pods from the cache beside a StatefulSet that is newer would be no observation.
func (r *Reconciler) expectLive(ctx context.Context, key types.NamespacedName, t *trace) (bool, error) {
	live, err := fetch(ctx, r.Live, key, &appsv1.StatefulSet{})
	if err != nil {
		return false, fmt.Errorf("read the StatefulSet again: %w", err)
	}
	if live == nil {
		return false, nil
	}
	t.statefulSet = live.ResourceVersion
	return true, nil
}

func (r *Reconciler) podsOwnedBy(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(set.Namespace), client.MatchingFields{indexOwner: string(set.UID)})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return pods.Items, nil
}

// gather reads the rest and makes the Observation. It also returns when to read Events next; zero for never.
func (r *Reconciler) gather(
	ctx context.Context, s sight, state statemachine.State, t *trace,
) (o statemachine.Observation, askAt time.Time, err error) {
	if s.set == nil {
		return gone(s.key, state, r.Clock.Now()), askAt, nil
	}
	f := facts{
		now: r.Clock.Now(), statefulSet: s.set, pods: s.pods, progress: s.progress, patience: r.Patience,
		mayRestore: r.Restores, authentic: r.Admission.InForce(), mayListen: r.ReadEvents,
	}
	t.noteBehind(s.set, f.now)
	f.behindSince = t.behindSince
	if f.digest, err = digestOf(s.set.Spec.Template); err != nil {
		return o, askAt, err
	}
	known := f.digest == state.TemplateDigest && string(s.set.UID) == state.UID
	if s.set.Generation != s.set.Status.ObservedGeneration && !known {
		if f.templateRevision, err = r.templateRevision(ctx, s.set); err != nil {
			return o, askAt, err
		}
	}
	if f.nodes, err = r.nodesOf(ctx, s.pods); err != nil {
		return o, askAt, err
	}
	if f.claims, err = r.claimsOf(ctx, s.pods); err != nil {
		return o, askAt, err
	}
	if f.namesakes, err = r.namesakes(ctx, s.set, s.pods); err != nil {
		return o, askAt, err
	}
	o = observe(f)
	t.notePresent(o)
	gatesAt, err := r.govern(ctx, s.set, f, &o)
	if err != nil {
		return o, askAt, err
	}
	askAt = sooner(gatesAt, r.ask(ctx, f, o, state, t))
	f.said, f.present = t.words.said, t.present
	f.listen(&o)
	return o, askAt, nil
}

// nodesOf reads the nodes that these pods are on; nothing at all where nodes may not be read.
func (r *Reconciler) nodesOf(ctx context.Context, pods []corev1.Pod) (map[string]corev1.Node, error) {
	if !r.ReadNodes {
		return nil, nil
	}
	nodes := map[string]corev1.Node{}
	for i := range pods {
		name := pods[i].Spec.NodeName
		if _, known := nodes[name]; known || name == "" {
			continue
		}
		node, err := fetch(ctx, r.Client, types.NamespacedName{Name: name}, &corev1.Node{})
		if err != nil {
			return nil, fmt.Errorf("read the node %s: %w", name, err)
		}
		if node != nil {
			nodes[name] = *node
		}
	}
	return nodes, nil
}

// fetch gets an object, or nil where there is none.
func fetch[T client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	err := from.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, err //nolint:wrapcheck // the caller knows what it was for
	}
	return into, nil
}
