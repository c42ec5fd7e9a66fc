package controllers

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logs "sigs.k8s.io/controller-runtime/pkg/log"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// A RolloutProgress goes with its StatefulSet: the garbage collector may delete it before Pawl has seen the deletion,
// let alone recorded it. There is no finalizer to wait for Pawl (deletions never hang, I10); but the watch delivers the
// last version of what was deleted, and with that the log is ended and sealed. A manager that was away meanwhile gets no
// such event: then what was in no RolloutRecord is lost.

// noteDeleted reconciles what a RolloutProgress is about, and keeps the log of one that was deleted until it is sealed.
type noteDeleted struct {
	handler.EnqueueRequestForObject
	traces *traces
}

// Delete is called with the last version of the object, or the last one that the cache had if the watch was broken.
func (n *noteDeleted) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	if progress, is := e.Object.(*v1alpha1.RolloutProgress); is && progress.Status.Sequence > 0 {
		n.traces.keepDeparted(client.ObjectKeyFromObject(progress), progress)
	}
	n.EnqueueRequestForObject.Delete(ctx, e, q)
}

// settle seals what is left of a log whose RolloutProgress is gone, before anything goes on without it.
func (r *Reconciler) settle(ctx context.Context, s sight, t *trace) error {
	if s.departed == nil {
		return nil
	}
	if s.progress != nil && s.progress.UID == s.departed.UID {
		return errNotYet // it was deleted since it was looked at
	}
	if s.progress == nil || s.progress.Status.Sequence == 0 { // else the log went on already
		err := r.end(ctx, s, s.departed.Status, t)
		switch {
		case err == nil, stale(err), errors.Is(err, ledger.ErrStale):
			// A namespace that goes takes its records with it; and a record that is ahead was written by someone else.
		case hopeless(err):
			logs.FromContext(ctx).Error(err, "the end of the log of a deleted RolloutProgress is lost")
		default:
			return err
		}
	}
	t.listed = false
	r.traces.settled(s.key, s.departed)
	return nil
}

// end appends to a log that its StatefulSet is gone, if it is, and seals all of it.
func (r *Reconciler) end(ctx context.Context, s sight, status v1alpha1.RolloutProgressStatus, t *trace) error {
	var err error
	if t.pages, err = pagesOf(ctx, r.Live, s.key); err != nil {
		return err
	}
	log, err := ledger.Load(s.key.Name, status, t.pages)
	if err != nil {
		return &unreadable{err}
	}
	o, d := gone(s.key, log.State(), r.Clock.Now()), statemachine.Decision{}
	if there := s.set != nil && s.set.DeletionTimestamp == nil && string(s.set.UID) == o.UID; !there {
		d = statemachine.Decide(log.State(), o)
	}
	next, err := r.extend(ctx, s, log, d.Events, t)
	if err != nil {
		return err
	}
	if _, err = r.seal(ctx, s, next, ledger.Log.Remainder, t); err == nil {
		r.announce(ctx, o, log, next, d.Events)
	}
	return err
}

// hopeless reports whether trying again would not help: the log does not add up, or the record is refused.
func hopeless(err error) bool {
	var bad *unreadable
	var damaged *ledger.DamagedError
	return errors.As(err, &bad) || errors.As(err, &damaged) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || missingResource(err)
}

// departed is a RolloutProgress that was deleted and is not settled; nil if there is none.
func (t *traces) departed(key types.NamespacedName) *v1alpha1.RolloutProgress {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.deleted[key]
}

func (t *traces) keepDeparted(key types.NamespacedName, progress *v1alpha1.RolloutProgress) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.deleted == nil {
		t.deleted = map[types.NamespacedName]*v1alpha1.RolloutProgress{}
	}
	t.deleted[key] = progress
}

func (t *traces) settled(key types.NamespacedName, progress *v1alpha1.RolloutProgress) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.deleted[key] == progress {
		delete(t.deleted, key)
	}
}
