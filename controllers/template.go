package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=list

// templateRevision finds the ControllerRevision of spec.template while the status still speaks of an older one: after
// a revert the StatefulSet controller may be moving pods back before observedGeneration says so. It asks the API
// server, as this happens once per template and a watch on all ControllerRevisions would be dear.
func (r *Reconciler) templateRevision(ctx context.Context, set *appsv1.StatefulSet) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("read spec.selector: %w", err)
	}
	var revisions appsv1.ControllerRevisionList
	err = r.Live.List(ctx, &revisions, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return "", fmt.Errorf("list the ControllerRevisions: %w", err)
	}
	return revisionOf(set, revisions.Items), nil
}

// revisionOf is the newest revision of this StatefulSet that holds its template as it is now; empty if none does yet.
func revisionOf(set *appsv1.StatefulSet, revisions []appsv1.ControllerRevision) string {
	name, newest := "", int64(-1)
	for i := range revisions {
		owner := metav1.GetControllerOf(&revisions[i])
		if owner == nil || owner.UID != set.UID || revisions[i].Revision <= newest || !holds(revisions[i], set.Spec.Template) {
			continue
		}
		name, newest = revisions[i].Name, revisions[i].Revision
	}
	return name
}

// holds compares as the API does: nil and empty are the same. The data of a revision is a patch that replaces the
// template; what cannot be read is not a match.
func holds(revision appsv1.ControllerRevision, template corev1.PodTemplateSpec) bool {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &data); err != nil {
		return false
	}
	return apiequality.Semantic.DeepEqual(data.Spec.Template, template)
}
