package ledger

import (
	"fmt"
	"slices"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Load reads a log back. It verifies the chain, folds the transitions, and compares every field that follows from them.
//
// Pages are those of RolloutRecords; those of other names are left aside. All that there are should be given: without
// them the Log cannot know what is sealed, and if status begins in the middle of a rollout they are needed to read it.
//
// An empty status is the beginning of a log. If there are pages of an older one it goes on from the newest of them: the
// RolloutProgress was deleted. Then pages must be read from the API server itself, as a cache may lack the newest.
//
// The error is a *DamagedError, a *MissingError or ErrStale.
func Load(name string, status v1alpha1.RolloutProgressStatus, pages []v1alpha1.Page) (Log, error) {
	pages = ofName(name, pages)
	outside := v1alpha1.RolloutProgressStatus{Conditions: status.Conditions, ObservedGeneration: status.ObservedGeneration}
	l := Log{name: name, outside: *outside.DeepCopy()}
	if difference(status, outside) == "" {
		return l.restart(pages), nil
	}
	var err error
	if l.base, err = l.begin(status, pages); err != nil {
		return Log{}, err
	}
	l.sealed = l.base.sequence
	for _, t := range status.Transitions {
		next, err := l.end().follow(t)
		if err != nil {
			return Log{}, l.damaged(l.Sequence()+1, err.Error())
		}
		l.entries = append(l.entries, next)
	}
	want := l.Status()
	want.Transitions, status.Transitions = nil, nil // the digest speaks for them
	if what := difference(status, want); what != "" {
		return Log{}, l.damaged(status.Sequence, "status does not follow from the transitions: "+what)
	}
	return l.sealedBy(pages)
}

// begin finds the point before the first transition in status.
func (l Log) begin(status v1alpha1.RolloutProgressStatus, pages []v1alpha1.Page) (point, error) {
	first := status.Sequence + 1
	if len(status.Transitions) > 0 {
		first = status.Transitions[0].Sequence
	}
	if first < 1 || (first == 1) != (status.PreviousDigest == "") {
		return point{}, l.damaged(first, "previousDigest must be set, but for the first transition of all")
	}
	if len(status.Transitions) > 0 {
		if p, ok := before(status.Transitions[0], status.PreviousDigest); ok {
			return p, nil
		}
	}
	p, err := l.replay(first-1, pages)
	if err != nil {
		return point{}, err
	}
	if p.digest != status.PreviousDigest {
		return point{}, l.damaged(first, "previousDigest is not the digest of the record before it")
	}
	return p, nil
}

// replay folds the pages that lead to a sequence, from the newest anchor on.
func (l Log) replay(through int64, pages []v1alpha1.Page) (point, error) {
	var chain []v1alpha1.Page
	var p point
	for need, anchored := through, false; !anchored; need = first(chain[0]) - 1 {
		i := slices.IndexFunc(pages, func(page v1alpha1.Page) bool { return last(page) == need })
		if i < 0 {
			return point{}, &MissingError{Name: l.name, Sequence: need}
		}
		chain = slices.Insert(chain, 0, pages[i])
		p, anchored = before(pages[i].Transitions[0], pages[i].PreviousDigest)
	}
	for _, page := range chain {
		entries, err := l.read(p, page)
		if err != nil {
			return point{}, err
		}
		p = entries[len(entries)-1].after
	}
	return p, nil
}

// read places the transitions of a page after p and checks its two digests.
func (l Log) read(p point, page v1alpha1.Page) ([]entry, error) {
	if page.PreviousDigest != p.digest {
		return nil, l.damagedRecord(page, first(page), "previousDigest is not the digest of the page before it")
	}
	entries := make([]entry, 0, len(page.Transitions))
	for _, t := range page.Transitions {
		next, err := p.follow(t)
		if err != nil {
			return nil, l.damagedRecord(page, p.sequence+1, err.Error())
		}
		entries = append(entries, next)
		p = next.after
	}
	if page.Digest != p.digest {
		return nil, l.damagedRecord(page, p.sequence, fmt.Sprintf("digest is %s, want %s", page.Digest, p.digest))
	}
	return entries, nil
}

// restart begins a log after the newest page. It never fails: this is the remedy for everything else. What it takes
// from a page that does not fold is only what the page itself says.
func (l Log) restart(pages []v1alpha1.Page) Log {
	l.base.state = statemachine.State{Name: statemachine.New}
	if len(pages) == 0 {
		return l
	}
	newest := pages[len(pages)-1]
	l.base.sequence, l.base.digest, l.sealed = last(newest), newest.Digest, last(newest)
	l.base.state.UID = newest.StatefulSetUID
	if p, err := l.replay(last(newest), pages); err == nil {
		l.base.state.StableRevision = p.state.StableRevision
		l.base.state.Rollout.Number = p.state.Rollout.Number
	} else {
		for _, page := range pages {
			if r := page.Rollout; r != nil {
				l.base.state.Rollout.Number = max(l.base.state.Rollout.Number, r.Number)
				if r.Outcome == v1alpha1.OutcomeCompleted {
					l.base.state.StableRevision = r.ToRevision
				}
			}
		}
	}
	return l
}

func (l Log) damaged(sequence int64, what string) error {
	return &DamagedError{Name: l.name, Sequence: sequence, What: what}
}

func (l Log) damagedRecord(page v1alpha1.Page, sequence int64, what string) error {
	return &DamagedError{Name: l.name, Sequence: sequence, What: what, Record: RecordName(l.name, first(page))}
}
