package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const goldenFile = "e2e/demo/testdata/rows.golden"

//go:embed testdata/rows.golden
var golden string

// rows are the distinct rows that were seen, as far as they do not depend on who was faster.
type rows []string

// add takes a row up, unless it is a passing one or says the same as the one before.
func (r *rows) add(seen row) {
	if line := summary(seen); lasting(seen) && (len(*r) == 0 || (*r)[len(*r)-1] != line) {
		*r = append(*r, line)
	}
}

// lasting: a pod is on its way, there is a verdict, or the rollout has ended. The rest lasts as long as Pawl and the
// StatefulSet controller need to see each other's writes, and goes by unseen when one write tells both: here nothing has
// to wait but for that, and Done/Created is the moment before the first rollout.
func lasting(r row) bool { return r.state != "Waiting" && r.reason != "Created" }

// summary is what is compared. A kubelet, and the lab for it, publishes ErrImagePull and ImagePullBackOff in turn; which
// of them Pawl meets first is chance, and both are the truth.
func summary(r row) string {
	reason := r.reason
	if reason == "ErrImagePull" || reason == "ImagePullBackOff" {
		reason = "ErrImagePull|ImagePullBackOff"
	}
	return strings.TrimRight(fmt.Sprintf("%-9s %-30s %-5s %s", r.state, reason, r.pod, r.updated), " ")
}

// check compares with the golden file.
func (r rows) check() error {
	want := strings.Split(strings.TrimSpace(golden), "\n")
	if strings.Join(r, "\n") == strings.Join(want, "\n") {
		return nil
	}
	return errors.New("the rows were not those of " + goldenFile + " (- expected, + seen):\n" + diff(want, r))
}

func (r rows) save() error {
	if err := os.WriteFile(goldenFile, []byte(strings.Join(r, "\n")+"\n"), 0o644); err != nil { //nolint:gosec // no secret
		return fmt.Errorf("write the golden file: %w", err)
	}
	return nil
}

// diff marks what is missing and what is too much, from the longest common sequence of lines.
func diff(want, got []string) string {
	var b strings.Builder
	common := commonLengths(want, got)
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			b.WriteString("  " + want[i] + "\n")
			i, j = i+1, j+1
		case i < len(want) && (j == len(got) || common[i+1][j] >= common[i][j+1]):
			b.WriteString("- " + want[i] + "\n")
			i++
		default:
			b.WriteString("+ " + got[j] + "\n")
			j++
		}
	}
	return b.String()
}

// commonLengths tells for each pair of tails how many lines they have in common, in order.
func commonLengths(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			n[i][j] = max(n[i+1][j], n[i][j+1])
			if x == y {
				n[i][j] = n[i+1][j+1] + 1
			}
		}
	}
	return n
}
