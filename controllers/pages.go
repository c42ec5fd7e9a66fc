package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logs "sigs.k8s.io/controller-runtime/pkg/log"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// RolloutRecords are listed and read live, never watched: they are needed once per process and StatefulSet, and whole.
// +kubebuilder:rbac:groups=pawl.dev,resources=rolloutrecords,verbs=list;create

// open reads the log from status and the pages that status rests on. An error in the log itself is an *unreadable; it
// is believed of what the API server says only, not of a cache.
func (r *Reconciler) open(ctx context.Context, s sight, t *trace) (ledger.Log, error) {
	var status v1alpha1.RolloutProgressStatus
	if s.progress != nil {
		status = s.progress.Status
	}
	if !t.listed || status.Sequence == 0 || s.live {
		pages, err := pagesOf(ctx, r.Live, s.key)
		if err != nil {
			return ledger.Log{}, err
		}
		t.pages, t.listed = pages, true
	}
	log, err := ledger.Load(s.key.Name, status, t.pages)
	switch {
	case err == nil:
		t.pages = slices.DeleteFunc(t.pages, func(p v1alpha1.Page) bool { return ledger.Newest(p).Sequence < log.NeedsFrom() })
		return log, nil
	case !s.live:
		return ledger.Log{}, errReadAgain
	default:
		return ledger.Log{}, &unreadable{err}
	}
}

// errReadAgain asks for a live read before a log is called damaged.
var errReadAgain = errors.New("the log does not add up in the cache")

// unreadable is a log that nobody can go on with.
type unreadable struct{ cause error }

func (u *unreadable) Error() string { return u.cause.Error() }
func (u *unreadable) Unwrap() error { return u.cause }

// halt answers a log that cannot be read: the conditions say so, the log stays as it is, and nothing is done. It heals
// when the RolloutProgress is deleted: then the log goes on from the newest RolloutRecord.
func (r *Reconciler) halt(ctx context.Context, s sight, t *trace, err error) error {
	var bad *unreadable
	if s.progress == nil || !errors.As(err, &bad) {
		return err
	}
	reason, message := damaged(s, bad)
	next := s.progress.DeepCopy()
	halted(&next.Status, next.Generation, true, reason, message)
	written, err := r.store(ctx, s.progress, next, t)
	if err == nil && written {
		logs.FromContext(ctx).Error(bad, "no step is taken until the log is healed", logReason, reason, logMessage, message)
	}
	return err
}

func pagesOf(ctx context.Context, live client.Reader, key types.NamespacedName) ([]v1alpha1.Page, error) {
	var records v1alpha1.RolloutRecordList
	err := live.List(ctx, &records, client.InNamespace(key.Namespace), client.MatchingFields{"page.statefulSet": key.Name})
	if err != nil {
		return nil, fmt.Errorf("list the RolloutRecords: %w", err)
	}
	pages := make([]v1alpha1.Page, len(records.Items))
	for i := range records.Items {
		pages[i] = records.Items[i].Page
	}
	return pages, nil
}

// seal stores the pages that cut finds in the log, one after another. It is level-triggered: what a crash or a lost answer
// left unsealed is sealed by the next look, which reads the pages again.
func (r *Reconciler) seal(
	ctx context.Context, s sight, log ledger.Log, cut func(ledger.Log) []v1alpha1.Page, t *trace,
) (ledger.Log, error) {
	for pages := cut(log); len(pages) > 0; pages = cut(log) {
		page, err := r.keep(ctx, s.key.Namespace, pages[0])
		if err == nil {
			log, err = log.Sealed(page)
		}
		if err != nil {
			t.listed = false
			return log, err
		}
		t.pages = append(t.pages, page)
	}
	return log, nil
}

// keep creates the RolloutRecord of a page. One that exists was not there when the pages were listed: either another
// manager was faster, which the next list shows, or somebody else made it, which must not pass in silence.
func (r *Reconciler) keep(ctx context.Context, namespace string, page v1alpha1.Page) (v1alpha1.Page, error) {
	ctx, done := writing(ctx)
	defer done()
	record := ledger.Record(namespace, page)
	err := timed(writeSeal, func() error { return r.Client.Create(ctx, &record) })
	switch {
	case apierrors.IsAlreadyExists(err):
		return page, fmt.Errorf("seal the RolloutRecord %s: it exists, and no list of the log shows it; see what it holds", record.Name)
	case err != nil:
		return page, fmt.Errorf("seal the RolloutRecord %s: %w", record.Name, err)
	}
	return record.Page, nil
}
