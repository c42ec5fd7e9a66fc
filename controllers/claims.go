package controllers

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch

// claimNames are the claims that a pod mounts: its own, those of the claim templates, and those of ephemeral volumes.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			names = append(names, pod.Name+"-"+volume.Name)
		}
	}
	return names
}

// addClaims says how the claims of each pod are. Claims that may not be read are left unknown.
func (f facts) addClaims(pods []statemachine.Pod) {
	if f.claims == nil {
		return
	}
	names := map[types.UID][]string{}
	for i := range f.pods {
		names[f.pods[i].UID] = claimNames(&f.pods[i])
	}
	for i := range pods {
		pods[i].Claims = []statemachine.Claim{}
		if !pods[i].Present {
			continue
		}
		for _, name := range names[types.UID(pods[i].UID)] {
			claim := f.claims[name] // one that is not there has no phase
			pods[i].Claims = append(pods[i].Claims, statemachine.Claim{Name: name, Phase: string(claim.Status.Phase)})
		}
	}
}

// claimsOf reads the claims of these pods; nothing at all where claims may not be read.
func (r *Reconciler) claimsOf(ctx context.Context, pods []corev1.Pod) (map[string]corev1.PersistentVolumeClaim, error) {
	if !r.ReadClaims {
		return nil, nil
	}
	claims := map[string]corev1.PersistentVolumeClaim{}
	for i := range pods {
		for _, name := range claimNames(&pods[i]) {
			key := types.NamespacedName{Namespace: pods[i].Namespace, Name: name}
			claim, err := fetch(ctx, r.Client, key, &corev1.PersistentVolumeClaim{})
			if err != nil {
				return nil, fmt.Errorf("read the claim %s: %w", name, err)
			}
			if claim != nil {
				claims[name] = *claim
			}
		}
	}
	return claims, nil
}

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
		if owner := metav1.GetControllerOf(orNone(pod)); pod != nil && (owner == nil || owner.UID != set.UID) {
			found[name] = *pod
		}
	}
	return found, nil
}

func orNone(pod *corev1.Pod) *corev1.Pod {
	if pod == nil {
		return &corev1.Pod{}
	}
	return pod
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

// setsWithClaim are the StatefulSets with a pod that mounts a claim.
func (w watcher) setsWithClaim(ctx context.Context, claim client.Object) []ctrl.Request {
	return w.setsOf(ctx, client.InNamespace(claim.GetNamespace()), client.MatchingFields{indexClaim: claim.GetName()})
}

// phaseChanged passes a claim when it comes, goes, or is bound or lost.
func phaseChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*corev1.PersistentVolumeClaim)
		after, are := e.ObjectNew.(*corev1.PersistentVolumeClaim)
		return !is || !are || before.Status.Phase != after.Status.Phase
	}}
}

// SlimClaim is what the cache keeps of a claim.
func SlimClaim(o any) (any, error) {
	claim, is := o.(*corev1.PersistentVolumeClaim)
	if !is {
		return o, nil
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta: claim.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase},
	}, nil
}
