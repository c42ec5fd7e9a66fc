package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"pawl.dev/pawl/api/v1alpha1"
)

type historyCommand struct {
	source
	rollout int64
	output  string
}

func newHistory(p *plugin) *cobra.Command {
	h := &historyCommand{source: source{plugin: p}}
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "Show the rollouts of a StatefulSet, or the transitions of one of them",
		Long: "Show the rollouts of a StatefulSet, or of all: when each began, how long it took, how it ended, where it led, and who\n" +
			"changed the template. With --rollout, every transition of one: what happened to which pod, when, and why.\n\n" +
			"It reads RolloutRecords, which nobody can change, and the status of the RolloutProgress for what is not sealed yet.\n" +
			"Times are UTC.",
		Example: "  # The rollouts of the StatefulSet db\n  kubectl pawl history db\n\n" +
			"  # What happened in the newest one\n  kubectl pawl history db --rollout -1\n\n" +
			"  # Keep all there is, and read it elsewhere\n  kubectl pawl history -A -o yaml > audit.yaml\n  kubectl pawl history -f audit.yaml",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return h.run(cmd.Context(), strings.Join(args, "")) },
	}
	h.addFlags(cmd)
	cmd.Flags().Int64Var(&h.rollout, "rollout", 0, "show the transitions of the rollout with this number; -1 is the newest")
	outputFlag(cmd, &h.output, "table")
	return cmd
}

func (h *historyCommand) run(ctx context.Context, name string) error {
	if err := checkOutput(h.output, "table"); err != nil {
		return err
	}
	if h.rollout < -1 {
		return fmt.Errorf("--rollout=%d: must be the number of a rollout, or -1 for the newest", h.rollout)
	}
	if h.rollout != 0 && name == "" {
		return fmt.Errorf("--rollout=%d: takes the NAME of a StatefulSet", h.rollout)
	}
	in, err := h.scope(name)
	if err != nil {
		return err
	}
	logs, err := h.read(ctx, in)
	if err != nil {
		return err
	}
	if h.rollout != 0 && len(logs) > 1 {
		return fmt.Errorf("--rollout=%d: there is a %s and a %s: choose one with --namespace", h.rollout, logs[0], logs[1])
	}
	switch asObjects := structured(h.output); {
	case len(logs) == 0 && !asObjects:
		fmt.Fprintf(h.ErrOut, "Nothing is recorded of %s.\n", in)
		return nil
	case h.rollout != 0 && len(logs) > 0:
		return h.one(logs[0], asObjects)
	case asObjects:
		return h.objects(logs)
	default:
		return h.table(logs, name == "")
	}
}

// chaptersOf reads on when the status is damaged, and says so.
func (h *historyCommand) chaptersOf(log *history) []chapter {
	pages, err := log.whole()
	if err != nil {
		fmt.Fprintf(h.ErrOut, "warning: %s/%s: %v. What is shown is in RolloutRecords.\n", log.Namespace, log.Name, err)
	}
	return chapters(pages, log.progress != nil && err == nil)
}

func (h *historyCommand) table(logs []*history, named bool) error {
	var keys []string                                              // what tells the histories apart
	if h.all || logs[0].Namespace != logs[len(logs)-1].Namespace { // they are sorted
		keys = append(keys, "Namespace")
	}
	if named {
		keys = append(keys, "Name")
	}
	columns := append(slices.Clone(keys), "Rollout", "Started", "Took", "Outcome", "To", "By", "From", "Reason", "Steps", "Blocked", "Cause")
	t := newTable(len(keys)+6, columns...)
	for _, log := range logs {
		which := map[string]any{"Namespace": log.Namespace, "Name": log.Name}
		var first []any
		for _, key := range keys {
			first = append(first, which[key])
		}
		t.Rows = append(t.Rows, h.rows(log, first)...)
	}
	if len(t.Rows) == 0 {
		fmt.Fprintln(h.ErrOut, "No rollout is recorded here.")
		return nil
	}
	return printTable(h.Out, t, h.output)
}

// rows are the rollouts of one history.
func (h *historyCommand) rows(log *history, first []any) []metav1.TableRow {
	var rows []metav1.TableRow
	for _, c := range h.chaptersOf(log) {
		if c.rollout != nil {
			rows = append(rows, metav1.TableRow{Cells: slices.Concat(first, h.row(&c))})
		}
	}
	return rows
}

func (h *historyCommand) row(c *chapter) []any {
	r := c.rollout
	started := "2006-01-02 15:04Z"
	if h.output == "wide" {
		started = stamp
	}
	return []any{
		r.Number, r.StartedAt.UTC().Format(started), c.took(h.now()), c.outcome(), r.ToRevision, orNone(r.StartedBy),
		orNone(r.FromRevision), r.Reason, ptr.Deref(r.Steps, 0), short(seconds(r.BlockedSeconds)), orNone(r.Cause),
	}
}

// orNone shows that something is unset, as kubectl does.
func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// objects prints what was read as it is, so that it can be kept, and verified elsewhere.
func (h *historyCommand) objects(logs []*history) error {
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	add := func(o runtime.Object) { list.Items = append(list.Items, runtime.RawExtension{Object: o}) }
	for _, log := range logs {
		if log.progress != nil {
			add(log.progress)
		}
		for i := range log.records {
			add(&log.records[i])
		}
	}
	return printObject(h.Out, list, h.output)
}

// find returns the rollout that was asked for, with what happened since the one before; the newest also with what happened
// after it.
func (h *historyCommand) find(log *history) (*chapter, error) {
	var numbers []int64
	var found *chapter
	var between []v1alpha1.Page
	all := h.chaptersOf(log)
	for i := range all {
		if all[i].rollout == nil {
			between = append(between, all[i].pages...)
			continue
		}
		numbers = append(numbers, all[i].rollout.Number)
		if all[i].rollout.Number == h.rollout || h.rollout == -1 {
			found = &all[i]
			found.before = between
		}
		between = nil
	}
	if found != nil && found.rollout.Number == numbers[len(numbers)-1] {
		found.after = between
	}
	switch {
	case found != nil:
		return found, nil
	case len(numbers) == 0:
		return nil, fmt.Errorf("no rollout of %s/%s is recorded", log.Namespace, log.Name)
	default:
		return nil, fmt.Errorf("--rollout=%d: %s/%s has the rollouts %d to %d", h.rollout, log.Namespace, log.Name, numbers[0], numbers[len(numbers)-1])
	}
}
