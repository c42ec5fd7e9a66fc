package ledger

import "pawl.dev/pawl/api/v1alpha1"

// Pages is the whole log as pages, oldest first: those of records, and what is only in status yet as further ones, of
// which the last may go on. With the error of Load it is those of records alone.
func Pages(name string, status v1alpha1.RolloutProgressStatus, records []v1alpha1.Page) ([]v1alpha1.Page, error) {
	pages := ofName(name, records)
	l, err := Load(name, status, pages)
	if err != nil {
		return pages, err
	}
	return append(pages, l.Remainder()...), nil
}

// Heads is the head of the chain after each transition of these pages, by sequence, and that before the first of them.
func Heads(pages []v1alpha1.Page) map[int64]string {
	heads := map[int64]string{}
	if len(pages) > 0 && first(pages[0]) > 1 {
		heads[first(pages[0])-1] = pages[0].PreviousDigest
	}
	for _, page := range pages {
		digest := page.PreviousDigest
		for _, t := range page.Transitions {
			digest = Chain(digest, t)
			heads[t.Sequence] = digest
		}
	}
	return heads
}
