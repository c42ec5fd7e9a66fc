package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func TestRowsAreReadAsKubectlPrintsThem(t *testing.T) {
	g := NewWithT(t)
	r, ok := parseRow("db     Blocked    ImagePullBackOff   db-2   0/3       4m21s")
	g.Expect(ok).To(BeTrue())
	g.Expect(r).To(Equal(row{"db", "Blocked", "ImagePullBackOff", "db-2", "0/3", "4m21s"}))
	r, ok = parseRow("db     Done    Completed         3/3       0s")
	g.Expect(ok).To(BeTrue())
	g.Expect(r).To(Equal(row{"db", "Done", "Completed", "", "3/3", "0s"}))
	for _, line := range []string{"NAME   STATE   REASON   POD   UPDATED   SINCE", "db   ", ""} {
		_, ok = parseRow(line)
		g.Expect(ok).To(BeFalse(), line)
	}
}

func TestOnlyLastingRowsAreCompared(t *testing.T) {
	var r rows
	for _, seen := range []row{
		{"db", "Done", "Created", "", "0/3", "0s"},
		{"db", "Waiting", "BringUp", "", "1/3", "0s"},
		{"db", "Done", "Completed", "", "3/3", "0s"},
		{"db", "Done", "Completed", "", "3/3", "9s"},
		{"db", "Stepping", "ErrImagePull", "db-2", "0/3", "0s"},
		{"db", "Stepping", "ImagePullBackOff", "db-2", "0/3", "0s"},
		{"db", "Blocked", "ImagePullBackOff", "db-2", "0/3", "0s"},
	} {
		r.add(seen)
	}
	NewWithT(t).Expect(r).To(HaveExactElements(
		MatchRegexp(`^Done +Completed +3/3$`),
		MatchRegexp(`^Stepping +ErrImagePull\|ImagePullBackOff +db-2 +0/3$`),
		MatchRegexp(`^Blocked +ErrImagePull\|ImagePullBackOff +db-2 +0/3$`),
	))
}

func TestADifferenceIsShownInItsPlace(t *testing.T) {
	g := NewWithT(t)
	g.Expect(diff([]string{"a", "b", "c"}, []string{"a", "x", "c", "d"})).To(Equal("  a\n- b\n+ x\n  c\n+ d\n"))
	g.Expect(rows(strings.Split(strings.TrimSpace(golden), "\n")).check()).To(Succeed())
	g.Expect(rows{"a"}.check()).To(MatchError(ContainSubstring("\n+ a\n")))
}

func TestProseIsWrapped(t *testing.T) {
	NewWithT(t).Expect(wrap("one two  three\nfour", 9)).To(Equal([]string{"one two", "three", "four"}))
}

// The whole demo, for whoever has no make at hand: PAWL_DEMO=1 go test ./e2e/demo
func TestDemo(t *testing.T) {
	if os.Getenv("PAWL_DEMO") == "" {
		t.Skip("PAWL_DEMO is not set; make demo does the same")
	}
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(run(t.Context(), &page{out: &out}, false)).To(Succeed())
	for line := range strings.Lines(out.String()) {
		g.Expect(utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))).To(BeNumerically("<=", 100), line)
	}
}
