package controllers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/statemachine"
)

//go:generate go test . -run "TestReliability|TestMetricsAreListed" -docs

var writeDocs = flag.Bool("docs", false, "write the generated parts of docs/")

// TestReliability holds the tables of docs/reliability.md against what the cases and recordings give.
func TestReliability(t *testing.T) {
	g := NewWithT(t)
	upToDate(g, "../docs/reliability.md", map[string]string{"cases": caseTable(g), "recordings": recordingTable(t, g)})
}

// upToDate compares the generated parts of a file, by name, with what they should be; or writes them.
func upToDate(g Gomega, file string, parts map[string]string) {
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	want := string(text)
	for name, content := range parts {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- end of "+name+" -->"
		head, rest, found := strings.Cut(want, begin)
		g.Expect(found).To(BeTrue(), "marker %q", begin)
		_, tail, found := strings.Cut(rest, end)
		g.Expect(found).To(BeTrue(), "marker %q", end)
		want = head + begin + content + end + tail
	}
	if *writeDocs {
		g.Expect(os.WriteFile(file, []byte(want), 0o644)).To(Succeed())
		return
	}
	g.Expect(string(text)).To(Equal(want), "run make generate")
}

var (
	caseVerdict = regexp.MustCompile(`^\+(\S+) Blocked (\w+)`)
	caseEnd     = regexp.MustCompile(`^= (\w+) (\w*)`)
	caseRun     = regexp.MustCompile(`^(begin|# )`)
)

// caseTable lists the cases with what each of their variants comes to: the first Blocked and its time since the rollout
// began, or the state at the end.
func caseTable(g Gomega) string {
	files, err := filepath.Glob("testdata/cases/*.txt")
	g.Expect(err).NotTo(HaveOccurred())
	var b strings.Builder
	b.WriteString("| case | what comes of its variants |\n|---|---|\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(string(text), "\n")
		title, _, _ := strings.Cut(strings.TrimPrefix(lines[0], "# "), ":")
		var all []string
		for variant := range variants(lines) {
			if v := outcome(variant); v != "" && !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt")[4:], "_", " ")
		fmt.Fprintf(&b, "| %s %s | %s |\n", title, name, strings.Join(all, "; "))
	}
	return b.String()
}

// variants yields the lines of a case from one comment or fresh start to the next.
func variants(lines []string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		from := 0
		for i, l := range lines {
			if i > from && caseRun.MatchString(l) {
				if !yield(lines[from:i]) {
					return
				}
				from = i
			}
		}
		yield(lines[from:])
	}
}

func outcome(lines []string) string {
	end := ""
	for _, l := range lines {
		if m := caseVerdict.FindStringSubmatch(l); m != nil {
			return fmt.Sprintf("Blocked %s at %s", m[2], rounded(m[1]))
		}
		if m := caseEnd.FindStringSubmatch(l); m != nil {
			end = strings.TrimSpace(m[1] + " " + m[2])
		}
	}
	return end
}

func rounded(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil {
		return s
	}
	return d.Round(time.Second).String()
}

// recordingTable lists the recordings of single pods with the verdict and its times, in seconds since the pod was created.
func recordingTable(t *testing.T, g Gomega) string {
	var b strings.Builder
	b.WriteString("| recording | verdict | shown at | Blocked at | step complete at |\n|---|---|---|---|---|\n")
	for _, name := range single(t) {
		r, err := play(name, 0, 700, 0)
		g.Expect(err).NotTo(HaveOccurred())
		verdict, blocked := r.verdict()
		shown := 0.0
		for _, e := range r.log {
			if (e.Type == statemachine.Held || e.Type == statemachine.BlockedEvent) && (verdict == "" || sameTrouble(e.Reason, verdict)) {
				verdict, shown = e.Reason, e.Time.Sub(epoch).Seconds()
				break
			}
		}
		if verdict == "" {
			verdict = "none"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, verdict, seconds(shown), seconds(blocked), seconds(r.completed()))
	}
	return b.String()
}

func seconds(t float64) string {
	if t == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", t)
}
