package statemachine

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
)

// What each event has to hold to be judged later, beside the time, the state, the generation and the words that all have.
var judged = map[EventType][]string{
	Adopted:             {"why", "partition", "StatefulSet"},
	RolloutStarted:      {"why", "partition", "StatefulSet", "revision", "number", "from"},
	StepStarted:         {"pod", "partition", "ground"},
	StepCompleted:       {"pod"},
	StepAborted:         {"why", "ordinals", "partition"},
	StepSkipped:         {"why", "ordinals", "partition"},
	PodReplaced:         {"pod", "uid", "revision"},
	RevisionRestored:    {"pod", "uid", "revision"},
	PartitionParked:     {"partition"},
	Scaled:              {"size"},
	PartitionOverridden: {"partition", "before"},
	PodRegressed:        {"pod", "uid", "revision"},
	Held:                {"why"},
	Released:            {},
	BlockedEvent:        {"why"},
	Unblocked:           {},
	StepResumed:         {"pod"},
	Settled:             {},
	RolloutCompleted:    {"why", "revision"}, // and the partition, if it is Pawl's
	Abandoned:           {"why"},
}

// holdsTo reports whether an event holds what answers a question.
func holdsTo(e Event, question string) bool {
	switch question {
	case "why":
		return e.Reason != ""
	case "pod":
		return e.Pod != "" && e.Ordinals != ""
	case "uid":
		return e.PodUID != ""
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
	case "ground": // of a step that passed over a rule, or that nobody but a person decided
		return e.Reason != ReasonForced || e.Cause != "" // who it was is known only with the admission policies
	default:
		return false
	}
}

// Every event that the stories under testdata decide can be judged by what it holds, and they decide each.
func TestEveryEventCanBeJudged(t *testing.T) {
	seen := map[EventType]int{}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			out, err := s.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
		g := NewWithT(t)
		for _, e := range s.log {
			seen[e.Type]++
			g.Expect(e.Time.IsZero() || e.State == "" || e.Generation == 0 || e.Message == "").To(BeFalse(), "%s: %+v", path, e)
			for _, question := range judged[e.Type] {
				g.Expect(holdsTo(e, question)).To(BeTrue(), "%s: %s holds no %s: %+v", path, e.Type, question, e)
			}
		}
	})
	g := NewWithT(t)
	for kind := range judged {
		g.Expect(seen).To(HaveKey(kind), "no story decides it")
	}
	g.Expect(seen).To(HaveLen(len(judged)))
}
