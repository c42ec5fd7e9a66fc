package statemachine

import (
	"fmt"
	"time"
)

// Decide answers one Observation: what happened since the log was last written, what to do about it, and when to look
// again if nothing changes. See the package comment for the order in which the answer is to be used.
func Decide(s State, o Observation) Decision {
	if s.Name == "" {
		s = State{Name: New, Block: Block{Ordinal: noOrdinal}}.free()
	}
	v := &view{o: &o, s: s, recorded: s}
	if v.happened() {
		v.next()
	}
	if v.bug != nil {
		return Decision{State: s, Bug: v.bug}
	}
	return Decision{State: v.s, Events: v.events, Intent: v.intent, WakeAt: v.wake, Rule: v.rule}
}

// happened is part (a): all that apply, in this order, each seen by the next. It reports whether part (b) may be asked.
func (v *view) happened() bool {
	for _, f := range whatHappened {
		if f.stops(v) {
			return false
		}
	}
	return true
}

// next is part (b), with the step that was recorded before a crash and never written settled first.
func (v *view) next() {
	if v.s.Step.Open() && v.o.Partition > v.s.Step.Partition {
		if parkedSince := v.s.Partition > v.s.Step.Partition; !parkedSince && v.confirmed() {
			if v.reached(v.s.Step.StartedAt.Add(v.o.ProgressDeadline)) {
				v.block(ReasonPartitionNotWritten, -1, finding{})
			}
			v.intent = Intent{Kind: SetPartition, Partition: v.s.Step.Partition}
			v.rule = "recorded step"
			return
		}
		v.abort(ReasonNotInEffect)
	} else if v.s.Step.Open() && v.s.Name == Blocked && v.s.Block.Reason == ReasonPartitionNotWritten {
		v.unblock() // it is written now
	}
	v.whatNext()
}

// confirmed asks part (b) with only those ordinals of the recorded step open that were so before it: the released ones,
// and below its partition one that is repaired where it stands. If the very same StepStarted comes out, the step is still
// right, and needs no second event (I7).
func (v *view) confirmed() bool {
	try := *v
	try.events, try.confirming = nil, true
	step := &try.s.Step
	below := int(step.Partition)
	step.Ordinals = step.Ordinals.keep(func(n int32) bool {
		return try.inRange(n) && (try.released(try.index(n)) || try.index(n) < below)
	})
	try.s.Name = Stepping
	if !step.Open() {
		*step = Step{}
		try.s.Name = Waiting
	}
	try.s.Block = Block{Ordinal: noOrdinal}
	// What the pods were when the step was recorded they still are: the record itself restarted their clocks, also that of
	// a released pod which was in flight.
	switch v.s.Step.Reason {
	case ReasonPodDead, ReasonNothingToProtect:
		try.countDead = v.s.Step.Ordinals
	case ReasonOnlyUnhealthyPod:
		try.countUnready = v.s.Step.Ordinals
	default:
	}
	try.whatNext()
	if try.bug != nil || len(try.events) != 1 {
		return false
	}
	got, want := try.s.Step, v.s.Step
	return try.events[0].Type == StepStarted &&
		got.Reason == want.Reason && got.Partition == want.Partition && got.Ordinals == want.Ordinals
}

// whatNext asks the rules in order; the first that matches decides.
func (v *view) whatNext() {
	for i := range rules {
		r := &rules[i]
		if !r.when(v) {
			continue
		}
		r.then(v)
		if !r.goesOn {
			v.rule = r.name
			return
		}
	}
	v.rule = "none"
}

// view is one decision in the making: what was seen, and the state as the events so far leave it.
type view struct {
	o        *Observation
	s        State
	recorded State // as the log had it
	events   []Event
	intent   Intent
	wake     time.Time
	rule     string
	bug      error

	confirming              bool     // a recorded step is asked for once more
	countDead, countUnready Ordinals // on the word of that step
}

// emit records an event. The state follows at once, so that later rules see clocks that it restarted.
func (v *view) emit(e Event) {
	e.Time = v.o.Now
	e.Generation = v.o.Generation
	if e.Message == "" {
		e.Message = v.explain(e)
	}
	next, err := Fold(v.s, []Event{e})
	if err != nil {
		v.bug = fmt.Errorf("decide: %w", err)
		return
	}
	e.State = next.Name
	v.s = next
	v.events = append(v.events, e)
}

// leaving returns the event with the partition that it leaves, and the one that was seen.
func (v *view) leaving(partition int32, e Event) Event {
	previous := v.o.Partition
	e.Partition, e.PreviousPartition = &partition, &previous
	if v.o.TemplateDigest != v.s.TemplateDigest {
		e.TemplateDigest = v.o.TemplateDigest
	}
	return e
}

// reached reports whether t has come; if not, it is a moment at which to look again.
func (v *view) reached(t time.Time) bool {
	if !t.After(v.o.Now) {
		return true
	}
	if v.wake.IsZero() || t.Before(v.wake) {
		v.wake = t
	}
	return false
}

// pod is the name of the pod with this index.
func (v *view) pod(i int) string { return fmt.Sprintf("%s-%d", v.o.Name, v.ordinal(i)) }

// about returns the event with the pod that it is about; none for index -1.
func (v *view) about(i int, e Event) Event {
	if i < 0 {
		return e
	}
	e.Pod, e.PodUID = v.pod(i), v.o.Pods[i].UID
	if e.Ordinals == "" {
		e.Ordinals = OrdinalsOf(v.ordinal(i))
	}
	return e
}

// enforce reports whether Pawl may write. With OnDelete and Recreate there is no partition to write.
func (v *view) enforce() bool { return v.o.Mode == ModeEnforce && v.o.Strategy == rollingUpdate }

// effective is the partition as people read it: parked means that all pods are held back.
func (v *view) effective() int { return min(int(v.o.Partition), len(v.o.Pods)) }

// nextPod is the index of the pod to be released next, or -1.
func (v *view) nextPod() int { return v.effective() - 1 }

func (v *view) abort(why Reason) {
	v.emit(v.leaving(v.o.Partition, Event{Type: StepAborted, Reason: why, Ordinals: v.s.Step.Ordinals}))
}
