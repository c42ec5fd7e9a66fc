package main

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// restarted is a log of which the end was lost with its RolloutProgress: transitions 4 to 6 were in no record. It went on
// from the third, and was lost once more, from the seventh on.
func restartedLog(t *testing.T) *notes {
	n := newNotes(t)
	n.record(n.adopted(statemachine.ReasonFirstSeen), n.started(1, "db-b"), n.event(statemachine.RolloutCompleted))
	n.record(n.started(2, "db-c"), n.event(statemachine.Held), n.event(statemachine.Held))
	n.lose()
	n.record(n.adopted(statemachine.ReasonLogRestarted), n.started(2, "db-c"), n.event(statemachine.RolloutCompleted))
	n.record(n.started(3, "db-d"), n.event(statemachine.Held))
	n.lose()
	n.record(n.adopted(statemachine.ReasonLogRestarted), n.event(statemachine.Scaled))
	return n
}

// Numbers that were used again after a RolloutProgress was lost are no fault for ever: what was logged under them before is
// lost, and told as that.
func TestALogThatBeganAnew(t *testing.T) {
	n := restartedLog(t)
	check := func(lines []string) {
		t.Helper()
		out, errs, code := said(t, "verify", "-f", n.file(), "--log", n.log(lines))
		n.Expect(code).To(Equal(exitGone), out+errs)
		n.Expect(out).To(And(
			HavePrefix("shop/db: whole: transitions 1 to 8 in 4 records and status, 8 heads of the manager's log; head "),
			ContainSubstring("shop/db: LOST: transitions 4 to 6: the RolloutProgress was deleted, or lost, before they were in a record; the log began anew with transition 4 (2026-12-02 16:00:07Z)\n"),
			ContainSubstring("shop/db: LOST: transitions 7 to 8: "),
		))
		n.Expect(errs).To(ContainSubstring("something that the manager logged is not here, of 1 of 1 histories; all that is here is whole"))
	}
	check(n.lines)
	check(append(slices.Clone(n.lines), n.lines...)) // delivered twice
	newestFirst := slices.Clone(n.lines)
	slices.Reverse(newestFirst)
	check(newestFirst)
}

// What is whole, what was lost, and what is gone altogether are told in a line of columns each.
func TestWhatIsNotHereInColumns(t *testing.T) {
	n := restartedLog(t)
	gone := strings.ReplaceAll(n.lines[0], `"statefulset":"db"`, `"statefulset":"cache"`)
	out, errs, code := said(t, "verify", "-o", "table", "-f", n.file(), "--log", n.log(append(n.lines, gone)))
	n.Expect(code).To(Equal(exitGone), errs)
	golden(n.WithT, "lost", out)
	fits(n.WithT, out)
}

// A log that began anew excuses nothing that was logged since.
func TestWhatFollowsANewBeginningIsCompared(t *testing.T) {
	n := restartedLog(t)
	forged := slices.Clone(n.lines)
	last := forged[len(forged)-1] // transition 8
	forged[len(forged)-1] = last[:strings.Index(last, `"digest"`)] + `"digest":"` + strings.Repeat("a", 64) + `"}`
	out, _, code := said(t, "verify", "-f", n.file(), "--log", n.log(forged))
	n.Expect(code).To(Equal(1), out)
	n.Expect(out).To(And(ContainSubstring("FAULT: rewritten: at transition 8"), Not(ContainSubstring("began anew with"))))
}

// If the line of the new beginning is not in the log, the history cannot be trusted on its own word; but it says which of
// them it was.
func TestANewBeginningThatWasNotLogged(t *testing.T) {
	n := restartedLog(t)
	n.Expect(n.lines[11]).To(ContainSubstring(`"reason":"LogRestarted"`))
	out, _, code := said(t, "verify", "-f", n.file(), "--log", n.log(slices.Delete(slices.Clone(n.lines), 11, 13)))
	n.Expect(code).To(Equal(1), out)
	n.Expect(out).To(And(ContainSubstring("FAULT: rewritten: at transition 7"), ContainSubstring("it began anew with transition 7 (2026-12-02 16:00:12Z)")))
}

// Heads from before the oldest record cannot be compared, but for the one that it rests on; how many were is said.
func TestHeadsOlderThanTheRecords(t *testing.T) {
	n := newNotes(t)
	n.record(n.adopted(statemachine.ReasonFirstSeen), n.started(1, "db-b"), n.event(statemachine.RolloutCompleted))
	n.record(n.started(2, "db-c"), n.event(statemachine.RolloutCompleted))
	objects := append(n.objects()[:1], n.objects()[3:]...) // transitions 4 and 5 are left
	for want, lines := range map[string][]string{
		", 0 of 2 heads of the manager's log: the others are older than all that is here; 3 older ones are gone": n.lines[:2],
		", 1 of 3 heads of the manager's log: the others are older than all that is here":                        n.lines[:3],
		", 3 of 5 heads of the manager's log":                                                                    n.lines,
		", 2 heads of the manager's log;":                                                                        n.lines[3:],
	} {
		out, errs, code := said(t, "verify", "-f", file(t, objects...), "--log", n.log(lines))
		n.Expect(code).To(BeZero(), errs)
		n.Expect(out).To(ContainSubstring(want))
	}
	forged := strings.Replace(n.lines[2], `"digest":"`, `"digest":"f`, 1)
	forged = forged[:len(forged)-3] + `"}`
	out, _, code := said(t, "verify", "-f", file(t, objects...), "--log", n.log([]string{forged}))
	n.Expect(code).To(Equal(1), out)
	n.Expect(out).To(ContainSubstring("rewritten: at transition 3"))
}

// A check that had nothing to check does not pass.
func TestNothingToVerify(t *testing.T) {
	n := restartedLog(t)
	other := strings.ReplaceAll(strings.Join(n.lines[:3], "\n"), `"statefulset":"db"`, `"statefulset":"web"`)
	out, errs, code := said(t, "verify", "-f", n.file(), "--log", n.log(append(slices.Clone(n.lines[:3]), other)))
	n.Expect(code).To(Equal(exitGone))
	n.Expect(out).To(ContainSubstring("shop/web: GONE: the manager logged up to transition 3 (2026-12-02 16:00:03Z), and nothing of it is here\n"))
	n.Expect(errs).To(ContainSubstring("of 1 of 2 histories"))

	out, _, code = said(t, "verify", "db", "-f", n.file(), "--log", n.log(append(slices.Clone(n.lines[:3]), other)))
	n.Expect(code).To(BeZero(), "the other was not asked for")
	n.Expect(out).NotTo(ContainSubstring("web"))

	_, errs, code = said(t, "verify", "-n", "bar", "-f", n.file())
	n.Expect(code).To(Equal(1))
	n.Expect(errs).To(ContainSubstring("nothing is recorded of any StatefulSet in namespace bar: nothing was verified"))

	n.records, n.status = nil, v1alpha1.RolloutProgressStatus{}
	empty := &v1alpha1.RolloutProgress{}
	empty.APIVersion, empty.Kind = v1alpha1.GroupVersion.String(), "RolloutProgress"
	empty.Namespace, empty.Name = "shop", "db"
	out, errs, code = said(t, "verify", "-f", file(t, empty))
	n.Expect(code).To(Equal(1))
	n.Expect(out).To(Equal("shop/db: empty\n"))
	n.Expect(errs).To(ContainSubstring("nothing was verified"))
	_, errs, code = said(t, "verify", "-f", file(t, empty), "--log", n.log([]string{"x" + strings.Repeat("y", longestLine)}))
	n.Expect(code).To(Equal(1))
	n.Expect(errs).To(ContainSubstring("a line is longer than 1048576 bytes"))
}
