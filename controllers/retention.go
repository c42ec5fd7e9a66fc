package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutrecords,verbs=delete,roleName=pawl-delete-records

// Retention deletes RolloutRecords that are older than they have to be kept, from the oldest on, so that what is left has
// no gap. Of a name that is still in use it leaves the newest record and those that status cannot be read without; of one
// that is gone for as long as the records are kept it leaves none.
type Retention struct {
	Live       client.Reader // whole lists are read once a day, and not cached for it
	Client     client.Client
	Clock      clock.Clock
	Log        logr.Logger
	Keep       time.Duration // unless a RolloutPolicy has another time
	Policies   client.Reader // nil where they may not be read
	Namespaces []string      // to look in; empty is all
}

// How often to look: the time to keep is in days. What went wrong is tried again long before the next day.
const (
	retentionCheck = 24 * time.Hour
	retentionRetry = 10 * time.Minute
)

// Start looks at the start and daily, until ctx ends.
func (r *Retention) Start(ctx context.Context) error {
	for {
		next := retentionCheck
		n, err := r.Sweep(ctx)
		if n > 0 {
			r.Log.Info("deleted RolloutRecords that are older than they are kept", "records", n)
		}
		if err != nil && ctx.Err() == nil {
			next = retentionRetry
			r.Log.Error(err, "some old RolloutRecords are still there, will try again", "after", next.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(next):
		}
	}
}

// NeedLeaderElection is true: one replica sweeps.
func (r *Retention) NeedLeaderElection() bool { return true }

// sheet is what has to be known of a record to judge it.
type sheet struct {
	name        string
	uid         types.UID
	first, last int64
	ended       time.Time
	anchor      bool // a log can go on from it without older ones
}

// Sweep looks once, and returns how many records it deleted. What goes wrong with one name does not keep the others.
func (r *Retention) Sweep(ctx context.Context) (deleted int, err error) {
	namespaces := r.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var faults []error
	for _, namespace := range namespaces {
		sheets, err := r.sheets(ctx, namespace)
		faults = append(faults, err)
		for key, list := range sheets {
			if ctx.Err() != nil {
				return deleted, ctx.Err() //nolint:wrapcheck // says it all
			}
			n, err := r.sweep(ctx, key, list)
			deleted += n
			faults = append(faults, err)
		}
	}
	return deleted, errors.Join(faults...)
}

// sheets reads the records in pieces, as there may be many.
func (r *Retention) sheets(ctx context.Context, namespace string) (map[types.NamespacedName][]sheet, error) {
	const piece = 200
	found := map[types.NamespacedName][]sheet{}
	for next := ""; ; {
		var records v1alpha1.RolloutRecordList
		if err := r.Live.List(ctx, &records, client.InNamespace(namespace), client.Limit(piece), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list the RolloutRecords: %w", err)
		}
		for i := range records.Items {
			record := &records.Items[i]
			transitions, newest := record.Page.Transitions, ledger.Newest(record.Page)
			if len(transitions) == 0 {
				continue
			}
			key := types.NamespacedName{Namespace: record.Namespace, Name: record.Page.StatefulSet}
			found[key] = append(found[key], sheet{
				record.Name, record.UID, transitions[0].Sequence, newest.Sequence, newest.Time.Time,
				statemachine.Event{Type: statemachine.EventType(transitions[0].Type)}.Anchor(),
			})
		}
		if next = records.Continue; next == "" {
			return found, nil
		}
	}
}

// sweep deletes what is old of one name.
func (r *Retention) sweep(ctx context.Context, key types.NamespacedName, list []sheet) (deleted int, err error) {
	slices.SortFunc(list, func(a, b sheet) int { return cmp.Compare(a.first, b.first) })
	keep, err := r.keep(ctx, key)
	if err != nil {
		return 0, err
	}
	cutoff := r.Clock.Now().Add(-keep)
	old := 0
	for old < len(list) && list[old].ended.Before(cutoff) {
		old++
	}
	if old == 0 {
		return 0, nil
	}
	// What a log that is begun anew goes on from: the newest record may only be what came between two rollouts.
	from := len(list) - 1
	for from > 0 && !list[from].anchor {
		from--
	}
	needed, err := r.neededFrom(ctx, key, list[from].first, list[len(list)-1].last)
	if err != nil {
		return 0, err
	}
	for _, s := range list[:old] {
		if s.last >= needed {
			break
		}
		record := &v1alpha1.RolloutRecord{}
		record.Namespace, record.Name = key.Namespace, s.name
		if err := r.Client.Delete(ctx, record, client.Preconditions{UID: &s.uid}); client.IgnoreNotFound(err) != nil {
			return deleted, fmt.Errorf("delete the RolloutRecord %s/%s: %w", key.Namespace, s.name, err)
		}
		r.Log.Info("deleted a RolloutRecord", logNamespace, key.Namespace, logStatefulSet, key.Name, "record", s.name, "ended", s.ended.UTC().Format(time.RFC3339))
		deleted++
	}
	return deleted, nil
}

// keep is how long the records of this name are kept: as its policy says, or as the default one does for a StatefulSet
// that is gone.
func (r *Retention) keep(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if r.Policies == nil {
		return r.Keep, nil
	}
	set, err := fetch(ctx, r.Policies, key, &appsv1.StatefulSet{})
	if err != nil {
		return 0, fmt.Errorf("read the StatefulSet: %w", err)
	}
	name := v1alpha1.DefaultPolicy
	if set != nil {
		name = policyName(set)
	}
	policy, err := fetch(ctx, r.Policies, types.NamespacedName{Name: name}, &v1alpha1.RolloutPolicy{})
	if err != nil {
		return 0, fmt.Errorf("read the RolloutPolicy %s: %w", name, err)
	}
	if policy == nil || policy.Spec.RetentionDays == 0 {
		return r.Keep, nil
	}
	return time.Duration(policy.Spec.RetentionDays) * 24 * time.Hour, nil
}

// neededFrom is the sequence from which on records are kept whatever their age.
func (r *Retention) neededFrom(ctx context.Context, key types.NamespacedName, first, last int64) (int64, error) {
	progress, err := fetch(ctx, r.Live, key, &v1alpha1.RolloutProgress{})
	if err != nil {
		return 0, fmt.Errorf("read the RolloutProgress: %w", err)
	}
	if progress == nil {
		set, err := fetch(ctx, r.Live, key, &appsv1.StatefulSet{})
		switch {
		case err != nil:
			return 0, fmt.Errorf("read the StatefulSet: %w", err)
		case set != nil:
			return first, nil // a RolloutProgress that was just deleted goes on from the newest record
		default:
			return last + 1, nil
		}
	}
	pages, err := pagesOf(ctx, r.Live, key)
	if err != nil {
		return 0, err
	}
	needed := first
	switch log, err := ledger.Load(key.Name, progress.Status, pages); {
	case err != nil:
		needed = 0 // a log that does not add up is evidence
	case log.NeedsFrom() > 0:
		needed = min(needed, log.NeedsFrom())
	}
	return needed, nil
}
