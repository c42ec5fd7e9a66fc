package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// marks of a timeline. A later one in this list covers an earlier one of the same column, so that what was short and bad
// is seen.
const (
	markWaiting  = '.'
	markStepping = '='
	markBlocked  = '!'
)

// timeline draws the course of a rollout: one row for its state, and one for each pod that was replaced or in the way.
func timeline(name string, transitions []v1alpha1.Transition, end time.Time, width int) []string {
	begin := transitions[0].Time.Time
	if !end.After(begin) {
		end = begin.Add(time.Second)
	}
	d := &drawing{begin: begin, end: end, rows: map[string][]rune{}}
	ordinals := d.draw(name, transitions)
	slices.Sort(ordinals)
	slices.Reverse(ordinals)
	label := len("state")
	for _, n := range ordinals {
		label = max(label, len(fmt.Sprintf("%s-%d", name, n)))
	}
	columns := max(width-label-4, 20)
	d.columns = columns
	d.draw(name, transitions)

	from, to := begin.UTC().Format("15:04:05"), end.UTC().Format("15:04:05")
	lines := []string{fmt.Sprintf("  %-*s  %s%*s", label, "", from, columns-len(from), to)}
	row := func(key string) {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-*s  %s", label, key, string(d.rows[key])), " "))
	}
	row("state")
	for _, n := range ordinals {
		row(fmt.Sprintf("%s-%d", name, n))
	}
	return append(lines, fmt.Sprintf("  %-*s  %c waiting   %c being replaced   %c blocked", label, "", markWaiting, markStepping, markBlocked))
}

type drawing struct {
	begin, end time.Time
	columns    int
	rows       map[string][]rune
}

// draw goes through the transitions and returns the ordinals that have a row.
func (d *drawing) draw(name string, transitions []v1alpha1.Transition) []int32 {
	d.rows = map[string][]rune{"state": d.empty()}
	var seen []int32
	step := map[int32]bool{}
	for i, t := range transitions {
		next := d.end
		if i+1 < len(transitions) {
			next = transitions[i+1].Time.Time
		}
		d.mark("state", marks[t.State], t.Time.Time, next)
		now := inStep(step, t)
		if ordinals := ordinalsOf(t); t.State == v1alpha1.StateBlocked && len(ordinals) > 0 {
			now[ordinals[0]] = markBlocked
		}
		for n, mark := range now {
			d.mark(fmt.Sprintf("%s-%d", name, n), mark, t.Time.Time, next)
			seen = append(seen, n)
		}
	}
	slices.Sort(seen)
	return slices.Compact(seen)
}

var marks = map[v1alpha1.State]rune{
	v1alpha1.StateWaiting: markWaiting, v1alpha1.StateStepping: markStepping, v1alpha1.StateBlocked: markBlocked, v1alpha1.StateDone: ' ',
}

// inStep follows which pods are being replaced, and returns them with their mark.
func inStep(step map[int32]bool, t v1alpha1.Transition) map[int32]rune {
	switch statemachine.EventType(t.Type) {
	case statemachine.StepStarted:
		for _, n := range ordinalsOf(t) {
			step[n] = true
		}
	case statemachine.StepCompleted, statemachine.StepAborted, statemachine.RolloutStarted:
		clear(step)
	default:
	}
	now := map[int32]rune{}
	for n := range step {
		now[n] = markStepping
	}
	return now
}

func ordinalsOf(t v1alpha1.Transition) []int32 {
	set, err := statemachine.ParseOrdinals(t.Ordinals)
	if err != nil {
		return nil
	}
	return slices.Collect(set.All())
}

func (d *drawing) empty() []rune { return slices.Repeat([]rune{' '}, d.columns) }

// mark fills a row from one time to another, one column at least.
func (d *drawing) mark(row string, mark rune, from, to time.Time) {
	if d.columns == 0 {
		return
	}
	if d.rows[row] == nil {
		d.rows[row] = d.empty()
	}
	first := d.column(from)
	for i := first; i <= max(first, d.column(to)-1); i++ {
		if was := d.rows[row][i]; strings.IndexRune(" .=!", was) < strings.IndexRune(" .=!", mark) {
			d.rows[row][i] = mark
		}
	}
}

func (d *drawing) column(at time.Time) int {
	share := float64(at.Sub(d.begin)) / float64(d.end.Sub(d.begin))
	return min(max(int(share*float64(d.columns)), 0), d.columns-1)
}
