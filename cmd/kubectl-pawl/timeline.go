package main

import (
	"fmt"
	"math"
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
	spans := course(transitions, end)
	ordinals := []int32{state}
	for _, s := range spans {
		ordinals = append(ordinals, s.row)
	}
	slices.Sort(ordinals)
	ordinals = slices.Compact(ordinals)
	slices.Reverse(ordinals) // the state comes first, then the pods from the highest on

	label := 0
	for _, n := range ordinals {
		label = max(label, len(rowName(name, n)))
	}
	d := &drawing{begin: begin, end: end, columns: max(width-label-4, 20), rows: map[int32][]rune{}}
	for _, s := range spans {
		d.mark(s)
	}
	from, to := begin.UTC().Format("15:04:05"), end.UTC().Format("15:04:05")
	lines := []string{fmt.Sprintf("  %-*s  %s%*s", label, "", from, d.columns-len(from), to)}
	for _, n := range ordinals {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-*s  %s", label, rowName(name, n), string(d.rows[n])), " "))
	}
	return append(lines, fmt.Sprintf("  %-*s  %c waiting   %c being replaced   %c blocked", label, "", markWaiting, markStepping, markBlocked))
}

// state is the row of the state; all others are those of pods, by ordinal.
const state = math.MaxInt32

func rowName(name string, row int32) string {
	if row == state {
		return "state"
	}
	return fmt.Sprintf("%s-%d", name, row)
}

// span is a mark in a row, from one time to another.
type span struct {
	row      int32
	mark     rune
	from, to time.Time
}

// course is what the transitions say of the state and of each pod.
func course(transitions []v1alpha1.Transition, end time.Time) []span {
	var spans []span
	step := map[int32]bool{}
	for i, t := range transitions {
		next := end
		if i+1 < len(transitions) {
			next = transitions[i+1].Time.Time
		}
		spans = append(spans, span{state, marks[t.State], t.Time.Time, next})
		now := inStep(step, t)
		if ordinals := ordinalsOf(t); t.State == v1alpha1.StateBlocked && len(ordinals) > 0 {
			now[ordinals[0]] = markBlocked
		}
		for n, mark := range now {
			spans = append(spans, span{n, mark, t.Time.Time, next})
		}
	}
	return spans
}

type drawing struct {
	begin, end time.Time
	columns    int
	rows       map[int32][]rune
}

// mark fills a row, one column at least.
func (d *drawing) mark(s span) {
	if d.rows[s.row] == nil {
		d.rows[s.row] = slices.Repeat([]rune{' '}, d.columns)
	}
	first := d.column(s.from)
	for i := first; i <= max(first, d.column(s.to)-1); i++ {
		if was := d.rows[s.row][i]; strings.IndexRune(" .=!", was) < strings.IndexRune(" .=!", s.mark) {
			d.rows[s.row][i] = s.mark
		}
	}
}

func (d *drawing) column(at time.Time) int {
	share := float64(at.Sub(d.begin)) / float64(d.end.Sub(d.begin))
	return min(max(int(share*float64(d.columns)), 0), d.columns-1)
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
