package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files in testdata anew")

// now is a minute after the log in testdata ends.
var now = time.Date(2026, 12, 2, 17, 7, 0, 0, time.UTC)

// said is what a command line prints, and its exit code. The clock stands still.
func said(t *testing.T, args ...string) (out, err string, code int) {
	var o, e bytes.Buffer
	clock := func() time.Time { return now }
	code = run(context.WithoutCancel(t.Context()), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e}, clock)
	return o.String(), e.String(), code
}

// The log in testdata was written by a manager on the lab: a good image, a bad one, its revert, and one in the middle. It
// is never written anew: logs of older versions have to be verified for ever. So was the one with gates: a bad image, its
// revert past a gate that is bypassed, and an update that a gate stops and alice forces.
const (
	log      = "testdata/db.yaml"
	gatesLog = "testdata/gates-log.yaml"
)

func TestGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"history":  {"history", "db"},
		"rollout":  {"history", "db", "--rollout", "3"},
		"running":  {"history", "db", "--rollout", "-1"},
		"verify":   {"verify"},
		"verdicts": {"verify", "-o", "table"},
		"unsealed": {"history", "db", "-o", "wide"},
		"repaired": {"history", "db", "--rollout", "3"},
		"forced":   {"history", "db", "--rollout", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from := log
			if name == "repaired" || name == "forced" {
				from = gatesLog
			}
			out, errs, code := said(t, append(args, "-f", from)...)
			g.Expect(code).To(BeZero(), errs)
			g.Expect(errs).To(BeEmpty())
			golden(g, name, out)
			if name == "history" || name == "rollout" || name == "verify" {
				doc, err := os.ReadFile("../../docs/audit.md")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(doc)).To(ContainSubstring(out), "docs/audit.md shows it")
			}
			if name != "unsealed" && name != "verify" { // -o wide is wide, a digest has 64 digits
				fits(g, out)
			}
		})
	}
}

// golden: it is what the file in testdata has.
func golden(g *WithT, name, out string) {
	file := filepath.Join("testdata", name+".golden")
	if *rewrite {
		g.Expect(os.WriteFile(file, []byte(out), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(string(want)), "go test ./cmd/kubectl-pawl -rewrite, and look at what changed")
}

// fits: no line is wider than a terminal.
func fits(g *WithT, out string) {
	for line := range strings.Lines(out) {
		g.Expect(utf8.RuneCountInString(strings.TrimRight(line, "\n"))).To(BeNumerically("<=", width), line)
	}
}

// A rollout as objects is what holds it, and no more: it can be verified and told without the rest.
func TestOneRolloutAsObjects(t *testing.T) {
	for rollout, kind := range map[string]string{"3": "RolloutRecord", "5": "RolloutProgress"} {
		g := NewWithT(t)
		part, errs, code := said(t, "history", "db", "--rollout", rollout, "-o", "yaml", "-f", log)
		g.Expect(code).To(BeZero(), errs)
		g.Expect(part).To(And(ContainSubstring("- apiVersion: pawl.dev/v1alpha1\n  kind: "+kind+"\n"), WithTransform(func(s string) int {
			return strings.Count(s, "\n  kind: ")
		}, Equal(1))))
		file := fileWith(t, "part.yaml", part)
		told, errs, code := said(t, "history", "db", "--rollout", rollout, "-f", file)
		g.Expect(code).To(BeZero(), errs)
		whole, _, _ := said(t, "history", "db", "--rollout", rollout, "-f", log)
		g.Expect(told).To(Equal(whole))
		_, errs, code = said(t, "verify", "-f", file)
		g.Expect(code).To(BeZero(), errs)
	}
}

// fifteenth is the head after transition 15, as the manager logged it.
const fifteenth = "d817a46ff2a9d5e7fa2cf474c8c2f6b8acebc96a999d5806c4625d478d8b8458"

// One changed character is found and located; so is a line that is left out, and one that is cut off if the manager's log is
// at hand.
func TestFaultsAreFound(t *testing.T) {
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	logged := `2026-12-02T17:00:00Z {"level":"info","msg":"recorded","namespace":"default","statefulset":"db","sequence":`
	for name, c := range map[string]struct{ old, new, log, want string }{
		"edited":      {"cannot pull image", "cannot pull imagf", "", "RolloutRecord db-0000000013 is damaged at transition 13: its digest does not match, so something in transitions 13 to 16 was changed\n"},
		"by the log":  {"cannot pull image", "cannot pull imagf", logged + `15,"digest":"DIGEST15"}`, "By the manager's log the first that differs is transition 15"},
		"person":      {"actor: alice", "actor: mallory", "", "is damaged at transition"},
		"new field":   {"      mode: Enforce\n", "      mode: Enforce\n      mood: fine\n", "", `unknown field`},
		"cut off":     {"", "", logged + `999,"digest":"` + strings.Repeat("a", 64) + `"}`, "cut off: the manager logged transition 999, and the history ends at"},
		"rewritten":   {"", "", logged + `2,"digest":"` + strings.Repeat("a", 64) + `"}`, "rewritten: at transition 2 the manager logged the head aaaa"},
		"another log": {"", "", "no JSON\n{\"sequence\":1}", "no line of it is one in which Pawl says that it recorded a transition"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "audit.yaml")
			text := strings.Replace(string(whole), c.old, c.new, 1)
			g.Expect(c.old == "" || text != string(whole)).To(BeTrue(), "testdata has no %q", c.old)
			g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			args := []string{"verify", "-f", file}
			if c.log != "" {
				kept := filepath.Join(t.TempDir(), "manager.jsonl")
				g.Expect(os.WriteFile(kept, []byte(strings.ReplaceAll(c.log, "DIGEST15", fifteenth)), 0o600)).To(Succeed())
				args = append(args, "--log", kept)
			}
			out, errs, code := said(t, args...)
			g.Expect(code).To(Equal(1), out)
			g.Expect(out + errs).To(ContainSubstring(c.want))
		})
	}
}

// What a program reads of a verdict: as much as a person does, and the exit code is the same.
func TestVerdictsForPrograms(t *testing.T) {
	g := NewWithT(t)
	whole, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "audit.yaml")
	for _, edited := range []bool{false, true} {
		text, verdict, exit := string(whole), "Whole", 0
		if edited {
			text, verdict, exit = strings.Replace(text, "cannot pull image", "cannot pull imagf", 1), "Fault", 1
		}
		g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		sentence, _, _ := said(t, "verify", "-f", file)
		for _, output := range []string{"json", "yaml", "wide"} {
			out, errs, code := said(t, "verify", "-f", file, "-o", output)
			g.Expect(code).To(Equal(exit), errs)
			if output == "wide" {
				g.Expect(out).To(ContainSubstring(verdict))
				continue
			}
			var read struct{ Verdicts []map[string]any }
			g.Expect(yaml.Unmarshal([]byte(out), &read)).To(Succeed())
			g.Expect(read.Verdicts).To(ConsistOf(And(HaveKeyWithValue("statefulSet", "db"), HaveKeyWithValue("verdict", verdict))))
			g.Expect(sentence).To(ContainSubstring(read.Verdicts[0]["message"].(string)))
		}
	}
}

// Each mistake is told with what is allowed.
func TestMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		`--output="xml": must be table, wide, json or yaml`:                   {"history", "-o", "xml", "-f", log},
		`--output="xml": must be text, table, wide, json or yaml`:             {"verify", "-o", "xml", "-f", log},
		`--output="": must be text, table, wide, json or yaml`:                {"wait", "db", "-o", ""},
		`--rollout=-2: must be the number of a rollout, or -1 for the newest`: {"history", "db", "--rollout", "-2", "-f", log},
		`--rollout=1: takes the NAME of a StatefulSet`:                        {"history", "--rollout", "1", "-f", log},
		`--rollout=77: default/db has the rollouts 1 to`:                      {"history", "db", "--rollout", "77", "-f", log},
		`NAME "db" and --all-namespaces: one of the two`:                      {"history", "db", "-A"},
		`nothing is recorded of a StatefulSet "nobody" in any namespace`:      {"history", "nobody", "-f", log},
		`no RolloutProgress and no RolloutRecord is in the files`:             {"verify", "-f", "testdata/no.yaml"},
		`--timeout=-1s: must not be negative`:                                 {"wait", "db", "--timeout", "-1s"},
		`accepts 1 arg(s), received 0`:                                        {"wait"},
		`the path "testdata/absent.yaml" does not exist`:                      {"verify", "-f", "testdata/absent.yaml"},
		`unknown command "roll" for "kubectl pawl"`:                           {"roll"},
		`--log: open testdata/absent.jsonl: no such file or directory`:        {"verify", "-f", log, "--log", "testdata/absent.jsonl"},
	} {
		_, errs, code := said(t, args...)
		g := NewWithT(t)
		g.Expect(code).To(Equal(1), "%v", args)
		g.Expect(errs).To(And(HavePrefix("error: "), ContainSubstring(want)), "%v", args)
	}
}
