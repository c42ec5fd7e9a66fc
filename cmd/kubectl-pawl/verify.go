package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

type verifyCommand struct {
	source
	log    string
	output string
}

// verdict is what verify has to say of one history.
type verdict struct {
	Namespace   string `json:"namespace"`
	StatefulSet string `json:"statefulSet"`
	Verdict     string `json:"verdict"` // Whole, Empty, Fault, Lost or Gone
	First       int64  `json:"first,omitempty"`
	Newest      int64  `json:"newest,omitempty"`
	Records     int    `json:"records"`
	Logged      int    `json:"logged"` // heads of the manager's log that it contains
	Head        string `json:"head,omitempty"`
	Message     string `json:"message,omitempty"`
}

// Verdicts beside Whole, as the sentences begin.
const (
	whole = "Whole"
	empty = "Empty"
	fault = "Fault"
	lost  = "Lost"
	gone  = "Gone"
)

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
	outputFlag(cmd, &v.output, "text")
	return cmd
}

// exitGone of verify: nothing was changed, but something that the manager logged is not there.
const exitGone = 2

func (v *verifyCommand) run(ctx context.Context, name string) error {
	if err := checkOutput(v.output, "text"); err != nil {
		return err
	}
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
	verdicts, here := []verdict{}, map[types.NamespacedName]bool{}
	for _, log := range logs {
		found := judged(log, logged[log.NamespacedName])
		verdicts = append(verdicts, found)
		here[log.NamespacedName] = found.Verdict == whole
	}
	faults := count(verdicts, fault)
	if faults == 0 {
		verdicts = append(verdicts, missing(here, logged)...)
	}
	if err := v.print(verdicts); err != nil {
		return err
	}
	switch n := count(verdicts, lost, gone); {
	case faults > 0:
		return fmt.Errorf("%d of %d histories are not what Pawl wrote", faults, len(logs))
	case n > 0:
		return &answerError{exitGone, fmt.Sprintf("something that the manager logged is not here, of %d of %d histories; all that is here is whole", n, len(logged))}
	case count(verdicts, whole) == 0:
		return fmt.Errorf("nothing is recorded of %s: nothing was verified", in)
	default:
		return nil
	}
}

// count counts the histories of which that is said.
func count(verdicts []verdict, what ...string) int {
	of := map[types.NamespacedName]bool{}
	for _, d := range verdicts {
		if slices.Contains(what, d.Verdict) {
			of[types.NamespacedName{Namespace: d.Namespace, Name: d.StatefulSet}] = true
		}
	}
	return len(of)
}

func (v *verifyCommand) print(verdicts []verdict) error {
	switch {
	case structured(v.output):
		return printStructured(v.Out, v.output, map[string]any{"verdicts": verdicts})
	case v.output == "text":
		for _, d := range verdicts {
			said := d.Message
			if d.Verdict == fault || d.Verdict == lost || d.Verdict == gone {
				said = strings.ToUpper(d.Verdict) + ": " + said
			}
			fmt.Fprintf(v.Out, "%s/%s: %s\n", d.Namespace, d.StatefulSet, said)
		}
		return nil
	}
	t := newTable(5, "Namespace", "Name", "Verdict", "Transitions", "Records", "Logged", "Head", "Message")
	for _, d := range verdicts {
		transitions := fmt.Sprintf("%d-%d", d.First, d.Newest)
		if d.Newest == 0 {
			transitions = "<none>"
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{
			d.Namespace, d.StatefulSet, d.Verdict, transitions, d.Records, d.Logged, orNone(d.Head), d.Message,
		}})
	}
	return printTable(v.Out, t, v.output)
}

// missing is what the manager logged and is no longer there. It is no fault: a log that was lost began anew, and what is
// gone may be gone by its age.
func missing(here map[types.NamespacedName]bool, logged map[types.NamespacedName]*loggedLog) []verdict {
	var found []verdict
	for _, key := range slices.SortedFunc(maps.Keys(logged), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }) {
		l := logged[key]
		found = append(found, l.lost...)
		if !here[key] {
			found = append(found, verdict{
				Namespace: key.Namespace, StatefulSet: key.Name, Verdict: gone,
				Message: fmt.Sprintf("the manager logged up to %s, and nothing of it is here", slices.MaxFunc(l.heads, bySequence)),
			})
		}
	}
	return found
}

// judged verifies one history.
func judged(log *history, logged *loggedLog) verdict {
	d := verdict{Namespace: log.Namespace, StatefulSet: log.Name, Records: len(log.records), Verdict: fault}
	if logged == nil {
		logged = &loggedLog{}
	}
	pages, err := log.whole()
	heads := ledger.Heads(pages)
	if fault := ledger.Verify(log.Name, log.status(), log.pages()); fault != nil {
		d.Message = fault.Error() + logged.firstDifference(heads)
		return d
	}
	if err != nil {
		d.Message = fmt.Sprintf("read the history: %v", err)
		return d
	}
	if len(pages) == 0 {
		d.Verdict, d.Message = empty, "empty"
		return d
	}
	d.First, d.Newest = pages[0].Transitions[0].Sequence, newestOf(pages).Sequence
	if d.Logged, err = logged.in(heads, pages); err != nil {
		d.Message = err.Error()
		return d
	}
	d.Verdict, d.Head = whole, heads[d.Newest]
	d.Message = fmt.Sprintf("whole: transitions %d to %d in %d records", d.First, d.Newest, d.Records)
	if log.progress != nil {
		d.Message += " and status"
	}
	switch n := len(logged.heads); {
	case d.Logged < n:
		d.Message += fmt.Sprintf(", %d of %d heads of the manager's log: the others are older than all that is here", d.Logged, n)
	case n > 0:
		d.Message += fmt.Sprintf(", %d heads of the manager's log", n)
	}
	if d.First > 1 {
		d.Message += fmt.Sprintf("; %d older ones are gone", d.First-1)
	}
	d.Message += "; head " + d.Head
	return d
}

func newestOf(pages []v1alpha1.Page) v1alpha1.Transition { return ledger.Newest(pages[len(pages)-1]) }
