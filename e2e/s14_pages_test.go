package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// No page is without its story: every command under "What to do" is run by one, and every way to break the glass is
// taken by one.
func TestS14RunbooksAreFollowed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	// Pages without a way to break the glass, and why.
	unbroken := map[string]string{
		"AdmissionNotInForce":   "it stops nothing",
		"GateErrors":            "it sends to the page of the reason",
		"RolloutWaitingTooLong": "it sends to the page of the reason",
		"UnsupportedStrategy":   "Pawl holds nothing back",
	}
	followed, broken := map[string][]int{}, []string(nil)
	for _, c := range troubles() {
		followed[c.page()] = append(followed[c.page()], partsOf(g, c.page(), c.parts)...)
	}
	for page, parts := range followedElsewhere(g) {
		followed[page] = append(followed[page], partsOf(g, page, parts)...)
	}
	for _, c := range glasses() {
		begin, unstick, handBack := c.commands(g)
		broken = append(broken, begin, unstick, handBack)
	}
	files, err := filepath.Glob("../docs/runbooks/*.md")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		page := strings.TrimSuffix(filepath.Base(file), ".md")
		for i, script := range runbook(g, page, "What to do") {
			g.Expect(followed[page]).To(ContainElement(i), "no story of %s runs\n%s", page, script)
		}
		if unbroken[page] != "" {
			delete(unbroken, page)
			continue
		}
		g.Expect(broken).To(ContainElements(runbook(g, page, "Break glass")), "no story breaks the glass of %s", page)
	}
	g.Expect(unbroken).To(BeEmpty(), "there is no such page")
}

// followedElsewhere are the pages that other stories follow, and which commands of them; none is all.
func followedElsewhere(g Gomega) map[string][]int {
	files, err := filepath.Glob("*_test.go")
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string][]int{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, call := range regexp.MustCompile(`\bfollows\("(\w+)"((?:, \d+)*)\)`).FindAllSubmatch(source, -1) {
			page := string(call[1])
			if len(call[2]) == 0 {
				found[page] = append(found[page], partsOf(g, page, nil)...)
			}
			for number := range strings.SplitSeq(strings.TrimPrefix(string(call[2]), ", "), ", ") {
				if i, err := strconv.Atoi(number); err == nil {
					found[page] = append(found[page], i)
				}
			}
		}
	}
	return found
}
