package ledger

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew; the bytes of a log are final, so only to add to it")

// The bytes of a log are final: a change here means that logs written before cannot be verified any more.
func TestGoldenBytes(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	digest := ""
	for i, tr := range golden() {
		tr.Sequence = int64(i + 1)
		digest = Chain(digest, tr)
		fmt.Fprintf(&out, "%s\n%s\n", Canonical(tr), digest)
	}
	const file = "testdata/golden.txt"
	if *rewrite {
		g.Expect(os.WriteFile(file, []byte(out.String()), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.String()).To(Equal(string(want)))
}

// golden uses every field, and what encoders disagree about.
func golden() []v1alpha1.Transition {
	adopted := transitionOf(statemachine.Event{
		Type: statemachine.Adopted, Time: begin, State: statemachine.Done, Reason: statemachine.ReasonFirstSeen,
		Partition: new(statemachine.Parked), PreviousPartition: new(int32(0)), Generation: 4, Replicas: new(int32(3)), Start: new(int32(0)),
		TemplateDigest: "5f9c", StatefulSetUID: "0b8c6a0e-6d3c-4a4e-9a43-2f6c1d9f6f10", Mode: statemachine.ModeEnforce,
		Origin: statemachine.OriginFirstSeen, Revision: "db-5f9c8d7b4f", StableRevision: "db-5f9c8d7b4f", Number: 11,
	})
	started := transitionOf(statemachine.Event{
		Type: statemachine.RolloutStarted, Time: begin.Add(1e9), State: statemachine.Waiting, Reason: statemachine.ReasonNewRevision,
		Ordinals: "1,3-4", Generation: 5, Revision: "db-6d74cb67d5", FromRevision: "db-5f9c8d7b4f", Number: 12, Starts: 2,
		Actor: "alice@example.com", Cause: `"quoted" back\slash <&> é 😀 ` + "\u2028\u2029\ufffe",
	})
	step := transitionOf(statemachine.Event{
		Type: statemachine.StepStarted, Time: begin.Add(2e9), State: statemachine.Stepping, Pod: "db-2", PodUID: "1f", Ordinals: "2",
		Message: "tab\tline\nescape\x1bdelete\x7fbad\xff", Partition: new(int32(2)), PreviousPartition: new(statemachine.Parked),
		Gates: []statemachine.GateResult{{Name: "b", Result: statemachine.GateOpen}, {Name: "a", Result: statemachine.GateBypassed, Message: "pod is down"}},
	})
	again := transitionOf(statemachine.Event{
		Type: statemachine.RolloutStarted, Time: begin.Add(3e9), State: statemachine.Waiting, Reason: statemachine.ReasonNewRevision,
		Prior: "2", Generation: 6, Revision: "db-77", FromRevision: "db-6d74cb67d5", Number: 13,
	})
	return []v1alpha1.Transition{adopted, started, step, again}
}

func TestGoldenUsesEveryField(t *testing.T) {
	used := map[string]json.RawMessage{}
	for _, tr := range golden() {
		tr.Sequence = 1
		NewWithT(t).Expect(json.Unmarshal(Canonical(tr), &used)).To(Succeed())
	}
	NewWithT(t).Expect(used).To(HaveLen(reflect.TypeFor[v1alpha1.Transition]().NumField()))
}

// RFC 8785, section 3.2.2.2, and what is left alone.
func TestCanonicalStrings(t *testing.T) {
	g := NewWithT(t)
	g.Expect(string(appendString(nil, "\"\\\b\t\n\f\r\x00\x1f/<>&é\u2028😀"))).To(Equal(`"\"\\\b\t\n\f\r\u0000\u001f/<>&é` + "\u2028" + `😀"`))
}

func TestCanonicalIsWhatJQPrints(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not here; the golden bytes are checked without it")
	}
	rapid.Check(t, func(t *rapid.T) {
		var in, want strings.Builder
		for range 20 {
			tr := transitionOf(drawEvent(t, statemachine.State{}))
			text, err := json.Marshal(tr)
			if err != nil {
				t.Fatal(err)
			}
			in.Write(text)
			want.WriteString(string(Canonical(tr)) + "\n")
		}
		jq := exec.Command("jq", "-cS", ".")
		jq.Stdin = strings.NewReader(in.String())
		got, err := jq.Output()
		if err != nil || string(got) != want.String() {
			t.Fatalf("jq: %v\n%s\nwant\n%s", err, got, want.String())
		}
	})
}

// The example in docs/ledger.md is real: it is what a reader checks an implementation with.
func TestWorkedExampleInTheDocs(t *testing.T) {
	g := NewWithT(t)
	doc, err := os.ReadFile("../../docs/ledger.md")
	g.Expect(err).NotTo(HaveOccurred())
	lines := regexp.MustCompile(`(?m)^\{"generation.*\}$`).FindAllString(string(doc), -1)
	digests := regexp.MustCompile(`(?m)^([0-9a-f]{64})$`).FindAllString(string(doc), -1)
	g.Expect(lines).To(HaveLen(2))
	g.Expect(digests).To(HaveLen(2))
	head := ""
	for i, line := range lines {
		var tr v1alpha1.Transition
		g.Expect(json.Unmarshal([]byte(line), &tr)).To(Succeed())
		g.Expect(string(Canonical(tr))).To(Equal(line))
		head = Chain(head, tr)
		g.Expect(digests[i]).To(Equal(head))
	}
}
