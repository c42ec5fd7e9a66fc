package statemachine

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
)

// ends are how a Held message says until when it is waited: a time, what a person types, or whose turn it is.
var ends = regexp.MustCompile(` (?:Blocked|replaced when its grace is over,|released|unhealthy pod, and replaced) at (\S+Z)\.|until \S+Z|Approve: |Resume: |Let Pawl step: |its turn`)

// Every Held says until when it is waited. A time that it tells is true: looked at again and again, with nothing else
// happening, nothing is done or Blocked before it, and something is at it.
func TestHeldSaysUntilWhen(t *testing.T) {
	timed := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			told := len(s.log)
			out, err := s.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if len(s.log) > told && s.log[len(s.log)-1].Type == Held {
				e := s.log[len(s.log)-1]
				end := ends.FindStringSubmatch(e.Message)
				if end == nil {
					t.Errorf("%s: %s: no end: %s", d.Pos, e.Reason, e.Message)
				} else if end[1] != "" {
					timed++
					if what := firstAfter(s.state, s.o, onDay(end[1], s.o.Now)); what != "" {
						t.Errorf("%s: %s\n\t%s", d.Pos, e.Message, what)
					}
				}
			}
			return out
		})
	})
	NewWithT(t).Expect(timed).To(BeNumerically(">", 30), "times that were told")
}

// onDay is a time as messages have it; one of day is today's.
func onDay(text string, now time.Time) time.Time {
	if !strings.Contains(text, "T") {
		text = now.Format(time.DateOnly) + "T" + text
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// firstAfter says what is wrong with what happens first if nothing changes but the time: it is to happen in the second
// that was told. Another Held has an end of its own.
func firstAfter(s State, o Observation, told time.Time) string {
	last := told.Add(time.Second)
	d := Decide(s, o)
	for o.Now.Before(last) {
		next := o.Now.Add(time.Second)
		if !d.WakeAt.IsZero() && d.WakeAt.Before(next) && d.WakeAt.After(o.Now) {
			next = d.WakeAt
		}
		o.Now = next
		d = Decide(s, o)
		s = d.State
		for _, e := range d.Events {
			switch {
			case e.Type == Held:
				return ""
			case o.Now.Before(told):
				return "comes earlier, at " + o.Now.Format(time.StampMicro) + ": " + describe(e)
			default:
				return ""
			}
		}
	}
	return "nothing happened by " + o.Now.Format(time.StampMicro) + "; wakes at " + d.WakeAt.Format(time.StampMicro)
}
