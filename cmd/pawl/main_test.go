package main

import (
	"bytes"
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheVersionIsAnAnswer(t *testing.T) {
	g := NewWithT(t)
	var answer bytes.Buffer
	g.Expect(run(t.Context(), []string{"version"}, io.Discard, &answer)).To(Succeed())
	g.Expect(answer.String()).To(MatchRegexp(`^pawl \S+ \(go\S+, \w+/\w+\)\n$`))
	g.Expect(run(t.Context(), []string{"versions"}, io.Discard, &answer)).To(MatchError(ContainSubstring("manager, run-local or version")))
}
