package statemachine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
)

// Every guard matters: with any one of them always true, or never, some script tells another story.
func TestEveryGuardMatters(t *testing.T) {
	for i := range rules {
		for _, answer := range []bool{true, false} {
			if answer && i == len(rules)-1 {
				continue // the last rule has no guard
			}
			t.Run(fmt.Sprintf("%s is always %v", rules[i].name, answer), func(t *testing.T) {
				old := rules[i].when
				rules[i].when = func(*view) bool { return answer }
				defer func() { rules[i].when = old }()
				NewWithT(t).Expect(scriptsDiffer(t)).NotTo(BeEmpty(), "no script needs this guard")
			})
		}
	}
}

// Every fact matters: without any one of part (a) some script tells another story.
func TestEveryFactMatters(t *testing.T) {
	for i := range whatHappened {
		t.Run("without "+whatHappened[i].name, func(t *testing.T) {
			old := whatHappened[i].stops
			whatHappened[i].stops = func(*view) bool { return false }
			defer func() { whatHappened[i].stops = old }()
			NewWithT(t).Expect(scriptsDiffer(t)).NotTo(BeEmpty(), "no script needs this fact")
		})
	}
}

// The check itself is honest: with the rules as they are, no script differs.
func TestScriptsDoNotDiffer(t *testing.T) {
	NewWithT(t).Expect(scriptsDiffer(t)).To(BeEmpty())
}

// scriptsDiffer replays the scripts and names the first that comes out differently; empty if none does.
func scriptsDiffer(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		if diff := replay(t, file); diff != "" {
			return filepath.Base(file) + ": " + diff
		}
	}
	return ""
}

// replay runs one script. A panic is a difference too.
func replay(t *testing.T, file string) (diff string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != nil {
			diff = fmt.Sprint(r)
		}
	}()
	s := newScript()
	for block := range strings.SplitSeq(string(text), "\n\n") {
		command, want, isBlock := strings.Cut(strings.TrimSpace(block), "\n----")
		lines := strings.Split(command, "\n")
		if !isBlock {
			continue
		}
		name, args, err := datadriven.ParseLine(lines[len(lines)-1])
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		got, err := s.run(&datadriven.TestData{Cmd: name, CmdArgs: args})
		if err != nil {
			return err.Error()
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			return command + "\ngot:  " + got + "\nwant: " + want
		}
	}
	return ""
}
