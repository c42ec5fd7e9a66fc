package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutpolicies,verbs=list;watch,roleName=pawl-read-policies
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch,roleName=pawl-read-budgets

// policyName is the RolloutPolicy that a StatefulSet asks for.
func policyName(set client.Object) string {
	return cmp.Or(set.GetLabels()[v1alpha1.PolicyLabel], v1alpha1.DefaultPolicy)
}

// policyOf reads the RolloutPolicy of a StatefulSet. None is needed where none is named. If it is missing, missing says why.
func (r *Reconciler) policyOf(ctx context.Context, set *appsv1.StatefulSet) (policy *v1alpha1.RolloutPolicy, missing string, err error) {
	name, named := policyName(set), set.Labels[v1alpha1.PolicyLabel] != ""
	if !r.ReadPolicies {
		if named {
			missing = "Pawl may not list and watch RolloutPolicies; apply config/rbac"
		}
		return nil, missing, nil
	}
	policy, err = fetch(ctx, r.Client, types.NamespacedName{Name: name}, &v1alpha1.RolloutPolicy{})
	if err != nil {
		return nil, "", fmt.Errorf("read the RolloutPolicy %s: %w", name, err)
	}
	if policy == nil && named {
		missing = "there is no RolloutPolicy of this name"
	}
	return policy, missing, nil
}

// govern adds what the RolloutPolicy asks for to the observation, and how things stand with it; all but the slots.
// askAt is when to look again because a gate could not be asked; zero for never.
func (r *Reconciler) govern(
	ctx context.Context, set *appsv1.StatefulSet, f facts, o *statemachine.Observation,
) (askAt time.Time, err error) {
	policy, missing, err := r.policyOf(ctx, set)
	if err != nil {
		return askAt, err
	}
	o.Policy.Name, o.Policy.Missing = policyName(set), missing
	var spec v1alpha1.RolloutPolicySpec
	if policy != nil {
		spec = policy.Spec
	}
	apply(spec, o)
	if spec.DisruptionBudgets != v1alpha1.IgnoreBudgets {
		if o.Policy.Budgets, err = r.budgetsOf(ctx, f, *o); err != nil {
			return askAt, err
		}
	}
	o.Policy.Gates, askAt, err = r.gatesOf(ctx, policy, f, *o)
	return askAt, err
}

// apply takes over the numbers of a policy; those it does not have keep the values of the manager's flags.
func apply(spec v1alpha1.RolloutPolicySpec, o *statemachine.Observation) {
	if n := spec.StallGraceSeconds; n != nil {
		o.StallGrace = time.Duration(*n) * time.Second
	}
	if n := spec.ProgressDeadlineSeconds; n != 0 {
		o.ProgressDeadline = time.Duration(n) * time.Second
	}
	if n := spec.CanaryPods; n != nil {
		o.Policy.CanaryPods = *n
	}
	if n := spec.BakeSeconds; n != nil {
		o.Policy.Bake = time.Duration(*n) * time.Second
	}
	if n := spec.MaxConcurrentSteps; n != nil {
		o.Policy.Slots.Limit = *n
	}
}

// budgetsOf are the PodDisruptionBudgets that select pods of the StatefulSet. Where they may not be read nobody can
// respect them, so that it is for the policy to say that they are to be ignored.
func (r *Reconciler) budgetsOf(ctx context.Context, f facts, o statemachine.Observation) ([]statemachine.Budget, error) {
	if !r.ReadBudgets {
		all := make([]int32, len(o.Pods))
		for i := range o.Pods {
			all[i] = o.Pods[i].Ordinal
		}
		return []statemachine.Budget{{
			Ordinals: statemachine.OrdinalsOf(all...),
			Problem:  "Pawl may not list PodDisruptionBudgets: grant it, or set disruptionBudgets: Ignore",
		}}, nil
	}
	var list policyv1.PodDisruptionBudgetList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the PodDisruptionBudgets: %w", err)
	}
	var budgets []statemachine.Budget
	for i := range list.Items {
		if b := f.budget(&list.Items[i]); b.Ordinals != "" {
			budgets = append(budgets, b)
		}
	}
	return budgets, nil
}

// budget is what a PodDisruptionBudget says of the pods of this StatefulSet. One that selects none has no ordinals.
func (f facts) budget(budget *policyv1.PodDisruptionBudget) statemachine.Budget {
	status := budget.Status
	b := statemachine.Budget{
		Name: budget.Name, Stale: status.ObservedGeneration < budget.Generation,
		Allowed: status.DisruptionsAllowed, Healthy: status.CurrentHealthy, Desired: status.DesiredHealthy, Expected: status.ExpectedPods,
	}
	if c := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Reason == policyv1.SyncFailedReason {
		b.Problem = "the status of budget " + budget.Name + " cannot be worked out: " + c.Message
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil { // the API server lets none through
		b.Problem, selector = "its selector: "+err.Error(), labels.Everything()
	}
	var selected []int32
	for i := range f.pods {
		pod := &f.pods[i]
		ordinal, named := ordinalOf(f.statefulSet.Name, pod.Name)
		if owner := metav1.GetControllerOf(pod); named && owner != nil && owner.UID == f.statefulSet.UID && selector.Matches(labels.Set(pod.Labels)) {
			selected = append(selected, ordinal)
		}
	}
	b.Ordinals = statemachine.OrdinalsOf(selected...)
	return b
}

// setsWithPolicy are the managed StatefulSets of a RolloutPolicy.
func (w watcher) setsWithPolicy(ctx context.Context, policy client.Object) []ctrl.Request {
	return w.managed(ctx, func(set *appsv1.StatefulSet) bool { return policyName(set) == policy.GetName() })
}

// setsInNamespace are the managed StatefulSets beside an object.
func (w watcher) setsInNamespace(ctx context.Context, o client.Object) []ctrl.Request {
	return w.managed(ctx, func(*appsv1.StatefulSet) bool { return true }, client.InNamespace(o.GetNamespace()))
}

func (w watcher) managed(ctx context.Context, which func(*appsv1.StatefulSet) bool, where ...client.ListOption) []ctrl.Request {
	var list appsv1.StatefulSetList
	where = append(where, client.HasLabels{v1alpha1.ModeLabel}, client.UnsafeDisableDeepCopy)
	if err := w.cache.List(ctx, &list, where...); err != nil {
		return nil // the cache is being stopped
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if which(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// roomChanged passes a PodDisruptionBudget when it comes, goes, is changed, or has other numbers.
func roomChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*policyv1.PodDisruptionBudget)
		after, are := e.ObjectNew.(*policyv1.PodDisruptionBudget)
		if !is || !are {
			return true
		}
		was, now := before.Status, after.Status
		return before.Generation != after.Generation || was.ObservedGeneration != now.ObservedGeneration ||
			was.DisruptionsAllowed != now.DisruptionsAllowed || was.DesiredHealthy != now.DesiredHealthy ||
			was.ExpectedPods != now.ExpectedPods || was.CurrentHealthy != now.CurrentHealthy
	}}
}

// specChanged passes an object when it comes, goes, or its generation changes, but not its status.
func specChanged() predicate.Predicate { return predicate.GenerationChangedPredicate{} }
