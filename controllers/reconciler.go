package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/statemachine/ledger"
)

// Reconciler drives the StatefulSets that ask for it, and writes down what it sees.
type Reconciler struct {
	Client       client.Client // reads from caches
	Live         client.Reader // reads from the API server
	Recorder     events.EventRecorder
	Clock        clock.PassiveClock
	Patience     Patience
	ReadNodes    bool // whether Pawl may read nodes,
	ReadClaims   bool // PersistentVolumeClaims,
	ReadEvents   bool // Events,
	ReadBudgets  bool // PodDisruptionBudgets,
	ReadPolicies bool // RolloutPolicies
	Restores     bool // whether Pawl may write status.currentRevision
	Adopts       bool // whether Pawl may write the owner of a RolloutProgress
	Admission    *Admission
	Namespaces   []string // that Pawl watches; empty is all

	traces   traces
	slots    slots
	programs programs
	owners   owners
	backOff  workqueue.TypedRateLimiter[ctrl.Request]
	asking   flowcontrol.PassiveRateLimiter // how often Events are read
}

// staleAfter bounds how long to wait for the watch event of an own write, which never fails to come but for a bug.
const staleAfter = 10 * time.Second

// errNotYet is neither success nor failure: what was complained of before may still be so.
var errNotYet = errors.New("the cache has yet to show an own write")

// Reconcile looks at one StatefulSet once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := r.traces.of(req.NamespacedName)
	result, err := r.reconcile(ctx, req, t)
	switch {
	case errors.Is(err, errNotYet):
		return ctrl.Result{RequeueAfter: staleAfter}, nil // the watch event comes sooner (I8)
	case err != nil:
		if !stale(err) {
			r.slots.pass(req.NamespacedName)
		}
		return r.again(ctx, req, err, t), nil
	}
	r.backOff.Forget(req)
	t.complaint = ""
	return result, nil
}

// reconcile is observe → decide → record → act.
func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request, t *trace) (ctrl.Result, error) {
	s, err := r.look(ctx, req.NamespacedName, t)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.stale {
		return ctrl.Result{}, errNotYet
	}
	if err := r.settle(ctx, s, t); err != nil {
		return ctrl.Result{}, err
	}
	if s.standing() != driven {
		r.unfollow(s)
		return ctrl.Result{}, r.aside(ctx, s, t)
	}
	log, err := r.open(ctx, s, t)
	if err != nil {
		r.slots.pass(s.key)
		return ctrl.Result{}, r.halt(ctx, s, t, err)
	}
	r.follow(s, log)
	o, askAt, err := r.gather(ctx, s, log.State(), t)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.warnOfForce(s, o)
	d, err := r.decide(ctx, s, log.State(), o)
	if err != nil {
		return ctrl.Result{}, err
	}
	if d.Bug != nil {
		return ctrl.Result{}, fmt.Errorf("decide: %w", d.Bug)
	}
	log, whole, err := r.record(ctx, s, log, o, d, t)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.follow(s, log)
	if whole {
		if err := r.act(ctx, o, d.Intent, t); err != nil {
			return ctrl.Result{}, err
		}
		r.announcePartition(o, d.Intent, log)
	}
	// Last, because a park must not wait for a RolloutRecord that is refused (I10): what is sealed is in status as well.
	if _, err := r.seal(ctx, s, log, ledger.Log.Complete, t); err != nil || !whole {
		return ctrl.Result{}, err // the status that was written is a watch event
	}
	if err := r.own(ctx, s, t); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.until(sooner(d.WakeAt, askAt))}, nil
}

// follow keeps the slots in step with what is recorded of the StatefulSet.
func (r *Reconciler) follow(s sight, log ledger.Log) {
	if s.set == nil {
		r.unfollow(s)
		return
	}
	r.slots.follow(s.key, policyName(s.set), log.State())
}

// unfollow lets go of what was held for a StatefulSet that is not driven any more.
func (r *Reconciler) unfollow(s sight) {
	r.slots.leave(s.key)
	r.owners.release(s.key)
}

// sooner is the earlier of two times; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// until is the time from now to a deadline; 0 is no deadline, so one that has passed meanwhile is the shortest time.
func (r *Reconciler) until(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(r.Clock.Now()), time.Millisecond)
}
