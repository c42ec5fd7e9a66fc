package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

// A policy is tried without a cluster: on objects as kubectl prints them.
func TestGateTest(t *testing.T) {
	const moco, objects = "../../config/overlays/moco/policy.yaml", "testdata/mysql.yaml"
	g := NewWithT(t)
	out, errs, code := said(t, "gate", "test", "-f", moco, "-f", objects, "--statefulset", "moco-test")
	g.Expect(code).To(Equal(exitClosed), errs)
	g.Expect(errs).To(Equal("error: closed: mysql-healthy\n"))
	file := filepath.Join("testdata", "gates.golden")
	if *rewrite {
		g.Expect(os.WriteFile(file, []byte(out), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(string(want)), "go test ./cmd/kubectl-pawl -rewrite, and look at what changed")
	doc, err := os.ReadFile("../../docs/policy.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(doc)).To(ContainSubstring(out), "docs/policy.md shows it")
	for line := range strings.Lines(out) {
		g.Expect(utf8.RuneCountInString(line)).To(BeNumerically("<=", 120), line)
	}
}

func TestGateTestAnswers(t *testing.T) {
	const objects = "testdata/mysql.yaml"
	for name, c := range map[string]struct {
		policy     string
		args       []string
		code       int
		says, errs string
	}{
		"open":              {"gates: [{name: two, expression: pods.size() == 2, messageExpression: 'string(pods.size())'}]", nil, 0, "two    Open     Never    2", ""},
		"pods in order":     {"gates: [{name: order, expression: \"pods[0].metadata.name == 'moco-test-2'\"}]", nil, 0, "Open", ""},
		"in error":          {"gates: [{name: bad, expression: owner.status.nothing}]", nil, 1, "no such key: nothing", "cannot be evaluated, which stops steps: bad"},
		"does not compile":  {"gates: [{name: bad, expression: onwer == null}]", nil, 1, "1:1: undeclared reference to 'onwer'", "cannot be evaluated"},
		"no gates":          {"canaryPods: 1", nil, 0, "RolloutPolicy p has no gates.", ""},
		"an unknown field":  {"gate: []", nil, 1, "", `RolloutPolicy p: strict decoding error: unknown field "spec.gate"`},
		"another type":      {"canaryPods: many", nil, 1, "", "RolloutPolicy p: "},
		"no StatefulSet":    {"canaryPods: 1", []string{"--statefulset", ""}, 1, "", "--statefulset: the name of the StatefulSet"},
		"another namespace": {"canaryPods: 1", []string{"-n", "else", "--server", "http://127.0.0.1:1"}, 1, "", "StatefulSet moco-test in namespace else"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "policy.yaml")
			g.Expect(os.WriteFile(file, []byte("apiVersion: pawl.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: p}\nspec:\n  "+c.policy+"\n"), 0o600)).To(Succeed())
			out, errs, code := said(t, append([]string{"gate", "test", "-f", file, "-f", objects, "--statefulset", "moco-test"}, c.args...)...)
			g.Expect(code).To(Equal(c.code), errs)
			g.Expect(out).To(ContainSubstring(c.says))
			g.Expect(errs).To(ContainSubstring(c.errs))
			if c.errs == "" {
				g.Expect(errs).To(BeEmpty())
			}
		})
	}
}
