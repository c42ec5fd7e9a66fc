package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Every story is in the table of docs/stories.md, and the table has no other.
func TestEveryStoryIsListed(t *testing.T) {
	g := NewWithT(t)
	doc, err := os.ReadFile("../docs/stories.md")
	g.Expect(err).NotTo(HaveOccurred())
	var listed []string
	for line := range strings.SplitSeq(string(doc), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 && !strings.Contains(line, "---") && !strings.Contains(line, "| Story |") {
			for name := range strings.SplitSeq(cells[2], ",") {
				listed = append(listed, strings.TrimSpace(name))
			}
		}
	}
	listed = slices.DeleteFunc(listed, func(name string) bool { return strings.HasPrefix(name, "Test") })
	slices.Sort(listed)
	told, err := titles()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed).To(Equal(told), "docs/stories.md and the stories that are told")
}

// Every attempt in the table of SECURITY.md has its test, which is there.
func TestEveryAttemptHasATest(t *testing.T) {
	g := NewWithT(t)
	doc, err := os.ReadFile("../SECURITY.md")
	g.Expect(err).NotTo(HaveOccurred())
	told, err := titles()
	g.Expect(err).NotTo(HaveOccurred())
	var source strings.Builder
	for _, pattern := range []string{"*_test.go", "../controllers/gate/*_test.go"} {
		files, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			source.Write(text)
		}
	}
	attempts := 0
	for line := range strings.SplitSeq(string(doc), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "| test |") {
			continue
		}
		attempts++
		for name := range strings.SplitSeq(cells[4], ",") {
			name = strings.TrimSpace(name)
			script, _ := filepath.Glob("../statemachine/testdata/" + name + ".txt")
			there := name != "" && (slices.Contains(told, name) || len(script) == 1 || strings.Contains(source.String(), "\nfunc "+name+"("))
			g.Expect(there).To(BeTrue(), "%q is no test: %s", name, line)
		}
	}
	g.Expect(attempts).To(BeNumerically(">", 15))
}

// titles are the titles in the calls of tell and its kin. One that is put together, "s9-one-"+said, counts as its
// literal part.
func titles() ([]string, error) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) < 3 {
				return true
			}
			if f, is := call.Fun.(*ast.Ident); !is || !strings.HasPrefix(f.Name, "tell") {
				return true
			}
			title := call.Args[1]
			if sum, is := title.(*ast.BinaryExpr); is {
				title = sum.X
			}
			if text, is := title.(*ast.BasicLit); is {
				name, _ := strconv.Unquote(text.Value)
				found[strings.TrimSuffix(name, "-")] = true
			}
			return true
		})
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
