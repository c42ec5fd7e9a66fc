package controllers

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
)

// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutpolicies/status,verbs=update,roleName=pawl-write-policy-status

// Policies says in the status of each RolloutPolicy whether it can be used. Rollouts do not wait for it: they compile
// the gates themselves.
type Policies struct {
	Client   client.Client
	programs *programs
}

// Reconcile looks at one RolloutPolicy.
func (p *Policies) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	policy, err := fetch(ctx, p.Client, req.NamespacedName, &v1alpha1.RolloutPolicy{})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read the RolloutPolicy: %w", err)
	}
	if policy == nil {
		p.programs.forget(req.Name)
		return ctrl.Result{}, nil
	}
	next := policy.DeepCopy()
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid, ObservedGeneration: policy.Generation,
	}
	if err := p.programs.of(policy).Err(); err != nil {
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonInvalidExpression
		ready.Message = err.Error() + ". StatefulSets of this policy take no step."
	}
	meta.SetStatusCondition(&next.Status.Conditions, ready)
	next.Status.ObservedGeneration = &policy.Generation
	if apiequality.Semantic.DeepEqual(policy.Status, next.Status) {
		return ctrl.Result{}, nil
	}
	ctx, done := writing(ctx)
	defer done()
	err = p.Client.Status().Update(ctx, next)
	if apierrors.IsConflict(err) { // a change of metadata alone causes no other look
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("say whether the RolloutPolicy can be used: %w", err)
	}
	return ctrl.Result{}, nil
}
