package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// No line is left out, however many there are of one kind: each is the head of a chain.
func TestEveryLineIsLogged(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	logger, err := newLogger(options{logLevel: "info", logFormat: "json"}, &out)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range 1000 {
		logger.Info("recorded", "sequence", i)
		logger.V(1).Info("not at this level")
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	g.Expect(lines).To(HaveLen(1000))
	var line struct {
		Level, TS, Msg string
		Sequence       int
	}
	g.Expect(json.Unmarshal([]byte(lines[999]), &line)).To(Succeed())
	g.Expect(line.Msg).To(Equal("recorded"))
	g.Expect(line.Level).To(Equal("info"))
	g.Expect(line.Sequence).To(Equal(999))
	g.Expect(line.TS).To(MatchRegexp(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`))
	_, err = newLogger(options{logLevel: "loud"}, &out)
	g.Expect(err).To(MatchError(HavePrefix("--log-level: ")))
}
