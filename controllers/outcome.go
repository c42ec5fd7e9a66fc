package controllers

import (
	"context"
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The back-off of one StatefulSet after an error.
const (
	minBackOff = 50 * time.Millisecond
	maxBackOff = 30 * time.Second
)

// again answers an error: whatever it was, it is observed again, after a back-off. What the error says decides whether
// the caches may be believed then, and a person hears of it once, not with every try.
func (r *Reconciler) again(ctx context.Context, req ctrl.Request, err error, t *trace) ctrl.Result {
	t.doubt = true // also when the outcome is unknown: read before anything else, never assume
	kind, remedy := Diagnose(err)
	if kind != conflict && kind != t.complaint {
		t.complaint = kind
		log.FromContext(ctx).Error(err, "cannot go on, will try again", logReason, kind, logRemedy, remedy)
		if set, lookErr := fetch(ctx, r.Client, req.NamespacedName, &appsv1.StatefulSet{}); lookErr == nil {
			r.announceRefusal(set, kind, remedy, err)
		}
	}
	return ctrl.Result{RequeueAfter: r.backOff.When(req)}
}

// conflict is the kind of a refusal that is no fault: what was decided on has changed meanwhile.
const conflict = "Conflict"

// Diagnose names the kind of an error, and what a person can do about it.
func Diagnose(err error) (kind, remedy string) {
	switch {
	case stale(err):
		return conflict, ""
	case errors.Is(err, errPutBack):
		return "PutBack", "the policy pawl-statefulset has to except the service account that Pawl runs as: correct its name in config/admission"
	case apierrors.IsForbidden(err):
		return "Forbidden", "the error names the permission, or the policy, that is in the way: for a permission apply " +
			"config/rbac again (kubectl apply -k config/default)"
	case apierrors.IsUnauthorized(err):
		return "Unauthorized", "renew the credentials of Pawl's service account"
	case meta.IsNoMatchError(err) || missingResource(err):
		return "NotInstalled", "RolloutProgress is not installed: apply config/crd or run make run"
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason), "see the error"
	}
	return "Unreachable", "see whether the API server is up"
}

// missingResource reports whether the API server has no such resource at all.
func missingResource(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "the server could not find the requested resource")
}

// stale reports whether a guard refused a write: another resourceVersion (409), another uid (422 in a patch, 409 in a
// deletion), or nothing of that name (404); or that its namespace is being deleted, which ends by itself.
func stale(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	if errors.Is(err, errReadAgain) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) && !missingResource(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}
