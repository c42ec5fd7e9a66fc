package ledger

import (
	"fmt"

	"pawl.dev/pawl/api/v1alpha1"
)

// Verify proves a whole log: every page there is, and status if it is not empty. It says where the first fault is.
//
// What it cannot know: whether the oldest pages were removed, which retention does, and whether the newest
// transitions were, if status was cut or deleted along with them. For the latter keep a digest elsewhere: every
// later log contains it.
func Verify(name string, status v1alpha1.RolloutProgressStatus, pages []v1alpha1.Page) error {
	pages = ofName(name, pages)
	l := Log{name: name}
	if err := l.chained(pages); err != nil {
		return err
	}
	if err := l.verify(status, pages); err != nil {
		return err
	}
	_, err := Load(name, status, pages)
	return err
}

// chained checks that the pages follow one another without a gap, and the digests in them. It needs no fold, so it can
// read a log whose beginning is gone.
func (l Log) chained(pages []v1alpha1.Page) error {
	for i, page := range pages {
		sequence, digest := first(page)-1, page.PreviousDigest
		if i > 0 {
			sequence, digest = last(pages[i-1]), pages[i-1].Digest
		}
		if first(page) > sequence+1 {
			return &MissingError{Name: l.name, Sequence: sequence + 1}
		}
		if page.PreviousDigest != digest || (sequence == 0) != (digest == "") {
			return l.damagedRecord(page, first(page), "previousDigest is not the digest before it")
		}
		for _, t := range page.Transitions {
			sequence++
			if t.Sequence != sequence {
				return l.damagedRecord(page, sequence, "transitions are not numbered without gaps")
			}
			digest = Chain(digest, t)
		}
		if digest != page.Digest {
			return l.damagedRecord(page, first(page), fmt.Sprintf("its digest does not match, so something in transitions %d to %d was changed", first(page), last(page)))
		}
	}
	return nil
}

// verify folds all pages and the status after them into one log, and compares what each page says about itself.
func (l Log) verify(status v1alpha1.RolloutProgressStatus, pages []v1alpha1.Page) error {
	l.base, pages = foldable(pages)
	if len(pages) == 0 {
		return nil
	}
	for _, page := range pages {
		entries, err := l.read(l.end(), page)
		if err != nil {
			return err
		}
		l.entries = append(l.entries, entries...)
	}
	l, err := l.continued(status.Transitions)
	if err != nil {
		return err
	}
	for _, page := range pages {
		if what := l.differs(page); what != "" {
			return l.damagedRecord(page, first(page), what)
		}
	}
	return nil
}

// foldable leaves out the oldest pages if their rollout began in one that was removed, and returns the point before
// the rest.
func foldable(pages []v1alpha1.Page) (point, []v1alpha1.Page) {
	for i, page := range pages {
		if p, ok := before(page.Transitions[0], page.PreviousDigest); ok {
			return p, pages[i:]
		}
	}
	return point{}, nil
}

// continued is the log with the transitions that are only in status. Load compares the others with the pages.
func (l Log) continued(transitions []v1alpha1.Transition) (Log, error) {
	through := l.Sequence()
	for _, t := range transitions {
		if t.Sequence <= through {
			continue
		}
		if t.Sequence > l.Sequence()+1 {
			return l, &MissingError{Name: l.name, Sequence: l.Sequence() + 1}
		}
		next, err := l.end().follow(t)
		if err != nil {
			return l, l.damaged(t.Sequence, err.Error())
		}
		l.entries = append(l.entries, next)
	}
	return l, nil
}

// differs says what a page gets wrong about itself.
func (l Log) differs(page v1alpha1.Page) string {
	i, j := l.index(first(page)), l.index(last(page))
	return difference(page, l.lenient(page, l.page(i, j), j))
}
