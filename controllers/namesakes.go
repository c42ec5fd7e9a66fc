package controllers

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/statemachine"
)

// namesakes are the pods that have the name of an absent pod of the StatefulSet and are not its own.
func (r *Reconciler) namesakes(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) (map[string]corev1.Pod, error) {
	own := map[string]bool{}
	for i := range pods {
		own[pods[i].Name] = true
	}
	found := map[string]corev1.Pod{}
	for i := range replicasOf(set) {
		name := set.Name + "-" + strconv.Itoa(int(startOf(set)+i))
		if own[name] {
			continue
		}
		pod, err := fetch(ctx, r.Client, types.NamespacedName{Namespace: set.Namespace, Name: name}, &corev1.Pod{})
		if err != nil {
			return nil, fmt.Errorf("look for a pod named %s: %w", name, err)
		}
		if pod == nil {
			continue
		}
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != set.UID {
			found[name] = *pod
		}
	}
	return found, nil
}

// addNamesakes says whose pods have the names of absent ones.
func (f facts) addNamesakes(pods []statemachine.Pod) {
	for i := range pods {
		namesake, there := f.namesakes[pods[i].Name]
		if pods[i].Present || !there {
			continue
		}
		switch owner := statefulSetOf(&namesake); {
		case owner == nil:
			pods[i].TakenBy = "another pod"
		case owner.Name == f.statefulSet.Name:
			pods[i].TakenBy = "a pod of the StatefulSet that was here before"
		default:
			pods[i].TakenBy = "a pod of StatefulSet " + owner.Name
		}
		if namesake.DeletionTimestamp != nil {
			pods[i].TakenBy += " that is terminating"
		}
	}
}
