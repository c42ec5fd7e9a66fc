package main

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

type answers func() error

func (a answers) RoundTrip(*http.Request) (*http.Response, error) { return nil, a() }

func TestAnOutageIsToldOnceAndSoIsItsEnd(t *testing.T) {
	g := NewWithT(t)
	var said []string
	log := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	var answer error
	transport := newOutage(log, now)(answers(func() error { return answer }))
	for _, step := range []struct {
		after  time.Duration
		answer error
		said   int
	}{
		{0, nil, 0},
		{time.Second, errors.New("connection refused"), 0}, // one lost request is no news,
		{time.Second, nil, 0},                              // nor is a short one,
		{time.Second, errors.New("connection refused"), 0},
		{hushFor - 1, errors.New("connection refused"), 0},
		{1, context.Canceled, 0}, // nor that Pawl hangs up
		{0, errors.New("connection refused"), 1},
		{time.Hour, errors.New("timeout"), 1},
		{time.Second, nil, 2},
		{time.Second, nil, 2},
	} {
		now.SetTime(now.Now().Add(step.after))
		answer = step.answer
		_, err := transport.RoundTrip(nil) //nolint:bodyclose // there is none
		if step.answer == nil {
			g.Expect(err).NotTo(HaveOccurred())
		} else {
			g.Expect(err).To(Equal(step.answer), "the error comes as it is")
		}
		g.Expect(said).To(HaveLen(step.said), "%v", said)
	}
	g.Expect(said[0]).To(And(ContainSubstring("does not answer"), ContainSubstring("remedy"), ContainSubstring("connection refused")))
	g.Expect(said[1]).To(And(ContainSubstring("answers again"), ContainSubstring(`"away"="1h0m4s"`)))
}
