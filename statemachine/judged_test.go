package statemachine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
)

// What each event has to hold to be judged later, beside the time, the state, the generation and the words that all have,
// and the person, if there is one behind it.
var judged = map[EventType][]string{
	Adopted:             {"why", "partition", "StatefulSet"},
	RolloutStarted:      {"why", "partition", "StatefulSet", "revision", "number", "from"},
	StepStarted:         {"pod", "uid", "partition", "ground", "gates"},
	StepCompleted:       {"pod", "uid"},
	StepAborted:         {"why", "ordinals", "partition"},
	StepSkipped:         {"why", "ordinals", "partition"},
	PodReplaced:         {"pod", "uid", "revision", "gates"},
	RevisionRestored:    {"pod", "uid", "revision"},
	PartitionParked:     {"partition"},
	Scaled:              {"size"},
	PartitionOverridden: {"partition", "before"},
	PodRegressed:        {"pod", "uid", "revision"},
	Held:                {"why", "uid", "gates"},
	Released:            {"uid"},
	BlockedEvent:        {"why", "uid", "gates"},
	Unblocked:           {},
	StepResumed:         {"pod", "uid"},
	Settled:             {},
	RolloutCompleted:    {"why", "revision"}, // and the partition, if it is Pawl's
	Abandoned:           {"why"},
}

// holdsTo reports whether an event that was decided on o holds what answers a question.
func holdsTo(e Event, o Observation, question string) bool {
	switch question {
	case "why":
		return e.Reason != ""
	case "pod":
		return e.Pod != "" && e.Ordinals != ""
	case "uid":
		return e.PodUID == uidOf(o, e.Pod) // unset only if it is about no pod, or about one that is not there
	case "ordinals":
		return e.Ordinals != ""
	case "partition":
		return e.Partition != nil && e.PreviousPartition != nil
	case "before": // someone changed it, from what to what
		return *e.PreviousPartition != *e.Partition
	case "StatefulSet":
		return e.StatefulSetUID != "" && e.TemplateDigest != "" && e.Mode != ModeOff && e.Replicas != nil && e.Start != nil
	case "revision":
		return e.Revision != ""
	case "number":
		return e.Number > 0
	case "from":
		return e.Number == 1 || e.FromRevision != "" || e.Reason == ReasonRecreated // from several then
	case "size":
		return e.Replicas != nil && e.Start != nil
	case "person":
		return e.Actor == personBehind(e, o)
	case "gates":
		return slices.Equal(e.Gates, answers(e, o))
	case "ground": // of a step that passed over a rule, or that nobody but a person decided
		return e.Reason != ReasonForced || e.Cause != "" // who it was is known only with the admission policies
	default:
		return false
	}
}

// uidOf is the uid of a pod as it was seen.
func uidOf(o Observation, pod string) string {
	for i := range o.Pods {
		if o.Pods[i].Present && pod == fmt.Sprintf("%s-%d", o.Name, o.Start+int32(i)) {
			return o.Pods[i].UID
		}
	}
	return ""
}

// personBehind is who changed the template, paused, forced, or approved what the event is about; nobody if Pawl decided it
// by itself.
func personBehind(e Event, o Observation) string {
	switch {
	case e.Type == RolloutStarted:
		return o.ChangedBy
	case e.Type == Held && e.Reason == ReasonPaused:
		return o.PausedBy
	case e.Type == StepStarted && e.Reason == ReasonForced:
		return o.Force.By
	case e.Type == StepStarted && e.Reason == "" && o.Policy.CanaryPods > 0 && o.Approved == o.UpdateRevision && updated(o) >= o.Policy.CanaryPods:
		return o.ApprovedBy
	default:
		return ""
	}
}

// updated is how many pods run what was approved.
func updated(o Observation) (n int32) {
	for i := range o.Pods {
		if o.Pods[i].Present && o.Pods[i].Revision == o.UpdateRevision {
			n++
		}
	}
	return n
}

// answers are those of all gates of the policy, and of the budgets, if the policy had a say in it: those that were passed
// over as Bypassed.
func answers(e Event, o Observation) []GateResult {
	asked := e.Type == StepStarted && e.Reason != ReasonExternal && e.Reason != ReasonAdopted || e.Type == PodReplaced || e.Reason.gate()
	if !asked {
		return nil
	}
	down := e.Type == PodReplaced || slices.Contains([]Reason{ReasonPodDead, ReasonNothingToProtect, ReasonOnlyUnhealthyPod, ReasonRepair}, e.Reason)
	var want []GateResult
	for i, g := range o.Policy.Gates {
		held := e.Reason.gate() && len(e.Gates) > i && e.Gates[i].Result == GateBypassed // the next pod was down, which only it can tell
		if e.Reason == ReasonForced || (down || held) && g.Bypass == BypassWhenPodDown {
			want = append(want, GateResult{Name: g.Name, Result: GateBypassed})
			continue
		}
		want = append(want, GateResult{Name: g.Name, Result: g.Verdict, Message: g.Message})
	}
	if n := len(e.Gates); len(o.Policy.Budgets) > 0 && (e.Reason == "" || e.Reason == ReasonDisruptionBudget) && n > 0 {
		budgets := e.Gates[n-1] // its words are policy_test's
		if open := budgets.Result == GateOpen; budgets.Name == budgetGate && open == (e.Reason == "") {
			want = append(want, budgets)
		}
	}
	return want
}

// Every event that the stories under testdata decide can be judged by what it holds, and they decide each.
func TestEveryEventCanBeJudged(t *testing.T) {
	seen, answered := map[EventType]int{}, map[string]int{}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.o.ChangedBy, s.o.PausedBy, s.o.ApprovedBy = "changer", "pauser", "approver"
			if s.o.Force.Revision != "" {
				s.o.Force.By = "forcer"
			}
			before, o := len(s.log), s.o // a decision changes neither the pods nor the policy
			if _, err := s.run(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if d.Cmd != "decide" {
				return d.Expected
			}
			g := NewWithT(t)
			for _, e := range s.log[before:] {
				seen[e.Type]++
				g.Expect(e.Time.IsZero() || e.State == "" || e.Generation == 0 || e.Message == "").To(BeFalse(), "%s: %+v", path, e)
				for _, question := range append(judged[e.Type], "person") {
					g.Expect(holdsTo(e, o, question)).To(BeTrue(), "%s: %s does not hold its %s: %+v", path, e.Type, question, e)
				}
				answered[e.Actor]++
				for _, r := range e.Gates {
					answered[string(r.Result)]++
				}
			}
			return d.Expected // which TestScripts compares
		})
	})
	g := NewWithT(t)
	for kind := range judged {
		g.Expect(seen).To(HaveKey(kind), "no story decides it")
	}
	g.Expect(seen).To(HaveLen(len(judged)))
	for _, answer := range []string{"changer", "pauser", "forcer", "approver", "Open", "Closed", "Error", "Bypassed"} {
		g.Expect(answered).To(HaveKey(answer), "no story has it")
	}
}
