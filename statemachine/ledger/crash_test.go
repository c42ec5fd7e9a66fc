package ledger

import (
	"testing"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// long is a rollout of 92 transitions after one Adopted.
func long(t *testing.T) (*story, Log) {
	s := newStory(t)
	s.record(append([]statemachine.Event{s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision)}, s.held(91)...)...)
	return s, load(t, s.cluster)
}

// The record was created, the status write failed, and the next decision has fewer events: they fit, so nothing is cut.
// The record that exists is the cut that counts when the rollout ends.
func TestACutThatWasNotNeededAfterAllStands(t *testing.T) {
	s, l := long(t)
	s.sealed(l.Cut())
	l = s.record(s.event(statemachine.RolloutCompleted))

	pages := l.Complete()
	s.Expect(pages).To(HaveLen(1))
	s.Expect(first(pages[0])).To(Equal(int64(93)))
	s.Expect(pages[0].Rollout.Outcome).To(Equal(v1alpha1.OutcomeCompleted))
	s.sealed(pages)
	s.Expect(load(t, s.cluster).SealedThrough()).To(Equal(int64(94)))
}

// The same, seen by a manager whose cache does not have that record yet: creating its page says AlreadyExists.
func TestARecordThatExistsIsTheCutThatCounts(t *testing.T) {
	s, l := long(t)
	existing := l.Cut()
	l = s.record(s.started(2, "db-c", statemachine.ReasonNewRevision))
	pages := l.Complete()
	s.Expect(pages).To(HaveLen(2))
	s.Expect(RecordName("db", first(pages[1]))).To(Equal(RecordName("db", first(existing[1]))))

	l, err := l.Sealed(existing[0])
	s.Expect(err).NotTo(HaveOccurred())
	l, err = l.Sealed(existing[1])
	s.Expect(err).NotTo(HaveOccurred())
	pages = l.Complete()
	s.Expect(pages).To(HaveLen(1))
	s.Expect(pages[0].Transitions).To(HaveLen(1), "the cut left one, so that the outcome has a place")
	s.Expect(pages[0].Rollout.Outcome).To(Equal(v1alpha1.OutcomeSuperseded))

	forged := *existing[0].DeepCopy()
	forged.Transitions[0].Actor = "mallory@example.com"
	_, err = s.record().Sealed(forged)
	var damaged *DamagedError
	s.Expect(err).To(BeAssignableToTypeOf(damaged))
	s.Expect(err).To(MatchError(ContainSubstring("RolloutRecord db-0000000001 is damaged at transition 1")))
}

func TestNothingIsTrimmedThatIsNotSealed(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision), s.event(statemachine.RolloutCompleted))
	l := s.record(s.started(2, "db-c", statemachine.ReasonNewRevision))
	s.Expect(l.Trim().Status().Transitions).To(HaveLen(4))
	s.Expect(l.TrimSealed().Status().Transitions).To(HaveLen(4))
	l, err := l.Sealed(l.Complete()[0])
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(l.Trim().Status().Transitions).To(HaveLen(4), "half of what is old is sealed: it stays readable alone")
	l, err = l.Sealed(l.Complete()[0])
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(l.Trim().Status().Transitions).To(HaveLen(1))
}

func TestAnOlderCopyOfStatusIsNotTakenForDamage(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision))
	old := s.status
	l := s.record(s.started(2, "db-c", statemachine.ReasonNewRevision), s.event(statemachine.RolloutCompleted))
	s.sealed(l.Complete())
	_, err := Load("db", old, s.pages())
	s.Expect(err).To(MatchError(ErrStale))
	_, err = Load("db", old, s.pages()[:2]) // the page says how the rollout ended, which the old copy cannot know
	s.Expect(err).To(MatchError(ErrStale))
}

func TestADeletedLogGoesOnFromTheNewestRecord(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision))
	l := s.record(s.event(statemachine.RolloutCompleted), s.event(statemachine.Scaled), s.started(2, "db-c", statemachine.ReasonNewRevision))
	s.sealed(l.Complete())
	newest := l.Complete()[2]
	s.status = v1alpha1.RolloutProgressStatus{} // kubectl delete rp db: rollout 2 is lost

	l = load(t, s.cluster)
	s.Expect(l.State().Name).To(Equal(statemachine.New))
	s.Expect(l.State().Rollout.Number).To(Equal(int64(1)))
	s.Expect(l.State().StableRevision).To(Equal("db-b"))
	s.Expect(l.Status()).To(Equal(v1alpha1.RolloutProgressStatus{}), "nothing is claimed before something is recorded")

	s.Expect(l.Digest()).To(Equal(newest.Digest), "the next transition is chained to it")
	l = s.record(s.adopted())
	s.Expect(s.status.Sequence).To(Equal(int64(5)))
	s.Expect(s.status.PreviousDigest).To(Equal(newest.Digest))
	s.Expect(l.Complete()).To(BeEmpty())
}

func TestADeletedLogGoesOnAfterADamagedRecord(t *testing.T) {
	s := newStory(t)
	l := s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision), s.event(statemachine.RolloutCompleted))
	s.sealed(l.Complete())
	page := s.records["db-0000000002"]
	page.Transitions[0].Actor = "mallory@example.com"
	s.status = v1alpha1.RolloutProgressStatus{}
	l = load(t, s.cluster)
	s.Expect(l.State().Rollout.Number).To(Equal(int64(1)))
	s.Expect(l.State().StableRevision).To(Equal("db-b"))
	s.Expect(Verify("db", s.status, s.pages())).To(MatchError(ContainSubstring("RolloutRecord db-0000000002 is damaged")))
}

func TestADamagedStatusSaysWhere(t *testing.T) {
	s := newStory(t)
	s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision))
	spoilt := *s.status.DeepCopy()
	spoilt.Transitions[1].Actor = "mallory@example.com"
	_, err := Load("db", spoilt, nil)
	s.Expect(err).To(MatchError(HavePrefix("the log of db is damaged at transition 2: status does not follow")))
	for name, spoil := range map[string]func(*v1alpha1.RolloutProgressStatus){
		"no transitions":    func(st *v1alpha1.RolloutProgressStatus) { st.Transitions = nil },
		"no sequence":       func(st *v1alpha1.RolloutProgressStatus) { st.Sequence = 0 },
		"a gap":             func(st *v1alpha1.RolloutProgressStatus) { st.Transitions[1].Sequence = 3 },
		"no state":          func(st *v1alpha1.RolloutProgressStatus) { st.Transitions[1].State = "" },
		"previous digest":   func(st *v1alpha1.RolloutProgressStatus) { st.PreviousDigest = st.Digest },
		"unknown event":     func(st *v1alpha1.RolloutProgressStatus) { st.Transitions[1].Type = "Exploded" },
		"negative sequence": func(st *v1alpha1.RolloutProgressStatus) { st.Transitions[0].Sequence = -1 },
		"lost beginning":    func(st *v1alpha1.RolloutProgressStatus) { st.Transitions = st.Transitions[1:] },
	} {
		spoilt := *s.status.DeepCopy()
		spoil(&spoilt)
		_, err := Load("db", spoilt, nil)
		s.Expect(err).To(HaveOccurred(), name)
	}
}
