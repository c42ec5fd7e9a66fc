package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/utils/ptr"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// width of what is printed of one rollout: that of a terminal.
const width = 80

// one prints a rollout: what is known of it as a whole, a picture of its course, and each transition; or the objects that
// hold it.
func (h *historyCommand) one(log *history, asObjects bool) error {
	c, err := h.find(log)
	if err != nil {
		return err
	}
	if asObjects {
		return h.objects([]*history{c.held(log)})
	}
	h.summary(log, c)
	fmt.Fprintln(h.Out)
	for _, line := range timeline(log.Name, c.transitions, c.end(h.now()), width) {
		fmt.Fprintln(h.Out, line)
	}
	fmt.Fprintln(h.Out)
	return h.transitions(c)
}

func (h *historyCommand) summary(log *history, c *chapter) {
	r := c.rollout
	fmt.Fprintf(h.Out, "Rollout %d of %s/%s: %s\n", r.Number, log.Namespace, log.Name, c.outcome())
	say := func(what, format string, args ...any) {
		fmt.Fprintf(h.Out, "  %-9s %s\n", what, fmt.Sprintf(format, args...))
	}
	if r.FromRevision != "" {
		say("From", "%s", r.FromRevision)
	}
	say("To", "%s (%s)", r.ToRevision, r.Reason)
	by := ""
	if r.StartedBy != "" {
		by = " by " + r.StartedBy
	}
	say("Started", "%s%s", r.StartedAt.UTC().Format(stamp), by)
	if r.Cause != "" {
		say("Cause", "%s", r.Cause)
	}
	if r.Outcome != "" {
		say("Finished", "%s", r.FinishedAt.UTC().Format(stamp))
	}
	say("Took", "%s; pods replaced by steps: %d; Blocked for %s", c.took(h.now()), ptr.Deref(r.Steps, 0), short(seconds(r.BlockedSeconds)))
	for i, name := range c.records(log) {
		what := ""
		if i == 0 {
			what = "In"
		}
		say(what, "%s", name)
	}
}

// transitions prints each with what it says beside its columns below it.
func (h *historyCommand) transitions(c *chapter) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tTIME (UTC)\tAFTER\tEVENT\tREASON\tPOD\tSTATE")
	pages := slices.Concat(c.before, c.pages, c.after)
	var all []v1alpha1.Transition
	for _, page := range pages {
		all = append(all, page.Transitions...)
	}
	began := all[0].Time.Time
	before := began
	for _, t := range all {
		at := t.Time.UTC().Format("15:04:05")
		if days := int(t.Time.UTC().Truncate(24*time.Hour).Sub(began.UTC().Truncate(24*time.Hour)).Hours() / 24); days > 0 {
			at += fmt.Sprintf(" +%dd", days)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Sequence, at, short(t.Time.Sub(before)), t.Type, t.Reason, pod(t), t.State)
		before = t.Time.Time
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	fmt.Fprintln(h.Out, strings.TrimRight(lines[0], " "))
	heads := ledger.Heads(pages)
	var step time.Time
	for i, t := range all {
		fmt.Fprintln(h.Out, strings.TrimRight(lines[i+1], " "))
		for _, d := range append(details(t), stepTook(step, t)...) {
			wrapped(h.Out, d)
		}
		step = stepAfter(step, t)
		if h.output == "wide" {
			for _, d := range identities(t) {
				wrapped(h.Out, d)
			}
			fmt.Fprintf(h.Out, "%s%s\n", indent, "digest "+heads[t.Sequence])
		}
	}
	return nil
}

// ends reports whether a transition is the end of a step.
func ends(t v1alpha1.Transition) bool {
	return t.Type == string(statemachine.StepCompleted) || t.Type == string(statemachine.StepAborted)
}

// stepTook is how long the step took that a transition ends, if that is known.
func stepTook(began time.Time, t v1alpha1.Transition) []string {
	if began.IsZero() || !ends(t) {
		return nil
	}
	return []string{"the step took " + short(t.Time.Sub(began))}
}

// stepAfter is when the step began that is open after a transition; zero if none is, or if that is not known.
func stepAfter(began time.Time, t v1alpha1.Transition) time.Time {
	switch {
	case ends(t), t.Type == string(statemachine.RolloutStarted), t.Type == string(statemachine.Adopted), t.Type == string(statemachine.Abandoned):
		return time.Time{}
	case t.Type == string(statemachine.StepStarted) && began.IsZero(): // others of the same step may follow
		return t.Time.Time
	default:
		return began
	}
}

// pod is what a transition is about: a pod, or several by ordinal.
func pod(t v1alpha1.Transition) string {
	if t.Pod == "" {
		return t.Ordinals
	}
	return t.Pod
}

// details are what a transition says beside what stands in columns.
func details(t v1alpha1.Transition) []string {
	lines := []string{t.Message, leadsTo(t), person(t), cause(t)}
	if t.Pod != "" && strings.ContainsAny(t.Ordinals, "-,") {
		lines = append(lines, "pods "+t.Ordinals)
	}
	lines = append(lines, written(t))
	if t.Replicas != nil && t.Type == string(statemachine.Scaled) {
		lines = append(lines, fmt.Sprintf("replicas %d", *t.Replicas))
	}
	for _, gate := range t.Gates {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("gate %s %s: %s", gate.Name, gate.Result, gate.Message), ": "))
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// leadsTo and person leave out what the message has.
func leadsTo(t v1alpha1.Transition) string {
	switch {
	case t.Revision == "", strings.Contains(t.Message, t.Revision) && strings.Contains(t.Message, t.FromRevision):
		return ""
	case t.FromRevision == "":
		return "to " + t.Revision
	default:
		return "to " + t.Revision + " from " + t.FromRevision
	}
}

func person(t v1alpha1.Transition) string {
	if t.Actor == "" || strings.Contains(t.Message, " by "+t.Actor) {
		return ""
	}
	return "by " + t.Actor
}

func cause(t v1alpha1.Transition) string {
	if t.Cause == "" {
		return ""
	}
	return "cause: " + t.Cause
}

// written is what became of the partition.
func written(t v1alpha1.Transition) string {
	switch {
	case t.Partition == nil:
		return ""
	case t.PreviousPartition == nil, *t.PreviousPartition == *t.Partition:
		return "partition " + partition(*t.Partition)
	default:
		return "partition from " + partition(*t.PreviousPartition) + " to " + partition(*t.Partition)
	}
}

// identities are what a person seldom asks for.
func identities(t v1alpha1.Transition) []string {
	var lines []string
	for _, id := range []struct{ what, is string }{
		{"StatefulSet uid", t.StatefulSetUID}, {"pod uid", t.PodUID}, {"template digest", t.TemplateDigest},
		{"stable revision", t.StableRevision}, {"mode", string(t.Mode)}, {"origin", string(t.Origin)},
	} {
		if id.is != "" {
			lines = append(lines, id.what+" "+id.is)
		}
	}
	if t.Generation != 0 {
		lines = append(lines, fmt.Sprintf("generation %d", t.Generation))
	}
	return lines
}

func partition(p int32) string {
	if p == statemachine.Parked {
		return "parked"
	}
	return fmt.Sprint(p)
}

const indent = "      "

// wrapped prints a text below its transition, in lines that fit.
func wrapped(out io.Writer, text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(indent+line+" "+word)) > width {
			fmt.Fprintln(out, indent+line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(out, indent+line)
}
