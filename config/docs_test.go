package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

//go:generate go test . -run TestDocsIndex -docs

// TestDocsIndex: docs/README.md leads to every page, every link in the docs leads somewhere, and the list of runbooks is made
// of the folder.
func TestDocsIndex(t *testing.T) {
	g := NewWithT(t)
	const index = "../docs/README.md"
	text, err := os.ReadFile(index)
	g.Expect(err).NotTo(HaveOccurred())
	const begin, end = "<!-- generated: runbooks -->\n", "<!-- end of runbooks -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	g.Expect(found && closed).To(BeTrue(), "%s has no place for the runbooks", index)
	runbooks, err := filepath.Glob("../docs/runbooks/*.md")
	g.Expect(err).NotTo(HaveOccurred())
	var links []string
	for _, file := range runbooks {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		links = append(links, "["+name+"](runbooks/"+name+".md)")
	}
	want := before + begin + strings.Join(links, " ·\n") + "\n" + end + after
	if *writeDocs {
		g.Expect(os.WriteFile(index, []byte(want), 0o644)).To(Succeed())
		return
	}
	g.Expect(string(text)).To(Equal(want), "run make generate")

	linked := map[string]bool{"README.md": true, "dashboard.svg": true}
	for _, target := range linksOf(want) {
		linked[target] = true
	}
	files, err := filepath.Glob("../docs/*")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		name := filepath.Base(file)
		g.Expect(linked[name] || name == "runbooks").To(BeTrue(), "docs/README.md does not lead to %s", name)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)

func linksOf(text string) (targets []string) {
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		targets = append(targets, match[1])
	}
	return targets
}

func TestNoLinkIsDead(t *testing.T) {
	g := NewWithT(t)
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/runbooks/*.md", "../e2e/lab/*.md"} {
		files, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		pages = append(pages, files...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		g.Expect(err).NotTo(HaveOccurred())
		for _, target := range linksOf(string(text)) {
			g.Expect(filepath.Join(filepath.Dir(page), target)).To(BeAnExistingFile(), "a link in %s", page)
		}
	}
}
