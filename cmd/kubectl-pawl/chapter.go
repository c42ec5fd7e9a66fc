package main

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// chapter is one rollout with all its transitions, or what happened between two rollouts.
type chapter struct {
	rollout     *v1alpha1.Rollout // nil between rollouts
	transitions []v1alpha1.Transition
	pages       []v1alpha1.Page

	before, after []v1alpha1.Page // what happened between it and other rollouts

	newest bool // nothing came after it, and there is a status that says so
}

// chapters puts the pages of a rollout that took several together. A log without a status does not go on.
func chapters(pages []v1alpha1.Page, goesOn bool) []chapter {
	var all []chapter
	for _, page := range pages {
		n := len(all) - 1
		same := n >= 0 && page.Rollout != nil && all[n].rollout != nil && page.Rollout.Number == all[n].rollout.Number &&
			all[n].rollout.Outcome == ""
		if !same {
			all = append(all, chapter{})
			n++
		}
		c := &all[n]
		c.rollout = page.Rollout
		c.transitions = append(c.transitions, page.Transitions...)
		c.pages = append(c.pages, page)
	}
	if len(all) > 0 {
		all[len(all)-1].newest = goesOn
	}
	return all
}

// outcome is how a rollout ended, or the state that it is in. The end of one that is neither was lost with its
// RolloutProgress.
func (c *chapter) outcome() string {
	switch {
	case c.rollout.Outcome != "":
		return string(c.rollout.Outcome)
	case c.newest:
		return string(newestOf(c.pages).State)
	default:
		return "unknown"
	}
}

// end of the rollout: now, if it is still running.
func (c *chapter) end(now time.Time) time.Time {
	switch {
	case !c.rollout.FinishedAt.IsZero():
		return c.rollout.FinishedAt.Time
	case c.newest:
		return now
	default:
		return newestOf(c.pages).Time.Time
	}
}

// took is how long the rollout took, with a + if it is still running.
func (c *chapter) took(now time.Time) string {
	took := short(c.end(now).Sub(c.rollout.StartedAt.Time))
	if c.rollout.Outcome == "" && c.newest {
		took += "+"
	}
	return took
}

// records are the names of the RolloutRecords that hold it, and what is in status only.
func (c *chapter) records(h *history) []string {
	sealed := map[string]bool{}
	for _, r := range h.records {
		sealed[r.Name] = true
	}
	var names []string
	for _, page := range c.pages {
		name := ledger.RecordName(h.Name, page.Transitions[0].Sequence)
		if !sealed[name] {
			name = fmt.Sprintf("status of rolloutprogress %s (not sealed yet)", h.Name)
		}
		names = append(names, name)
	}
	return names
}

// held is as much of a history as holds the rollout: its records, and what is in status if some of it is in no record yet.
func (c *chapter) held(h *history) *history {
	part := &history{NamespacedName: h.NamespacedName}
	for _, page := range c.pages {
		name := ledger.RecordName(h.Name, page.Transitions[0].Sequence)
		if i := slices.IndexFunc(h.records, func(r v1alpha1.RolloutRecord) bool { return r.Name == name }); i >= 0 {
			part.records = append(part.records, h.records[i])
		} else {
			part.progress = h.progress
		}
	}
	return part
}

// stamp is how a time is printed.
const stamp = "2006-01-02 15:04:05Z"

// short is a duration as kubectl prints an age.
func short(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

func seconds(n *int32) time.Duration { return time.Duration(ptr.Deref(n, 0)) * time.Second }
