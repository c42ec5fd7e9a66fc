package controllers

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"pawl.dev/pawl/api/v1alpha1"
)

// traces is what this process remembers of its own writes, by StatefulSet. It is only ever a reason to wait or to read
// again (I8): a process that starts afresh needs none of it.
type traces struct {
	mutex   sync.Mutex
	byKey   map[types.NamespacedName]*trace
	deleted map[types.NamespacedName]*v1alpha1.RolloutProgress // until what they held is sealed
}

// trace belongs to the one worker that has the key.
type trace struct {
	statefulSet string    // the resourceVersion that the cache has to reach
	pod         types.UID // deleted: the cache has to show it terminating or gone
	looked      bool      // whether the StatefulSet was once read live: an earlier process may have written it
	current     bool      // whether the cache of pods has once been seen to be as new as the API server
	progress    string    // the resourceVersion that a RolloutProgress must have to be believed
	doubt       bool      // a write whose outcome is unknown, or refused as stale: read again live

	pages  []v1alpha1.Page // what is sealed of the log in status, and what that rests on
	listed bool            // whether pages were read from the API server

	behind      int64     // the generation that the StatefulSet controller was last seen not to have looked at,
	behindSince time.Time // and since when

	words   words                // what Events say of the pods that are late
	present map[string]time.Time // when each pod was last seen, by name

	complaint string // the newest error in the log, so that it is said once
	mode      string // the unknown mode that was warned of
}

func (t *traces) of(key types.NamespacedName) *trace {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.byKey == nil {
		t.byKey = map[types.NamespacedName]*trace{}
	}
	if t.byKey[key] == nil {
		t.byKey[key] = &trace{}
	}
	return t.byKey[key]
}

func (t *traces) forget(key types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.byKey, key)
}

// noteBehind remembers since when the status is behind the generation. It only says when a delay is worth telling.
func (t *trace) noteBehind(set *appsv1.StatefulSet, now time.Time) {
	switch {
	case set.Generation == set.Status.ObservedGeneration:
		t.behind, t.behindSince = 0, time.Time{}
	case t.behind != set.Generation:
		t.behind, t.behindSince = set.Generation, now
	}
}

// sawStatefulSet reports whether the cache has caught up with the newest write to the StatefulSet. A set that is gone
// has: it was there when it was written.
func (t *trace) sawStatefulSet(set *appsv1.StatefulSet) bool {
	if set != nil && t.statefulSet != "" && older(set.ResourceVersion, t.statefulSet) {
		return false
	}
	t.statefulSet = ""
	return true
}

// sawPods reports whether the cache has caught up with the newest deletion of a pod.
func (t *trace) sawPods(pods []corev1.Pod) bool {
	for i := range pods {
		if t.pod != "" && pods[i].UID == t.pod && pods[i].DeletionTimestamp == nil {
			return false
		}
	}
	t.pod = ""
	return true
}

// believes reports whether a cached RolloutProgress, or its absence, may be used. Absence may not while something was
// written: then it is either deleted or not there yet, and only the API server knows which.
func (t *trace) believes(progress *v1alpha1.RolloutProgress) bool {
	if t.doubt {
		return false
	}
	if progress == nil {
		return t.progress == ""
	}
	return t.progress == "" || !older(progress.ResourceVersion, t.progress)
}

// older compares two versions of one resource type; what cannot be compared is not older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
