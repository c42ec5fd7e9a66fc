package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
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
			"Exit code: 0 all is whole, 1 something is not, or cannot be read.",
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

func (v *verifyCommand) run(ctx context.Context, name string) error {
	// The manager's log first: a line is written after its transition is stored, so all that it knows is there by then.
	var kept map[types.NamespacedName][]anchor
	var err error
	if v.log != "" {
		if kept, err = v.anchors(); err != nil {
			return err
		}
	}
	logs, err := v.read(ctx, name)
	if err != nil {
		return err
	}
	faults := 0
	for _, log := range logs {
		said, err := proved(log, kept[log.NamespacedName])
		if err != nil {
			faults++
			fmt.Fprintf(v.Out, "%s/%s: FAULT: %v\n", log.Namespace, log.Name, err)
			continue
		}
		fmt.Fprintf(v.Out, "%s/%s: %s\n", log.Namespace, log.Name, said)
		delete(kept, log.NamespacedName)
	}
	if faults > 0 {
		return fmt.Errorf("%d of %d histories are not what Pawl wrote", faults, len(logs))
	}
	if name == "" {
		v.tellOfLost(logs, kept)
	}
	return nil
}

// tellOfLost names what the manager wrote of and nothing is left of. That is no fault: records may be deleted once they are
// old, and a file or a namespace need not hold all.
func (v *verifyCommand) tellOfLost(logs []*history, kept map[types.NamespacedName][]anchor) {
	for _, log := range logs {
		delete(kept, log.NamespacedName)
	}
	var names []string
	for key := range kept {
		names = append(names, key.String())
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(v.Out, "%s: in the log of the manager, and not here\n", name)
	}
}

// proved verifies one history and says how much that was.
func proved(log *history, kept []anchor) (string, error) {
	if err := ledger.Verify(log.Name, log.status(), log.pages()); err != nil {
		return "", fmt.Errorf("%w%s", err, firstDifference(log, kept))
	}
	pages, err := log.whole()
	if err != nil {
		return "", fmt.Errorf("read the history: %w", err)
	}
	if len(pages) == 0 {
		return "empty", nil
	}
	heads := ledger.Heads(pages)
	first, newest := pages[0].Transitions[0], newestOf(pages)
	for _, a := range kept {
		if err := a.in(heads, first.Sequence, newest, pages); err != nil {
			return "", err
		}
	}
	said := fmt.Sprintf("whole: transitions %d to %d in %d records", first.Sequence, newest.Sequence, len(log.records))
	if log.progress != nil {
		said += " and status"
	}
	if len(kept) > 0 {
		said += fmt.Sprintf(", %d heads of the manager's log", len(kept))
	}
	if first.Sequence > 1 {
		said += fmt.Sprintf("; %d older ones are gone", first.Sequence-1)
	}
	return said + "; head " + heads[newest.Sequence], nil
}

// firstDifference is the first transition that is not the one that the manager logged: a page has one digest for all of its
// transitions, and cannot tell.
func firstDifference(log *history, kept []anchor) string {
	heads := ledger.Heads(log.pages())
	differs := int64(0)
	for _, a := range kept {
		if digest, there := heads[a.Sequence]; there && digest != a.Digest && (differs == 0 || a.Sequence < differs) {
			differs = a.Sequence
		}
	}
	if differs == 0 {
		return ""
	}
	return fmt.Sprintf(". By the manager's log the first that differs is transition %d", differs)
}

func newestOf(pages []v1alpha1.Page) v1alpha1.Transition {
	transitions := pages[len(pages)-1].Transitions
	return transitions[len(transitions)-1]
}

// anchor is the head of a chain as the manager logged it.
type anchor struct {
	Sequence  int64  `json:"sequence"`
	Digest    string `json:"digest"`
	Namespace string `json:"namespace"`
	Name      string `json:"statefulset"`
}

// in proves that the history has this head.
func (a anchor) in(heads map[int64]string, first int64, newest v1alpha1.Transition, pages []v1alpha1.Page) error {
	switch digest, there := heads[a.Sequence]; {
	case a.Sequence < first:
		return nil // its record is gone by now
	case digest == a.Digest:
		return nil
	case !there:
		return fmt.Errorf("cut off: the manager logged transition %d, and the history ends at %d (%s)", a.Sequence, newest.Sequence, newest.Time.UTC().Format("2006-01-02 15:04:05Z"))
	default:
		return fmt.Errorf("rewritten: at transition %d the manager logged the head %s, and the history has %s%s", a.Sequence, a.Digest, digest, restarted(pages, a.Sequence))
	}
}

// restarted says where a history began anew, if that explains why it is another one: the RolloutProgress was deleted, and
// what was in no record yet went with it.
func restarted(pages []v1alpha1.Page, sequence int64) string {
	for _, page := range pages {
		for _, t := range page.Transitions {
			if t.Sequence <= sequence && t.Reason == string(statemachine.ReasonLogRestarted) {
				return fmt.Sprintf(". The RolloutProgress was deleted, or lost, before transition %d (%s); what was in no record went with it",
					t.Sequence, t.Time.UTC().Format("2006-01-02 15:04:05Z"))
			}
		}
	}
	return ""
}

// anchors reads the heads out of the manager's log.
func (v *verifyCommand) anchors() (map[types.NamespacedName][]anchor, error) {
	in := io.NopCloser(v.In)
	if v.log != "-" {
		f, err := os.Open(v.log)
		if err != nil {
			return nil, fmt.Errorf("--log: %w", err)
		}
		in = f
	}
	defer func() { _ = in.Close() }()
	found := map[types.NamespacedName][]anchor{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		text := lines.Text()
		at := strings.IndexByte(text, '{') // log pipelines put a time before it
		var a anchor
		if at < 0 || json.Unmarshal([]byte(text[at:]), &a) != nil || a.Sequence == 0 || len(a.Digest) != 64 {
			continue
		}
		key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
		found[key] = append(found[key], a)
		n++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--log=%s: %w", v.log, err)
	}
	if n == 0 {
		return nil, fmt.Errorf("--log=%s: no line of it is one in which Pawl says that it recorded a transition; it has to be the manager's log with --log-format json", v.log)
	}
	return found, nil
}
