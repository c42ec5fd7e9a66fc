package ledger

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Whatever happens, an object stays far below the megabyte or so that etcd takes: a thousand pods with the longest ordinals
// there are, every other one of them at the target, messages of 6 kB, and ten thousand events in one rollout. Nothing is
// left out for it: what does not fit is in one record more.
func TestObjectsStaySmall(t *testing.T) {
	s := newStory(t)
	const replicas, flaps = 1000, 10_000
	first := int32(2_000_000_000)
	var scattered []int32
	for i := int32(0); i < replicas; i += 2 {
		scattered = append(scattered, first+i)
	}
	noise := strings.Repeat("back-off 5m0s restarting failed container=mysqld ", 123)
	started := s.started(1, "db-b", statemachine.ReasonNewRevision)
	started.Replicas, started.Start = new(int32(replicas)), &first
	started.Ordinals, started.Prior = statemachine.OrdinalsOf(scattered...), statemachine.OrdinalsOf(scattered...)
	started.Cause, started.Actor = noise, noise
	events := []statemachine.Event{s.adopted(), started, s.step("2000000999")}
	for range flaps / 2 {
		pod := statemachine.Event{Pod: strings.Repeat("d", maxName), Ordinals: "2000000999", PodUID: strings.Repeat("u", maxToken), Message: noise}
		blocked, resumed := pod, pod
		blocked.Type, blocked.Reason, resumed.Type = statemachine.BlockedEvent, statemachine.ReasonCrashLoopBackOff, statemachine.StepResumed
		events = append(events, s.at(blocked), s.at(resumed))
	}
	l, largest := load(t, s.cluster), 0
	measure := func(what string, v any) {
		text, err := json.Marshal(v)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(len(text)).To(BeNumerically("<", 300_000), what)
		largest = max(largest, len(text))
	}
	seal := func(pages []v1alpha1.Page) {
		for _, page := range pages {
			measure("RolloutRecord", Record("shop", page))
			s.records[RecordName("db", page.Transitions[0].Sequence)] = page
			var err error
			l, err = l.Sealed(page)
			s.Expect(err).NotTo(HaveOccurred())
		}
	}
	for _, e := range events {
		next, err := l.Append([]statemachine.Event{e})
		if errors.Is(err, ErrMustSeal) {
			seal(l.Cut())
			next, err = l.TrimSealed().Append([]statemachine.Event{e})
		}
		s.Expect(err).NotTo(HaveOccurred())
		l = next
		s.status = l.Status()
		if l.Sequence()%33 == 0 {
			measure("status", s.status)
		}
	}
	s.Expect(l.Sequence()).To(BeEquivalentTo(flaps+3), "nothing is left out")
	s.Expect(Verify("db", s.status, s.pages())).To(Succeed())
	s.Expect(started.Ordinals).To(HaveLen(5499), "the field takes 16384 characters")
	t.Logf("%d transitions are in %d records and status, the largest of %d kB", l.Sequence(), len(s.records), largest/1000)
}

// While no record can be created nothing leaves status. It is full then by its bytes, however few transitions those are: a
// rollout may start with 32 kB of ordinals, and what people and gates say may be four bytes a character. Once records can be
// created, all that waited finds room.
func TestStatusStaysSmallWithoutRecords(t *testing.T) {
	var scattered []int32
	for i := range int32(2000) {
		scattered = append(scattered, 2_000_000_000+2*i)
	}
	words := strings.Repeat("🐬", maxMessage)
	largest := func(s *story, number int64) statemachine.Event {
		e := s.started(number, "db-b", statemachine.ReasonNewRevision)
		e.Replicas, e.Start = new(int32(4000)), new(int32(2_000_000_000))
		e.Ordinals = statemachine.OrdinalsOf(scattered...)
		e.Prior, e.Message, e.Cause, e.Actor = e.Ordinals, words, words, words
		return e
	}
	wordy := func(s *story, _ int64) statemachine.Event {
		e := s.event(statemachine.Held)
		e.Reason, e.Message, e.Actor = statemachine.ReasonGateClosed, words, words
		for i := range 10 {
			e.Gates = append(e.Gates, statemachine.GateResult{Name: strings.Repeat("g", maxGateName-1) + string(rune('0'+i)), Result: statemachine.GateClosed, Message: words})
		}
		return e
	}
	for name, next := range map[string]func(*story, int64) statemachine.Event{"rollouts that start": largest, "gates that are closed": wordy} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			l := s.record(s.adopted(), s.started(1, "db-b", statemachine.ReasonNewRevision))
			var refused statemachine.Event
			for number := int64(2); ; number++ {
				refused = next(s, number)
				longer, err := l.Append([]statemachine.Event{refused})
				if errors.Is(err, ErrMustSeal) {
					break
				}
				s.Expect(err).NotTo(HaveOccurred())
				l = longer
			}
			s.status = l.Status()
			text, err := json.Marshal(s.status)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(len(text)).To(And(BeNumerically(">", 200_000), BeNumerically("<", 300_000)))
			s.Expect(len(s.status.Transitions)).To(BeNumerically("<", v1alpha1.MaxTransitions))
			t.Logf("%d transitions are %d kB", len(s.status.Transitions), len(text)/1000)

			pages := l.Cut()
			s.sealed(pages)
			for _, page := range pages {
				l, err = l.Sealed(page)
				s.Expect(err).NotTo(HaveOccurred())
			}
			l, err = l.TrimSealed().Append([]statemachine.Event{refused})
			s.Expect(err).NotTo(HaveOccurred())
			s.status = l.Status()
			s.Expect(Verify("db", s.status, s.pages())).To(Succeed())
		})
	}
}
