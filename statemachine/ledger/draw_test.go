package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

var begin = time.Date(2026, 12, 1, 3, 2, 11, 665687000, time.UTC)

// Anchors come last, and drawEvent takes them rarely: it is long rollouts that fill a status.
var eventTypes = []statemachine.EventType{
	statemachine.StepStarted, statemachine.StepCompleted, statemachine.StepAborted, statemachine.StepSkipped,
	statemachine.PodReplaced, statemachine.RevisionRestored, statemachine.PartitionParked, statemachine.Scaled,
	statemachine.PartitionOverridden, statemachine.PodRegressed, statemachine.Held, statemachine.Released,
	statemachine.BlockedEvent, statemachine.Unblocked, statemachine.StepResumed, statemachine.Settled,
	statemachine.RolloutCompleted, statemachine.Abandoned, statemachine.RolloutStarted, statemachine.Adopted,
}

const anchors = 2

var reasons = []statemachine.Reason{
	"", statemachine.ReasonNewRevision, statemachine.ReasonRollback, statemachine.ReasonImagePullBackOff,
	statemachine.ReasonFirstReady, statemachine.ReasonPaused,
}

var texts = []string{"", "", "short", "one\ntwo\x7f \xff\u2028 <&> 😀", strings.Repeat("é", 600)}

// drawEvent draws any event, legal or not. Anchors carry all that they must.
func drawEvent(t *rapid.T, s statemachine.State) statemachine.Event {
	text := rapid.SampledFrom(texts)
	at := s.LastEvent
	if at.IsZero() {
		at = begin
	}
	types := eventTypes
	if s.Name != "" && s.Name != statemachine.New && rapid.IntRange(0, 9).Draw(t, "anchor") < 9 {
		types = eventTypes[:len(eventTypes)-anchors]
	}
	e := statemachine.Event{
		Type:    rapid.SampledFrom(types).Draw(t, "type"),
		Time:    at.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "later"))),
		Reason:  rapid.SampledFrom(reasons).Draw(t, "reason"),
		Message: text.Draw(t, "message"),
		Actor:   text.Draw(t, "actor"),
		Cause:   text.Draw(t, "cause"),
		Gates:   rapid.SliceOfN(rapid.Custom(drawGate), 0, 2).Draw(t, "gates"),
	}
	e.Ordinals = statemachine.OrdinalsOf(rapid.SliceOfN(rapid.Int32Range(0, 6), 0, 3).Draw(t, "ordinals")...)
	for n := range e.Ordinals.All() {
		e.Pod, e.PodUID = fmt.Sprintf("db-%d", n), fmt.Sprintf("uid-%d", n)
		break
	}
	if rapid.Bool().Draw(t, "writes") || e.Anchor() {
		e.Partition = new(rapid.SampledFrom([]int32{0, 1, 2, statemachine.Parked}).Draw(t, "partition"))
		e.PreviousPartition = new(rapid.Int32Range(0, 3).Draw(t, "previous"))
		e.Generation = rapid.Int64Range(1, 9).Draw(t, "generation")
	}
	if e.Type == statemachine.Scaled || e.Anchor() {
		e.Replicas, e.Start = new(rapid.Int32Range(0, 5).Draw(t, "replicas")), new(rapid.Int32Range(0, 2).Draw(t, "start"))
	}
	if e.Anchor() {
		e.TemplateDigest, e.StatefulSetUID, e.Mode = "t1", fmt.Sprintf("uid-%d", rapid.IntRange(1, 2).Draw(t, "uid")), statemachine.ModeEnforce
		e.StableRevision, e.Number = s.StableRevision, s.Rollout.Number
	}
	if e.Type == statemachine.RolloutStarted {
		e.Number++
		e.FromRevision, e.Revision = s.Revision, rapid.SampledFrom([]string{"db-a", "db-b"}).Draw(t, "revision")
		e.Starts = rapid.Int32Range(0, 3).Draw(t, "starts")
	}
	return e
}

func drawGate(t *rapid.T) statemachine.GateResult {
	return statemachine.GateResult{
		Name: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name"), Result: statemachine.GateOpen,
		Message: rapid.StringN(0, 10, -1).Draw(t, "said"),
	}
}

// drawEvents draws a legal sequence of events after s, as the fold is the judge of.
func drawEvents(t *rapid.T, s statemachine.State, most int) []statemachine.Event {
	var events []statemachine.Event
	for range rapid.IntRange(0, most).Draw(t, "attempts") {
		e := drawEvent(t, s)
		next, err := statemachine.Fold(s, []statemachine.Event{e})
		if err != nil {
			continue
		}
		s, events = next, append(events, e)
	}
	return events
}

// cluster is what survives a crash: one status and the records, guarded as the API server guards them.
type cluster struct {
	status  v1alpha1.RolloutProgressStatus
	records map[string]v1alpha1.Page
}

func (c *cluster) pages() []v1alpha1.Page {
	pages := make([]v1alpha1.Page, 0, len(c.records))
	for _, page := range c.records {
		pages = append(pages, *page.DeepCopy())
	}
	slices.SortFunc(pages, func(a, b v1alpha1.Page) int { return int(first(a) - first(b)) })
	return pages
}

func load(t testing.TB, c cluster) Log {
	t.Helper()
	l, err := Load("db", c.status, c.pages())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return l
}
