package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

type verifyCommand struct {
	source
	log string
}

func newVerify(p *plugin) *cobra.Command {
	v := &verifyCommand{source: source{plugin: p}}
	cmd := &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Prove that the history is what Pawl wrote: nothing edited, left out, reordered or cut off",
		Long: "Prove that the history of a StatefulSet, or of all, is what Pawl wrote. Every transition is hashed again, the pages have\n" +
			"to follow one another without a gap, each transition has to be possible after the one before it, and status and the\n" +
			"summary of each record have to say what the transitions say. The first fault is told with its place.\n\n" +
			"The chain alone cannot know that its newest end was cut off, or all of it rewritten. The log of the manager has the\n" +
			"head of the chain with every transition: with --log, the history has to contain every head that is in it.\n\n" +
			"Exit code: 0 all is whole, 1 something is not, or cannot be read, or there is nothing to verify, 2 nothing was changed,\n" +
			"but something that is in the log of the manager is not here: lost with a RolloutProgress, or deleted with its records.",
		Example: "  # All there is\n  kubectl pawl verify -A\n\n" +
			"  # Against the log of the manager, as a log pipeline kept it\n  kubectl pawl verify -A --log manager.jsonl\n\n" +
			"  # Without a cluster\n  kubectl pawl verify -f audit.yaml",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), strings.Join(args, "")) },
	}
	v.addFlags(cmd)
	cmd.Flags().StringVar(&v.log, "log", "", "a file with the JSON log lines of the manager, other lines are skipped; - is standard input")
	return cmd
}

// exitGone of verify: nothing was changed, but something that the manager logged is not there.
const exitGone = 2

func (v *verifyCommand) run(ctx context.Context, name string) error {
	in, err := v.scope(name)
	if err != nil {
		return err
	}
	// The manager's log first: a line is written after its transition is stored, so all that it knows is there by then.
	var logged map[types.NamespacedName]*loggedLog
	if v.log != "" {
		if logged, err = v.logged(in); err != nil {
			return err
		}
	}
	logs, err := v.read(ctx, in)
	if err != nil {
		return err
	}
	faults, here := 0, map[types.NamespacedName]bool{}
	for _, log := range logs {
		said, err := proved(log, logged[log.NamespacedName])
		switch {
		case err != nil:
			faults++
			said = "FAULT: " + err.Error()
		case said == "":
			said = "empty"
		default:
			here[log.NamespacedName] = true
		}
		fmt.Fprintf(v.Out, "%s: %s\n", log, said)
	}
	if faults > 0 {
		return fmt.Errorf("%d of %d histories are not what Pawl wrote", faults, len(logs))
	}
	if gone := v.tellOfLost(here, logged); gone > 0 {
		return &answerError{exitGone, fmt.Sprintf("something that the manager logged is not here, of %d of %d histories; all that is here is whole", gone, len(logged))}
	}
	if len(here) == 0 {
		return fmt.Errorf("nothing is recorded of %s: nothing was verified", in)
	}
	return nil
}

// tellOfLost tells what the manager logged and is no longer there, and returns of how many histories that is. It is no
// fault: a log that was lost began anew, and what is gone may be gone by its age.
func (v *verifyCommand) tellOfLost(here map[types.NamespacedName]bool, logged map[types.NamespacedName]*loggedLog) int {
	gone := 0
	for _, key := range slices.SortedFunc(maps.Keys(logged), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }) {
		l := logged[key]
		for _, lost := range l.lost {
			fmt.Fprintf(v.Out, "%s: LOST: %s\n", key, lost)
		}
		if !here[key] {
			fmt.Fprintf(v.Out, "%s: GONE: the manager logged up to %s, and nothing of it is here\n", key, slices.MaxFunc(l.heads, bySequence))
		}
		if len(l.lost) > 0 || !here[key] {
			gone++
		}
	}
	return gone
}

// proved verifies one history and says how much that was; nothing if it is empty.
func proved(log *history, logged *loggedLog) (string, error) {
	if logged == nil {
		logged = &loggedLog{}
	}
	pages, err := log.whole()
	heads := ledger.Heads(pages)
	if fault := ledger.Verify(log.Name, log.status(), log.pages()); fault != nil {
		return "", fmt.Errorf("%w%s", fault, logged.firstDifference(heads))
	}
	if err != nil {
		return "", fmt.Errorf("read the history: %w", err)
	}
	if len(pages) == 0 {
		return "", nil
	}
	checked, err := logged.in(heads, pages)
	if err != nil {
		return "", err
	}
	first, newest := pages[0].Transitions[0], newestOf(pages)
	said := fmt.Sprintf("whole: transitions %d to %d in %d records", first.Sequence, newest.Sequence, len(log.records))
	if log.progress != nil {
		said += " and status"
	}
	switch n := len(logged.heads); {
	case checked < n:
		said += fmt.Sprintf(", %d of %d heads of the manager's log: the others are older than all that is here", checked, n)
	case n > 0:
		said += fmt.Sprintf(", %d heads of the manager's log", n)
	}
	if first.Sequence > 1 {
		said += fmt.Sprintf("; %d older ones are gone", first.Sequence-1)
	}
	return said + "; head " + heads[newest.Sequence], nil
}

func newestOf(pages []v1alpha1.Page) v1alpha1.Transition { return ledger.Newest(pages[len(pages)-1]) }
