package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// RecordName is the name of the RolloutRecord whose first transition has this sequence. It says nothing about where
// the page ends: whoever seals a page second finds the cut of the first.
func RecordName(name string, sequence int64) string { return fmt.Sprintf("%s-%010d", name, sequence) }

// Record is the RolloutRecord of a page.
func Record(namespace string, page v1alpha1.Page) v1alpha1.RolloutRecord {
	return v1alpha1.RolloutRecord{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutRecord"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: RecordName(page.StatefulSet, first(page))},
		Page:       *page.DeepCopy(),
	}
}

// ends reports whether a page ends after the i-th transition: the rollout is over, or an anchor comes next. So what
// happened between two rollouts is a page of its own, and a page speaks of one StatefulSet only.
func (l Log) ends(i int) bool {
	if i+1 < len(l.entries) && l.entries[i+1].event.Anchor() {
		return true
	}
	e := l.entries[i]
	return !e.event.Anchor() && l.point(i).state.Rollout.Open() && !e.after.state.Rollout.Open()
}

// page is the page from the i-th to the j-th transition, both inclusive.
func (l Log) page(i, j int) v1alpha1.Page {
	end := l.entries[j].after
	page := v1alpha1.Page{
		StatefulSet: l.name, StatefulSetUID: end.state.UID,
		PreviousDigest: l.point(i).digest, Digest: end.digest,
	}
	for _, e := range l.entries[i : j+1] {
		page.Transitions = append(page.Transitions, *e.transition.DeepCopy())
	}
	begins := l.entries[i].event.Type
	if begins != statemachine.RolloutStarted && (begins == statemachine.Adopted || !l.point(i).state.Rollout.Open()) {
		return page
	}
	rollout := end.state.Rollout
	if j+1 < len(l.entries) && l.entries[j+1].event.Anchor() {
		rollout = end.state.Ended(l.entries[j+1].event)
	}
	page.Rollout = rolloutOf(rollout)
	if rollout.Outcome != "" {
		seconds := rollout.FinishedAt.Sub(rollout.StartedAt) / time.Second
		page.DurationSeconds = new(int32(min(max(seconds, 0), 1<<31-1)))
	}
	return page
}

// ofName returns the pages of one StatefulSet name, oldest first. A page without transitions is none.
func ofName(name string, pages []v1alpha1.Page) []v1alpha1.Page {
	own := make([]v1alpha1.Page, 0, len(pages))
	for _, page := range pages {
		if page.StatefulSet == name && len(page.Transitions) > 0 {
			own = append(own, page)
		}
	}
	slices.SortStableFunc(own, func(a, b v1alpha1.Page) int { return cmp.Compare(first(a), first(b)) })
	return own
}

func first(page v1alpha1.Page) int64 { return page.Transitions[0].Sequence }

func last(page v1alpha1.Page) int64 { return Newest(page).Sequence }

// Newest is the last transition of a page; the zero Transition if it has none.
func Newest(page v1alpha1.Page) v1alpha1.Transition {
	if len(page.Transitions) == 0 {
		return v1alpha1.Transition{}
	}
	return page.Transitions[len(page.Transitions)-1]
}
