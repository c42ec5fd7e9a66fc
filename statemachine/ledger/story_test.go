package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// The stories speak of one StatefulSet with three pods.
type story struct {
	*WithT
	t *testing.T
	cluster
	now time.Time
}

func newStory(t *testing.T) *story {
	return &story{WithT: NewWithT(t), t: t, cluster: cluster{records: map[string]v1alpha1.Page{}}, now: begin}
}

func (s *story) at(e statemachine.Event) statemachine.Event {
	s.now = s.now.Add(time.Second)
	e.Time = s.now
	return e
}

func (s *story) adopted() statemachine.Event {
	return s.at(statemachine.Event{
		Type: statemachine.Adopted, Reason: statemachine.ReasonFirstSeen, Replicas: new(int32(3)), Start: new(int32(0)), TemplateDigest: "t1",
		StatefulSetUID: "uid-1", Mode: statemachine.ModeEnforce, Origin: statemachine.OriginFirstSeen, Revision: "db-a", StableRevision: "db-a",
		Partition: new(statemachine.Parked), PreviousPartition: new(int32(0)), Generation: 1, Number: load(s.t, s.cluster).State().Rollout.Number,
	})
}

func (s *story) started(number int64, revision string, reason statemachine.Reason) statemachine.Event {
	e := s.adopted()
	e.Type, e.Reason, e.Number, e.FromRevision, e.Revision = statemachine.RolloutStarted, reason, number, "db-a", revision
	e.Actor, e.Cause = "alice@example.com", "mysql 8.4.9"
	return e
}

func (s *story) step(ordinal string) statemachine.Event {
	return s.at(statemachine.Event{
		Type: statemachine.StepStarted, Ordinals: statemachine.Ordinals(ordinal), Pod: "db-" + ordinal,
		Partition: new(int32(2)), PreviousPartition: new(statemachine.Parked), Generation: 2,
	})
}

func (s *story) event(kind statemachine.EventType) statemachine.Event {
	return s.at(statemachine.Event{Type: kind})
}

// held is n events that do not end anything.
func (s *story) held(n int) []statemachine.Event {
	events := make([]statemachine.Event, 0, n)
	for range n {
		events = append(events, s.at(statemachine.Event{Type: statemachine.Held, Reason: statemachine.ReasonPaused}))
	}
	return events
}

// record appends and stores, as long as there is room.
func (s *story) record(events ...statemachine.Event) Log {
	s.t.Helper()
	l, err := load(s.t, s.cluster).Append(events)
	s.Expect(err).NotTo(HaveOccurred())
	l = l.Trim()
	s.status = l.Status()
	s.Expect(Verify("db", s.status, s.pages())).To(Succeed())
	return l
}

// sealed creates records for these pages.
func (s *story) sealed(pages []v1alpha1.Page) {
	s.t.Helper()
	for _, page := range pages {
		s.records[RecordName("db", first(page))] = page
	}
	s.Expect(Verify("db", s.status, s.pages())).To(Succeed())
}

func TestStatusSaysWhereTheRolloutStands(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted())
	s.Expect(s.status.State).To(Equal(v1alpha1.StateDone))
	s.Expect(s.status.Progress).To(Equal("3/3"), "all pods were found at one revision")
	s.Expect(*s.status.Partition).To(Equal(int32(3)), "parked is shown as the number of pods")
	s.Expect(s.status.Rollout).To(BeNil())

	s.record(s.started(1, "db-b", statemachine.ReasonNewRevision), s.step("2"))
	s.Expect(s.status.State).To(Equal(v1alpha1.StateStepping))
	s.Expect(s.status.Pod).To(Equal("db-2"))
	s.Expect(s.status.Progress).To(Equal("0/3"))
	s.Expect(*s.status.Partition).To(Equal(int32(2)))

	s.record(s.event(statemachine.StepCompleted))
	s.Expect(s.status.Progress).To(Equal("1/3"))

	l := s.record(s.event(statemachine.BlockedEvent))
	s.Expect(s.status.Reason).To(Equal("Unknown"), "the API takes no Blocked without words")
	s.Expect(s.status.Message).NotTo(BeEmpty())
	s.Expect(l.Sequence()).To(Equal(int64(5)))

	s.record(s.event(statemachine.RolloutCompleted))
	s.Expect(s.status.Progress).To(Equal("3/3"))
	s.Expect(s.status.StableRevision).To(Equal("db-b"))
	s.Expect(*s.status.Rollout.Steps).To(Equal(int32(1)))
	s.Expect(*s.status.Rollout.BlockedSeconds).To(Equal(int32(1)))
	s.Expect(s.status.Rollout.Outcome).To(Equal(v1alpha1.OutcomeCompleted))
}

func TestOneRecordPerRolloutAndOneForWhatComesBetween(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted())
	l := s.record(s.started(1, "db-b", statemachine.ReasonNewRevision), s.step("2"))
	pages := l.Complete()
	s.Expect(pages).To(HaveLen(1))
	s.Expect(pages[0].Rollout).To(BeNil(), "nothing but Adopted")
	s.sealed(pages)

	l = s.record(s.event(statemachine.StepCompleted), s.event(statemachine.RolloutCompleted), s.event(statemachine.Scaled))
	pages = l.Complete()
	s.Expect(pages).To(HaveLen(1), "the page of Scaled goes on")
	s.Expect(pages[0].Rollout.Outcome).To(Equal(v1alpha1.OutcomeCompleted))
	s.Expect(*pages[0].DurationSeconds).To(Equal(int32(3)))
	s.sealed(pages)

	l = s.record(s.started(2, "db-c", statemachine.ReasonNewRevision))
	s.Expect(s.status.Transitions).To(HaveLen(6), "Scaled is not sealed yet: nothing is dropped that is not")
	s.sealed(l.Complete())

	l = s.record(s.started(3, "db-b", statemachine.ReasonRollback))
	pages = l.Complete()
	s.Expect(pages).To(HaveLen(1))
	s.Expect(pages[0].Rollout.Number).To(Equal(int64(2)))
	s.Expect(pages[0].Rollout.Outcome).To(Equal(v1alpha1.OutcomeRolledBack), "the next rollout says how this one ended")
	s.sealed(pages)
	s.record(s.event(statemachine.RolloutCompleted))
	s.Expect(s.status.Transitions).To(HaveLen(2), "status keeps the last rollout")
	s.Expect(s.records).To(HaveKey("db-0000000001"))
	s.Expect(s.records).To(HaveKey("db-0000000002"))
	s.Expect(Record("shop", pages[0]).Name).To(Equal("db-0000000007"))
}

// Seconds are whole ones, the rest is cut off: of the rollout, and of each spell in Blocked. That is so in records that exist,
// and a record has to say what its transitions say.
func TestDurationsAreWholeSeconds(t *testing.T) {
	s := newStory(t)
	after := func(d time.Duration, kind statemachine.EventType) statemachine.Event {
		s.now = s.now.Add(d)
		return statemachine.Event{Type: kind, Time: s.now}
	}
	s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision))
	began := s.now
	l := s.record(
		after(0, statemachine.BlockedEvent), after(2999*time.Millisecond, statemachine.Unblocked), // 2
		after(time.Millisecond, statemachine.BlockedEvent), after(999*time.Millisecond, statemachine.Unblocked), // 0
		after(time.Millisecond, statemachine.BlockedEvent), after(1999*time.Millisecond, statemachine.RolloutCompleted), // 1
	)
	page := l.Complete()[1]
	s.Expect(page.Rollout.FinishedAt.Sub(began)).To(Equal(5999 * time.Millisecond))
	s.Expect(*page.DurationSeconds).To(Equal(int32(5)))
	s.Expect(*page.Rollout.BlockedSeconds).To(Equal(int32(3)))
}

func TestARecreatedStatefulSetHasPagesOfItsOwn(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision), s.step("2"))
	again := s.adopted()
	again.StatefulSetUID, again.Reason, again.Origin = "uid-2", statemachine.ReasonRecreated, statemachine.OriginRecreated
	l := s.record(again)
	pages := l.Complete()
	s.Expect(pages).To(HaveLen(2))
	s.Expect(pages[1].Rollout.Outcome).To(Equal(v1alpha1.OutcomeAbandoned))
	s.Expect(pages[1].StatefulSetUID).To(Equal("uid-1"))
}

func TestALongRolloutIsCut(t *testing.T) {
	s := newStory(t)
	s.record(append([]statemachine.Event{s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision)}, s.held(90)...)...)
	l := load(t, s.cluster)
	_, err := l.Append(s.held(9))
	s.Expect(err).To(MatchError(ErrMustSeal))
	_, err = l.Append(s.held(100))
	s.Expect(err).To(MatchError(ErrTooManyEvents))

	pages := l.Cut()
	s.Expect(pages).To(HaveLen(2))
	s.Expect(pages[1].Transitions).To(HaveLen(90), "all but the newest")
	s.Expect(pages[1].Rollout.Outcome).To(BeEmpty(), "it goes on")
	s.sealed(pages)
	l = load(t, s.cluster).TrimSealed()
	l, err = l.Append(append(s.held(98), s.event(statemachine.RolloutCompleted)))
	s.Expect(err).NotTo(HaveOccurred())
	s.status = l.Status()
	s.Expect(Verify("db", s.status, s.pages())).To(Succeed())

	s.Expect(l.NeedsFrom()).To(Equal(int64(2)))
	_, err = Load("db", s.status, nil)
	s.Expect(err).To(MatchError(&MissingError{Name: "db", Sequence: 91}))
	s.Expect(l.Complete()[0].Rollout.Outcome).To(Equal(v1alpha1.OutcomeCompleted))
}

func TestWhatTheStateMachineForbidsIsNotStored(t *testing.T) {
	s := newStory(t)
	l := s.record(s.adopted())
	_, err := l.Append([]statemachine.Event{s.event(statemachine.StepCompleted)})
	s.Expect(err).To(MatchError(ContainSubstring("StepCompleted cannot happen in state Done")))

	forgetful := s.started(1, "db-b", statemachine.ReasonNewRevision)
	forgetful.Replicas = nil
	_, err = l.Append([]statemachine.Event{forgetful})
	s.Expect(err).To(MatchError(ContainSubstring("does not carry all that is remembered")))

	wrong := s.step("2")
	wrong.Ordinals = "2,1"
	_, err = s.record(s.started(1, "db-b", statemachine.ReasonNewRevision)).Append([]statemachine.Event{wrong})
	s.Expect(err).To(MatchError(ContainSubstring(`ordinals "2,1"`)))
}
