package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch,roleName=pawl-read-claims

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
