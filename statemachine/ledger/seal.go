package ledger

import (
	"fmt"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Complete returns the pages that are complete and in no record yet, oldest first. Status must be stored before they
// are sealed.
func (l Log) Complete() []v1alpha1.Page {
	pages, _ := l.unsealed()
	return pages
}

// Cut returns what Complete does and the page that goes on, without its newest transition, so that the page that
// follows has something to say how the rollout ended. It is for a status that is full (ErrMustSeal).
func (l Log) Cut() []v1alpha1.Page {
	pages, rest := l.unsealed()
	if rest < len(l.entries)-1 {
		pages = append(pages, l.page(rest, len(l.entries)-2))
	}
	return pages
}

// Remainder returns what Complete does and all that is left, as a page: for a log that nothing will be appended to.
func (l Log) Remainder() []v1alpha1.Page {
	pages, rest := l.unsealed()
	if rest < len(l.entries) {
		pages = append(pages, l.page(rest, len(l.entries)-1))
	}
	return pages
}

// unsealed returns the complete pages that are in no record, and where the page that goes on begins.
func (l Log) unsealed() (pages []v1alpha1.Page, rest int) {
	rest = l.index(l.sealed + 1)
	for i := rest; i < len(l.entries); i++ {
		if l.ends(i) {
			pages = append(pages, l.page(rest, i))
			rest = i + 1
		}
	}
	return pages, rest
}

// Sealed is the log after its next page was found in a record: one that was just created, or one that existed already
// under that name. The latter need not end where this log would have cut: someone before a crash did, from a log with
// fewer transitions, and that is the cut that counts. The error is ErrStale or a *DamagedError.
func (l Log) Sealed(page v1alpha1.Page) (Log, error) {
	if page.StatefulSet != l.name || len(page.Transitions) == 0 {
		return l, fmt.Errorf("page of %q with %d transitions: not one of %s", page.StatefulSet, len(page.Transitions), l.name)
	}
	if first(page) != l.sealed+1 {
		return l, l.damagedRecord(page, first(page), fmt.Sprintf("the next page begins with transition %d", l.sealed+1))
	}
	if last(page) > l.Sequence() {
		return l, ErrStale
	}
	i, j := l.index(first(page)), l.index(last(page))
	if i+len(page.Transitions) != j+1 {
		return l, l.damagedRecord(page, first(page), "its transitions are not numbered without gaps")
	}
	want := l.page(i, j)
	if what := difference(page, want); what != "" {
		if j == len(l.entries)-1 && page.Digest == want.Digest && !l.ends(j) {
			return l, ErrStale // it knows already how the rollout ended
		}
		return l, l.damagedRecord(page, l.firstDifference(i, page), what)
	}
	l.sealed = last(page)
	return l, nil
}

// firstDifference is the sequence of the first transition of a page that is not the one in the log.
func (l Log) firstDifference(i int, page v1alpha1.Page) int64 {
	for n, t := range page.Transitions {
		if string(Canonical(t)) != string(Canonical(l.entries[i+n].transition)) {
			return l.entries[i+n].transition.Sequence
		}
	}
	return last(page)
}

// sealedBy goes through the pages that hold what is in status as well.
func (l Log) sealedBy(pages []v1alpha1.Page) (Log, error) {
	for _, page := range pages {
		if last(page) <= l.base.sequence {
			continue
		}
		var err error
		if l, err = l.Sealed(page); err != nil {
			return Log{}, err
		}
	}
	return l, nil
}

// lenient takes over from a page how its rollout ended where the log cannot know: the rollout was open at the end of the
// page, and what came after it was lost with a RolloutProgress that was deleted. The log that went on from there begins
// with Adopted, or nothing came yet.
func (l Log) lenient(page, want v1alpha1.Page, j int) v1alpha1.Page {
	lost := j+1 == len(l.entries) || l.entries[j+1].event.Type == statemachine.Adopted
	if page.Rollout == nil || want.Rollout == nil || !lost || !l.entries[j].after.state.Rollout.Open() {
		return want
	}
	want = *want.DeepCopy()
	want.DurationSeconds = page.DurationSeconds
	want.Rollout.Outcome, want.Rollout.FinishedAt = page.Rollout.Outcome, page.Rollout.FinishedAt
	want.Rollout.BlockedSeconds = page.Rollout.BlockedSeconds
	return want
}
