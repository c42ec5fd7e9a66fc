package statemachine

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

//go:generate go test . -run "TestDocs|TestRunbooks" -docs

var writeDocs = flag.Bool("docs", false, "write the generated parts of README.md and docs/")

// TestDocs holds the generated documentation against the tables of this package.
func TestDocs(t *testing.T) {
	for file, parts := range map[string]map[string]string{
		"../README.md":        {"diagram": diagram()},
		"../docs/concepts.md": {"diagram": diagram()},
		"../docs/events.md":   {"events": eventTable()},
		"../docs/reasons.md":  {"reasons": reasonTable()},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			want := string(text)
			for name, content := range parts {
				want = splice(g, want, name, content)
			}
			if *writeDocs {
				g.Expect(os.WriteFile(file, []byte(want), 0o644)).To(Succeed())
				return
			}
			g.Expect(string(text)).To(Equal(want), "run make generate")
		})
	}
}

// splice replaces what stands between the two markers of this name.
func splice(g Gomega, text, name, content string) string {
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, found := strings.Cut(text, begin)
	g.Expect(found).To(BeTrue(), "marker %q", begin)
	_, tail, found := strings.Cut(rest, end)
	g.Expect(found).To(BeTrue(), "marker %q", end)
	return head + begin + content + end + tail
}

// diagram draws the moves between states; events that stay are left out.
func diagram() string {
	var order [][2]StateName
	moves := map[[2]StateName][]string{}
	for _, l := range table {
		for _, from := range l.from {
			if l.to == same || l.to == from {
				continue
			}
			key := [2]StateName{from, l.to}
			if moves[key] == nil {
				order = append(order, key)
			}
			moves[key] = append(moves[key], string(l.event))
		}
	}
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, key := range order {
		from := string(key[0])
		if key[0] == New {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, key[1], strings.Join(moves[key], ", "))
	}
	b.WriteString("```\n")
	return b.String()
}

func eventTable() string {
	var b strings.Builder
	b.WriteString("| event | may happen in | leads to | meaning |\n|---|---|---|---|\n")
	for _, l := range table {
		var from []string
		for _, s := range l.from {
			from = append(from, string(s))
		}
		in, to := strings.Join(from, ", "), string(l.to)
		switch len(l.from) {
		case len(anyState):
			in = "any state"
		case len(anyState) + 1:
			in = "any state, or none yet"
		}
		if l.to == same {
			to = "the same state"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.event, in, to, eventMeaning[l.event])
	}
	return b.String()
}

var eventMeaning = map[EventType]string{
	Adopted:             "Pawl began to watch this StatefulSet, another one of this name, or in another mode. The partition is parked.",
	RolloutStarted:      "All pods are to be brought to one revision. A new number; ends a rollout that was not finished. The partition is parked.",
	StepStarted:         "Pods were released: the partition is lowered for them. Or a pod is repaired where it stands, with the partition unchanged.",
	StepCompleted:       "The pods of the step are at the revision and available.",
	StepAborted:         "The step is no longer in effect; the reason says why.",
	StepSkipped:         "The partition is lowered past pods that are at the revision and available already.",
	PodReplaced:         "Pawl deletes a dead pod so that it comes back at the target, once per pod and target.",
	RevisionRestored:    "status.currentRevision of a StatefulSet that was created again is set back.",
	PartitionParked:     "The partition is raised so that no pod moves before its turn.",
	Scaled:              "spec.replicas or spec.ordinals.start changed.",
	PartitionOverridden: "Someone else wrote the partition.",
	PodRegressed:        "A pod that was finished in this rollout came back at an older revision.",
	Held:                "Why the next step waits, or what the pod in flight is stuck on. It starts the pod's clocks.",
	Released:            "What held the step is gone. With the reason FirstReady: the first pod of a new StatefulSet was Ready.",
	BlockedEvent:        "Nothing goes on without help.",
	Unblocked:           "The cause is gone; no step is open.",
	StepResumed:         "The cause is gone; a step is open.",
	Settled:             "There is nothing to do after all.",
	RolloutCompleted:    "Every pod is at the revision and available. The partition is parked; the revision is the stable one now.",
	Abandoned:           "The StatefulSet is being deleted, or its label is gone.",
}

// blocks reports whether a rollout can be Blocked with this reason. What takes too long to start is told by what it waits
// for, so Starting never is.
func blocks(r Reason) bool { return reasons[r].class != classNone && r != ReasonStarting }

func blockedWhen(r Reason) string {
	switch {
	case !blocks(r):
		return "never"
	case slices.Contains(blockedAtOnce, r):
		return "at once"
	}
	return blockedWhenOf[reasons[r].class]
}

// blockedAtOnce are the soft reasons that wait for no deadline.
var blockedAtOnce = []Reason{
	ReasonPolicyNotFound, ReasonPartitionContested, ReasonRevisionUnstable, ReasonTotalOutage, ReasonSupersededPodStuck,
}

var blockedWhenOf = map[class]string{
	classTerminal: "at once", classPull: "after the grace", classCrash: "after the grace",
	classConfig: "after the grace", classEnded: "after the grace", classRefused: "after the grace",
	classSoft: "after the progress deadline",
}

func reasonTable() string {
	var names []Reason
	for r := range reasons {
		names = append(names, r)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| reason | Blocked | meaning | what to do |\n|---|---|---|---|\n")
	for _, r := range names {
		next := reasons[r].next
		if next == "" {
			next = "Nothing."
		}
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>%s | %s | %s | %s |\n", strings.ToLower(string(r)), r, blockedWhen(r), reasons[r].means, next)
	}
	return b.String()
}

// Every event and every reason is explained, and what to do is one imperative sentence with an end.
func TestEveryReasonIsExplained(t *testing.T) {
	for r, line := range reasons {
		t.Run(string(r), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(string(r)).To(MatchRegexp(`^[A-Z][A-Za-z0-9]{0,63}$`))
			g.Expect(line.means).To(HaveSuffix("."))
			if line.class != classNone {
				g.Expect(line.next).To(MatchRegexp(`^[A-Z].*\.$`), "a stall says what to do")
			}
		})
	}
	for _, l := range table {
		NewWithT(t).Expect(eventMeaning).To(HaveKey(l.event))
	}
}

// Every stall message names the pod, has an absolute time, stays short and ends in what to do, whatever the kubelet says.
func TestStallMessages(t *testing.T) {
	long := strings.Repeat("very long words of a kubelet ", 200)
	for r := range reasons {
		if r.class() == classNone {
			continue
		}
		t.Run(string(r), func(t *testing.T) {
			g := NewWithT(t)
			s := newScript()
			s.o.Name = strings.Repeat("d", 52)
			v := &view{o: &s.o, s: State{}.free()}
			pod := 2
			if r == ReasonTotalOutage || r.gate() || r == ReasonPolicyNotFound {
				pod = -1 // it is about all of them, or about none
			}
			msg := v.explainStall(r, pod, finding{reason: r, what: "has trouble (container mysqld)", detail: long}, v.waitsUntil(r, pod, finding{reason: r}))
			g.Expect(len([]rune(msg))).To(BeNumerically("<=", maxMessage), msg)
			if pod >= 0 {
				g.Expect(msg).To(HavePrefix(s.o.Name + "-2 "))
			}
			g.Expect(msg).To(MatchRegexp(`\d\d:\d\d:\d\dZ`))
			g.Expect(msg).NotTo(ContainSubstring("\n"))
			g.Expect(endsInAdvice(r, msg)).To(BeTrue(), msg)

			s.o.Name = "db" // with a name of ordinary length the container is named too, and commands are whole
			msg = v.explainStall(r, pod, finding{reason: r, what: "has trouble (container mysqld)", detail: long}, v.waitsUntil(r, pod, finding{reason: r}))
			g.Expect(endsInAdvice(r, msg)).To(BeTrue(), msg)
			if pod >= 0 && r != ReasonSupersededPodStuck {
				g.Expect(msg).To(ContainSubstring("(container mysqld)"))
			}
			if _, command, found := strings.Cut(msg, "kubectl "); found {
				g.Expect(command).To(ContainSubstring(" -n default"))
				g.Expect(command).NotTo(ContainSubstring("…"))
			}
		})
	}
}

// endsInAdvice reports whether the last thing that a message says is what to do: the sentence of the table, another one
// in the imperative, or a whole command.
func endsInAdvice(r Reason, message string) bool {
	if strings.HasSuffix(message, reasons[r].next) {
		return true
	}
	last := message[strings.LastIndex(strings.TrimSuffix(message, "."), ". ")+2:]
	return regexp.MustCompile(`^(Wait|Heal|Revert|Delete|Set|Look|Resume)\b`).MatchString(last)
}
