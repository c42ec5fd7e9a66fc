package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutprogresses,verbs=create;patch
// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutprogresses/status,verbs=update

// record stores the events of one decision in one status write, before anything is done about them (I6). It returns the
// log as it is stored then, and whether all of them are in it; more than fit at once are decided again.
func (r *Reconciler) record(
	ctx context.Context, s sight, log ledger.Log, o statemachine.Observation, d statemachine.Decision, t *trace,
) (next ledger.Log, whole bool, err error) {
	events := d.Events[:min(len(d.Events), ledger.MaxEvents)]
	if next, err = r.extend(ctx, s, log, events, t); err != nil {
		return log, false, err
	}
	if s.progress == nil {
		if len(events) == 0 {
			return next, true, nil
		}
		if s.progress, err = r.create(ctx, s.set, t); err != nil {
			return log, false, err
		}
	}
	progress := s.progress.DeepCopy()
	progress.Status = next.Status()
	r.conclude(s, &progress.Status, progress.Generation)
	if _, err := r.store(ctx, s.progress, progress, t); err != nil {
		return log, false, err
	}
	r.announce(ctx, o, log, next, events)
	return next, len(events) == len(d.Events), nil
}

// extend appends events to the log. Earlier rollouts leave status then, if they are sealed; a status that is full is
// sealed first. Without events status stays as it is (I9).
func (r *Reconciler) extend(
	ctx context.Context, s sight, log ledger.Log, events []statemachine.Event, t *trace,
) (ledger.Log, error) {
	if len(events) == 0 {
		return log, nil
	}
	next, err := log.Append(events)
	if errors.Is(err, ledger.ErrMustSeal) {
		if log, err = r.seal(ctx, s, log, ledger.Log.Cut, t); err != nil {
			return log, err
		}
		next, err = log.TrimSealed().Append(events)
	}
	if err != nil {
		return log, fmt.Errorf("append events: %w", err)
	}
	return next.Trim(), nil
}

// create makes the RolloutProgress of a StatefulSet. It is owned, so that it goes with the StatefulSet and tools show
// the two together; but not as by a controller, so that a deletion with orphans leaves it for the re-created one.
func (r *Reconciler) create(ctx context.Context, set *appsv1.StatefulSet, t *trace) (*v1alpha1.RolloutProgress, error) {
	ctx, done := writing(ctx)
	defer done()
	progress := &v1alpha1.RolloutProgress{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, OwnerReferences: []metav1.OwnerReference{ownerOf(set)},
	}}
	if err := r.Client.Create(ctx, progress); err != nil {
		return nil, fmt.Errorf("create the RolloutProgress: %w", err)
	}
	t.progress = progress.ResourceVersion
	return progress, nil
}

func ownerOf(set *appsv1.StatefulSet) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: set.Name, UID: set.UID}
}

// own hands the RolloutProgress that outlived a StatefulSet to the next one of its name: it goes with that one then. It
// comes after all else, because a rollout must not wait for it.
func (r *Reconciler) own(ctx context.Context, s sight, t *trace) error {
	if s.progress == nil || s.set == nil || s.set.DeletionTimestamp != nil || s.progress.DeletionTimestamp != nil || !r.Adopts {
		return nil
	}
	for _, o := range s.progress.OwnerReferences {
		if o.UID == s.set.UID {
			return nil
		}
	}
	ctx, done := writing(ctx)
	defer done()
	owned := s.progress.DeepCopy()
	owned.ResourceVersion = cmp.Or(t.progress, owned.ResourceVersion) // as it was just stored
	guard := owned.DeepCopy()
	owned.OwnerReferences = append(slices.DeleteFunc(owned.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "StatefulSet" && o.Name == s.set.Name // one that is gone
	}), ownerOf(s.set))
	patch := client.MergeFromWithOptions(guard, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, owned, patch); err != nil {
		return fmt.Errorf("hand the RolloutProgress to the StatefulSet: %w", err)
	}
	t.progress = owned.ResourceVersion
	return nil
}

// conclude derives what is outside the log: the conditions, and the generation of spec that they speak of.
func (r *Reconciler) conclude(s sight, status *v1alpha1.RolloutProgressStatus, generation int64) {
	if s.set == nil || s.set.Labels[v1alpha1.ModeLabel] == "" {
		reason, message := stranded(s)
		halted(status, generation, false, reason, message)
		return
	}
	status.Conditions = ledger.Conditions(*status, generation, r.Clock.Now())
	status.ObservedGeneration = &generation
}

// store writes a status, if it changed, guarded by the resourceVersion that it was read with.
func (r *Reconciler) store(ctx context.Context, was, is *v1alpha1.RolloutProgress, t *trace) (bool, error) {
	if apiequality.Semantic.DeepEqual(was.Status, is.Status) {
		return false, nil
	}
	ctx, done := writing(ctx)
	defer done()
	if err := timed(writeRecord, func() error { return r.Client.Status().Update(ctx, is) }); err != nil {
		return false, fmt.Errorf("record events: %w", err)
	}
	t.progress = is.ResourceVersion
	return true, nil
}
