package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// What happens between two rollouts is told with the next one, and what comes after the newest with that.
func TestBetweenRollouts(t *testing.T) {
	n := complete(t)
	n.record(n.event(statemachine.RolloutCompleted), n.event(statemachine.Scaled), n.started(3, "db-d"), n.event(statemachine.RolloutCompleted))
	n.record(n.event(statemachine.Abandoned))
	lines := func(rollout string) []string {
		out, errs, code := said(t, "history", "db", "--rollout", rollout, "-f", n.file())
		n.Expect(code).To(BeZero(), errs)
		return regexp.MustCompile(`(?m)^\d+ +\S+ +\S+ +(\S+)`).FindAllString(out, -1)
	}
	n.Expect(lines("1")).To(HaveExactElements(HaveSuffix("Adopted"), HaveSuffix("RolloutStarted"), HaveSuffix("RolloutCompleted")))
	n.Expect(lines("2")).To(HaveExactElements(HavePrefix("4 "), HaveSuffix("Held"), HaveSuffix("RolloutCompleted")))
	n.Expect(lines("3")).To(HaveExactElements(HaveSuffix("Scaled"), HaveSuffix("RolloutStarted"), HaveSuffix("RolloutCompleted"), HaveSuffix("Abandoned")))
	n.Expect(lines("-1")).To(Equal(lines("3")))
}

// How long a rollout and each step of it took, from the first StepStarted of a step to its end, in whole seconds as the record
// has it. One whose begin is not here says nothing.
func TestHowLongItTook(t *testing.T) {
	n := newNotes(t)
	after := func(d time.Duration, e statemachine.Event) {
		n.at = n.at.Add(d - time.Second)
		n.record(e)
	}
	step := func(ordinal string, from, to int32) statemachine.Event {
		return statemachine.Event{
			Type: statemachine.StepStarted, Ordinals: statemachine.Ordinals(ordinal), Pod: "db-" + ordinal, PreviousPartition: &from, Partition: &to, Generation: 2,
		}
	}
	n.record(n.adopted(statemachine.ReasonFirstSeen), n.started(1, "db-b"))
	after(900*time.Millisecond, step("2", 3, 2))
	after(1600*time.Millisecond, step("1", 2, 1))
	after(1300*time.Millisecond, n.event(statemachine.StepCompleted)) // 2.9 s
	after(700*time.Millisecond, step("0", 1, 0))
	after(500*time.Millisecond, n.event(statemachine.Held))
	after(499*time.Millisecond, n.event(statemachine.StepAborted)) // 0.999 s
	after(61*time.Second, n.event(statemachine.RolloutCompleted))
	out, errs, code := said(t, "history", "db", "--rollout", "1", "-f", n.file())
	n.Expect(code).To(BeZero(), errs)
	n.Expect(out).To(ContainSubstring("Took      66s; "), "of 66.499")
	n.Expect(*n.records[len(n.records)-1].DurationSeconds).To(Equal(int32(66)))
	var told []string
	for _, line := range regexp.MustCompile(`(?m)^\d+ +\S+ +(\S+) +((?:Step|RolloutC)\w+)|(the step took \S+)$`).FindAllStringSubmatch(out, -1) {
		told = append(told, strings.TrimSpace(line[2]+" "+line[1]+line[3]))
	}
	n.Expect(told).To(Equal([]string{
		"StepStarted 0s", "StepStarted 1s", "StepCompleted 1s", "the step took 2s",
		"StepStarted 0s", "StepAborted 0s", "the step took 0s", "RolloutCompleted 61s",
	}), out)

	n = newNotes(t)
	n.record(n.adopted(statemachine.ReasonFirstSeen), n.started(1, "db-b"), step("2", 3, 2), n.started(2, "db-c"), n.event(statemachine.RolloutCompleted))
	out, errs, code = said(t, "history", "db", "--rollout", "2", "-f", n.file())
	n.Expect(code).To(BeZero(), errs)
	n.Expect(out).NotTo(ContainSubstring("the step took"))
}

// recordsOf are the RolloutRecords of a log in testdata, and a file that holds nothing else.
func recordsOf(t *testing.T, log string) ([]v1alpha1.RolloutRecord, string) {
	g := NewWithT(t)
	out, errs, code := said(t, "history", "db", "-o", "json", "-f", log)
	g.Expect(code).To(BeZero(), errs)
	var list struct{ Items []json.RawMessage }
	g.Expect(json.Unmarshal([]byte(out), &list)).To(Succeed())
	var records []v1alpha1.RolloutRecord
	var objects []runtime.Object
	for _, item := range list.Items {
		var r v1alpha1.RolloutRecord
		g.Expect(json.Unmarshal(item, &r)).To(Succeed())
		if r.Kind == "RolloutRecord" {
			records = append(records, r)
			objects = append(objects, &r)
		}
	}
	g.Expect(records).To(HaveLen(len(list.Items) - 1))
	return records, file(t, objects...)
}

// Any rollout is explained line by line from RolloutRecords alone: each transition has its line, with when, what, to which
// pod, and below it the words, the person, the cause, the revisions and the partition; wide, also the uids and the
// generation.
func TestExplainedFromRecordsAlone(t *testing.T) {
	for log, gates := range map[string]int{log: 0, gatesLog: 14} {
		t.Run(log, func(t *testing.T) { explainedFromRecords(t, log, gates) })
	}
}

func explainedFromRecords(t *testing.T, log string, gates int) {
	t.Helper()
	g := NewWithT(t)
	records, file := recordsOf(t, log)
	out, _, code := said(t, "verify", "-f", file)
	g.Expect(code).To(BeZero())
	g.Expect(out).To(ContainSubstring("whole: transitions 1 to 21 in 5 records; head "))

	told := map[int64]string{} // what is printed of each transition
	for number := int64(1); number <= 4; number++ {
		out, errs, code := said(t, "history", "db", "--rollout", fmt.Sprint(number), "-o", "wide", "-f", file)
		g.Expect(code).To(BeZero(), errs)
		_, table, found := strings.Cut(out, "\n#   TIME")
		if !found {
			_, table, found = strings.Cut(out, "\n#  TIME")
		}
		g.Expect(found).To(BeTrue(), out)
		var at int64
		for _, line := range strings.Split(table, "\n")[1:] {
			if !strings.HasPrefix(line, " ") && line != "" {
				_, err := fmt.Sscan(line, &at)
				g.Expect(err).NotTo(HaveOccurred(), line)
				told[at] = line + "\n"
				continue
			}
			told[at] += strings.TrimSpace(line) + " "
		}
	}
	n, answers := 0, 0
	for _, r := range records {
		for _, tr := range r.Page.Transitions {
			n++
			answers += len(tr.Gates)
			explains(g, told[tr.Sequence], tr)
		}
		if r.Page.Rollout != nil {
			out, _, _ := said(t, "history", "db", "--rollout", fmt.Sprint(r.Page.Rollout.Number), "-f", file)
			summarizes(g, out, r)
		}
	}
	g.Expect(told).To(HaveLen(n), "and no other line")
	g.Expect(n).To(Equal(21))
	g.Expect(answers).To(Equal(gates), "of gates")
}

// explains: all that the transition holds is in its line or below it.
func explains(g *WithT, told string, t v1alpha1.Transition) {
	what := fmt.Sprintf("transition %d, %s: %s", t.Sequence, t.Type, told)
	line, below, _ := strings.Cut(told, "\n")
	pod := t.Pod
	if pod == "" {
		pod = t.Ordinals
	}
	words := strings.Fields(strings.Join([]string{t.Type, t.Reason, pod, string(t.State)}, " "))
	g.Expect(line).To(MatchRegexp(`^%d +%s +\S+ +%s$`, t.Sequence, t.Time.UTC().Format("15:04:05"), strings.Join(words, " +")), what)
	g.Expect(below).To(ContainSubstring(t.Message), what)
	for name, is := range map[string]string{"person": t.Actor, "revision": t.Revision, "from": t.FromRevision} {
		g.Expect(below).To(ContainSubstring(is), "%s of %s", name, what)
	}
	g.Expect(below).To(ContainSubstring("generation %d", t.Generation), what)
	if t.Cause != "" {
		g.Expect(below).To(ContainSubstring("cause: "+t.Cause), what)
	}
	if t.PodUID != "" {
		g.Expect(below).To(ContainSubstring("pod uid "+t.PodUID), what)
	}
	if t.StatefulSetUID != "" {
		g.Expect(below).To(And(ContainSubstring("StatefulSet uid "+t.StatefulSetUID), ContainSubstring("template digest "+t.TemplateDigest), ContainSubstring("mode "+string(t.Mode))), what)
	}
	if t.Partition != nil {
		to, from := partition(*t.Partition), partition(*t.PreviousPartition)
		g.Expect(below).To(Or(ContainSubstring("partition from "+from+" to "+to), And(Equal(below), ContainSubstring("partition "+to))), what)
		g.Expect(to == from).To(Equal(!strings.Contains(below, "partition from")), what)
	}
	for _, gate := range t.Gates {
		g.Expect(below).To(ContainSubstring(strings.TrimSuffix(fmt.Sprintf("gate %s %s: %s", gate.Name, gate.Result, gate.Message), ": ")), what)
	}
	g.Expect(below).To(MatchRegexp(`digest [0-9a-f]{64} +$`), what)
}

// summarizes: who, what, from where to where, how long, and how it ended.
func summarizes(g *WithT, out string, r v1alpha1.RolloutRecord) {
	rollout := r.Page.Rollout
	g.Expect(out).To(HavePrefix("Rollout %d of default/db: %s\n", rollout.Number, rollout.Outcome))
	by := ""
	if rollout.StartedBy != "" {
		by = " by " + rollout.StartedBy
	}
	for what, want := range map[string]string{
		"From": rollout.FromRevision, "To": rollout.ToRevision + " (" + rollout.Reason + ")", "Started": rollout.StartedAt.UTC().Format(stamp) + by,
		"Cause": rollout.Cause, "Finished": rollout.FinishedAt.UTC().Format(stamp), "In": r.Name,
		"Took": fmt.Sprintf("%ds; pods replaced by steps: %d; Blocked for %ds", *r.Page.DurationSeconds, *rollout.Steps, *rollout.BlockedSeconds),
	} {
		if want != "" {
			g.Expect(out).To(MatchRegexp(`(?m)^  %s +%s$`, what, regexp.QuoteMeta(want)))
		}
	}
}
