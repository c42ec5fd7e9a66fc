package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owners reads the objects that operators make StatefulSets of, whatever their kind is. A kind is watched from the first
// StatefulSet on whose gates ask for it until the last: a gate opens with the change of its owner, and a cluster
// without such gates pays nothing.
type owners struct {
	cache      cache.Cache
	reader     client.Reader // of the API server itself
	mapper     meta.RESTMapper
	client     client.Client
	namespaces []string // that Pawl watches; empty is all
	wake       func(types.NamespacedName)

	mutex sync.Mutex
	kinds map[schema.GroupVersionKind]*watchedKind
}

// watchedKind is one kind of owner, and the StatefulSets that need it.
type watchedKind struct {
	wanted   map[types.NamespacedName]types.NamespacedName // the owner of each StatefulSet
	informer cache.Informer
	stop     context.CancelFunc
	problem  string // why it is not watched
	again    time.Time
}

// tryAgain is how long a kind that cannot be watched is left alone.
const tryAgain = 30 * time.Second

// ownerAnswer is an owner, or why there is none to ask.
type ownerAnswer struct {
	object  map[string]any // nil if the StatefulSet has no owner
	problem string
	again   time.Time // when to ask again, where no change will call; zero for never
}

// ownerReference is the owner that a StatefulSet names.
type ownerReference struct {
	*metav1.OwnerReference
	gvk     schema.GroupVersionKind
	name    types.NamespacedName
	mapping *meta.RESTMapping
}

// referenceOf finds out where the owner of a StatefulSet is; nil if it has none. Its kind may be one that nobody serves.
func (w *owners) referenceOf(set client.Object) (*ownerReference, string) {
	owner := metav1.GetControllerOf(set)
	if owner == nil {
		return nil, ""
	}
	ref := &ownerReference{
		OwnerReference: owner, gvk: schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind),
		name: types.NamespacedName{Namespace: set.GetNamespace(), Name: owner.Name},
	}
	var err error
	if ref.mapping, err = w.mapper.RESTMapping(ref.gvk.GroupKind(), ref.gvk.Version); err != nil {
		return ref, fmt.Sprintf("the API server does not serve %s of %s", owner.Kind, owner.APIVersion)
	}
	if ref.mapping.Scope.Name() == meta.RESTScopeNameRoot {
		ref.name.Namespace = ""
	}
	return ref, ""
}

// answer is the object that was found for the reference, which has to be the very one.
func (ref *ownerReference) answer(found *unstructured.Unstructured) ownerAnswer {
	switch {
	case found == nil:
		return ownerAnswer{problem: fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Name)}
	case found.GetUID() != ref.UID:
		return ownerAnswer{problem: fmt.Sprintf("%s %s is another one than the StatefulSet was made of", ref.Kind, ref.Name)}
	default:
		return ownerAnswer{object: found.Object}
	}
}

// of is the owner of a StatefulSet, which is watched from now on.
func (w *owners) of(ctx context.Context, set client.Object, now time.Time) ownerAnswer {
	key := client.ObjectKeyFromObject(set)
	ref, problem := w.referenceOf(set)
	switch {
	case ref == nil:
		w.release(key)
		return ownerAnswer{}
	case problem != "":
		w.release(key)
		return ownerAnswer{problem: problem, again: now.Add(tryAgain)}
	}
	k := w.want(ctx, key, ref.name, ref.mapping, now)
	switch {
	case k.problem != "":
		return ownerAnswer{problem: k.problem, again: k.again}
	case !k.informer.HasSynced():
		return ownerAnswer{problem: fmt.Sprintf("%s %s has not been read yet", ref.Kind, ref.Name)}
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.gvk)
	found, err := fetch(ctx, client.Reader(w.cache), ref.name, object)
	if err != nil {
		return ownerAnswer{problem: err.Error(), again: now.Add(tryAgain)}
	}
	return ref.answer(found)
}

// live is the owner of a StatefulSet as the API server has it at this moment. It is listed, so that the right to watch its
// kind is enough.
func (w *owners) live(ctx context.Context, set client.Object) ownerAnswer {
	ref, problem := w.referenceOf(set)
	if ref == nil || problem != "" {
		return ownerAnswer{problem: problem}
	}
	ctx, done := context.WithTimeout(ctx, writeTimeout)
	defer done()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(ref.gvk)
	err := w.reader.List(ctx, &list, client.InNamespace(ref.name.Namespace), client.MatchingFields{"metadata.name": ref.name.Name})
	switch {
	case apierrors.IsForbidden(err):
		return ownerAnswer{problem: mayNot("list", ref.mapping.Resource.GroupResource())}
	case err != nil:
		return ownerAnswer{problem: fmt.Sprintf("%s %s cannot be read: %v", ref.Kind, ref.Name, err)}
	case len(list.Items) == 0:
		return ref.answer(nil)
	default:
		return ref.answer(&list.Items[0])
	}
}

// want has the kind watched, if that is allowed.
func (w *owners) want(ctx context.Context, key, owner types.NamespacedName, mapping *meta.RESTMapping, now time.Time) watchedKind {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	gvk := mapping.GroupVersionKind
	w.releaseFrom(key, gvk)
	if w.kinds == nil {
		w.kinds = map[schema.GroupVersionKind]*watchedKind{}
	}
	k := w.kinds[gvk]
	if k == nil {
		k = &watchedKind{wanted: map[types.NamespacedName]types.NamespacedName{}}
		w.kinds[gvk] = k
	}
	k.wanted[key] = owner
	if k.informer == nil && !now.Before(k.again) {
		if k.problem = w.watch(ctx, k, mapping); k.problem != "" {
			k.again = now.Add(tryAgain)
		}
	}
	return *k
}

// watch begins to watch a kind, and returns why it cannot.
func (w *owners) watch(ctx context.Context, k *watchedKind, mapping *meta.RESTMapping) (problem string) {
	if refused := w.refused(ctx, mapping); refused != "" {
		return refused
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := w.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return "cannot be watched: " + err.Error()
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.changed(mapping.GroupVersionKind, o) },
		UpdateFunc: func(_, o any) { w.changed(mapping.GroupVersionKind, o) },
		DeleteFunc: func(o any) { w.changed(mapping.GroupVersionKind, o) },
	})
	if err != nil {
		return "cannot be watched: " + err.Error()
	}
	// An owner that is not there causes no event: when all have been read those that wait are called.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		if toolscache.WaitForCacheSync(watching.Done(), handle.HasSynced) {
			w.callAll(mapping.GroupVersionKind)
		}
	}()
	k.informer, k.stop = informer, stop
	return ""
}

// refused says which permission is missing; empty if none is.
func (w *owners) refused(ctx context.Context, mapping *meta.RESTMapping) string {
	ctx, done := context.WithTimeout(ctx, writeTimeout) // all that ask for owners wait for it
	defer done()
	namespaces := w.namespaces
	if len(namespaces) == 0 || mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespaces = []string{metav1.NamespaceAll}
	}
	resource := mapping.Resource.GroupResource()
	for _, namespace := range namespaces {
		for _, verb := range []string{"list", "watch"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: resource.Group, Resource: resource.Resource,
				},
			}}
			if err := w.client.Create(ctx, review); err != nil {
				return "not known whether it may be read: " + err.Error()
			}
			if !review.Status.Allowed {
				return mayNot(verb, resource)
			}
		}
	}
	return ""
}

func mayNot(verb string, resource schema.GroupResource) string {
	return fmt.Sprintf("Pawl may not %s %s; grant that to its service account", verb, resource)
}

// changed calls the StatefulSets of an owner.
func (w *owners) changed(gvk schema.GroupVersionKind, o any) {
	if gone, is := o.(toolscache.DeletedFinalStateUnknown); is {
		o = gone.Obj
	}
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	w.callWhere(gvk, func(owner types.NamespacedName) bool { return owner == name })
}

func (w *owners) callAll(gvk schema.GroupVersionKind) {
	w.callWhere(gvk, func(types.NamespacedName) bool { return true })
}

func (w *owners) callWhere(gvk schema.GroupVersionKind, is func(types.NamespacedName) bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	k := w.kinds[gvk]
	if k == nil {
		return
	}
	for key, owner := range k.wanted {
		if is(owner) {
			w.wake(key)
		}
	}
}

// release says that a StatefulSet asks for no owner any more. Kinds that nobody asks for are no longer watched.
func (w *owners) release(key types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.releaseFrom(key, schema.GroupVersionKind{})
}

// releaseFrom takes the StatefulSet out of all kinds but one.
func (w *owners) releaseFrom(key types.NamespacedName, but schema.GroupVersionKind) {
	for gvk, k := range w.kinds {
		if _, wanted := k.wanted[key]; !wanted || gvk == but {
			continue
		}
		delete(k.wanted, key)
		if len(k.wanted) > 0 {
			continue
		}
		if k.informer != nil {
			k.stop()
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(gvk)
			_ = w.cache.RemoveInformer(context.Background(), object) // fails only before the cache is started
		}
		delete(w.kinds, gvk)
	}
}
