package statemachine

import (
	"fmt"
	"time"
)

// Fold computes the state that events lead to from base. An error names the event that cannot follow the ones before.
func Fold(base State, events []Event) (State, error) {
	if base.Name == "" {
		base.Name = New
	}
	m := newMachine(base.Name)
	for i, e := range events {
		name, err := m.fire(e.Type)
		if err != nil {
			return base, fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		if e.State != "" && e.State != name {
			return base, fmt.Errorf("event %d of %d: %s leads to %s, but says %s", i+1, len(events), e.Type, name, e.State)
		}
		base = base.apply(e, name)
	}
	return base, nil
}

// FoldFromAnchor computes the state from events alone. The first must be Adopted or RolloutStarted: these carry
// everything that is remembered from before them.
func FoldFromAnchor(events []Event) (State, error) {
	if len(events) == 0 {
		return State{Name: New}, nil
	}
	base := State{Name: New}
	switch events[0].Type {
	case Adopted:
	case RolloutStarted:
		base.Name = Done
	default:
		return base, fmt.Errorf("the log begins with %s: want Adopted or RolloutStarted", events[0].Type)
	}
	return Fold(base, events)
}

// apply is one step of the fold: every field has the event that sets it.
func (s State) apply(e Event, name StateName) State {
	before := s
	e.State = name
	s.Rollout = s.Ended(e)
	if name != Blocked {
		s.Block = Block{Ordinal: noOrdinal}
	}
	s.Name = name
	s.LastEvent = e.Time
	s = s.remember(e)

	switch e.Type {
	case Adopted:
		s = s.adopt(e)
	case RolloutStarted:
		s = s.startRollout(e)
	case StepStarted:
		s.Step = Step{Ordinals: s.Step.Ordinals.Union(e.Ordinals), Partition: s.Partition, Reason: e.Reason, StartedAt: e.Time}
		s = s.free()
	case StepCompleted:
		s.Finished = s.Finished.Union(s.Step.Ordinals)
		s.LastCompleted = e.Time
		s.Step = Step{}
		s = s.free()
	case StepAborted:
		s.Step = Step{}
		s = s.free()
	case StepSkipped:
		s.Finished = s.Finished.Union(e.Ordinals)
		s = s.free()
	case PodReplaced:
		s.Replaced = s.Replaced.Union(e.Ordinals)
		s.Replace = Replacement{Ordinal: first(e.Ordinals), UID: e.PodUID}
		s = s.free()
	case RevisionRestored:
		s.Restored = true
	case PartitionOverridden:
		s.Overrides = [3]time.Time{e.Time, s.Overrides[0], s.Overrides[1]}
	case PodRegressed:
		s.Finished = s.Finished.Without(e.Ordinals)
	case Held:
		s.Hold, s.Clock = holdOf(e), s.Clock.next(e)
	case Released:
		if e.Reason == ReasonFirstReady {
			s.Origin = OriginCameUp
		} else {
			s = s.free()
		}
	case BlockedEvent:
		s.Block, s.Hold, s.Clock = before.Block.next(e), holdOf(e), s.Clock.next(e)
	case Unblocked, StepResumed, Settled:
		s = s.free()
	case RolloutCompleted:
		s.Finished = ordinalRange(s.Start, s.Replicas)
		s.StableRevision, s.Origin, s.Restored = s.Rollout.ToRevision, "", false
		s.Step = Step{}
		s = s.free()
	case Abandoned:
		s.Step, s.Mode = Step{}, ModeOff
		s = s.free()
	case Scaled:
		s = s.scaled()
	case PartitionParked:
	}
	return s.show(e, before)
}

var (
	noHold  = Hold{Ordinal: noOrdinal}
	noClock = Clock{Ordinal: noOrdinal}
)

// free is the state with nothing that holds it.
func (s State) free() State {
	s.Hold, s.Clock = noHold, noClock
	return s
}

func holdOf(e Event) Hold {
	return Hold{Reason: e.Reason, Ordinal: first(e.Ordinals), Changed: e.Time}
}

// remember takes over the facts that any event may carry.
func (s State) remember(e Event) State {
	if e.Generation > 0 {
		s.Generation = e.Generation
	}
	if e.Partition != nil {
		s.Partition, s.PreviousPartition, s.PartitionAt = *e.Partition, *e.Partition, e.Generation
		if e.PreviousPartition != nil {
			s.PreviousPartition = *e.PreviousPartition
		}
	}
	if e.Replicas != nil {
		s.Replicas = *e.Replicas
	}
	if e.Start != nil {
		s.Start = *e.Start
	}
	if e.TemplateDigest != "" {
		s.TemplateDigest = e.TemplateDigest
	}
	return s
}

// anchored is the state that an anchor leaves, apart from the rollout: nothing older survives but what it carries.
func (s State) anchored(e Event) State {
	return State{
		Name: s.Name, Generation: s.Generation, Replicas: s.Replicas, Start: s.Start, TemplateDigest: s.TemplateDigest,
		Partition: s.Partition, PreviousPartition: s.PreviousPartition, PartitionAt: s.PartitionAt,
		LastEvent: s.LastEvent, UID: e.StatefulSetUID, Mode: e.Mode, Origin: e.Origin, StableRevision: e.StableRevision,
		Revision: e.Revision, Hold: noHold, Clock: noClock, Block: Block{Ordinal: noOrdinal},
	}
}

func (s State) adopt(e Event) State {
	s = s.anchored(e)
	s.Rollout = Rollout{Number: e.Number}
	s.Finished = e.Ordinals
	return s
}

func (s State) startRollout(e Event) State {
	s = s.anchored(e)
	s.Finished = e.Ordinals
	s.Starts = max(e.Starts, 1)
	s.Rollout = Rollout{
		Number: e.Number, Reason: e.Reason, FromRevision: e.FromRevision, ToRevision: e.Revision,
		StartedBy: e.Actor, Cause: e.Cause, StartedAt: e.Time,
	}
	return s
}

// Ended returns the rollout as this event leaves it: with the outcome if the event ends it, and with the time in
// Blocked if the event ends that.
func (s State) Ended(e Event) Rollout {
	r := s.Rollout
	if !r.Open() {
		return r
	}
	if e.Type == StepCompleted {
		r.Steps += int32(s.Step.Ordinals.Len()) //nolint:gosec // at most maxOrdinals
	}
	switch e.Type {
	case RolloutCompleted:
		r.Outcome = OutcomeCompleted
	case Abandoned, Adopted:
		r.Outcome = OutcomeAbandoned
	case RolloutStarted:
		r.Outcome = OutcomeSuperseded
		if e.Reason == ReasonRollback {
			r.Outcome = OutcomeRolledBack
		}
	default:
	}
	if r.Outcome != "" {
		r.FinishedAt = e.Time
	}
	if leaves := e.Type != BlockedEvent && (e.State != "" && e.State != Blocked || r.Outcome != ""); s.Name == Blocked && leaves {
		r.BlockedSeconds += int32(e.Time.Sub(s.Block.Since) / time.Second)
	}
	return r
}

// next is the clock after a Held or Blocked event.
func (c Clock) next(e Event) Clock {
	n := Clock{Ordinal: first(e.Ordinals), Reason: e.Reason, Named: e.Time, Since: e.Time}
	switch {
	case e.Reason.class() == classNone:
		return noClock
	case n.Ordinal == noOrdinal:
		return c
	case c.Ordinal != n.Ordinal:
		return n
	}
	n.Named = c.Named
	if c.Reason.class() == n.Reason.class() {
		n.Since = c.Since
	}
	return n
}

// next is the block after a Blocked event.
func (b Block) next(e Event) Block {
	n := Block{Reason: e.Reason, Ordinal: first(e.Ordinals), Since: e.Time, Changed: e.Time}
	if b.Reason != "" {
		n.Since = b.Since
	}
	return n
}

// show sets what people see.
func (s State) show(e Event, before State) State {
	if e.Message != "" {
		s.Message = e.Message
	}
	switch e.Type {
	case Adopted, RolloutStarted, Settled, RolloutCompleted, Abandoned, Held, BlockedEvent:
		s.Reason, s.Pod = e.Reason, e.Pod
	case StepStarted:
		s.Reason, s.Pod = ReasonStarting, e.Pod
		if e.Reason != "" {
			s.Reason = e.Reason
		}
	case StepCompleted, StepAborted, Unblocked:
		s.Reason, s.Pod = s.Rollout.Reason, ""
	case StepResumed:
		s.Reason, s.Pod = ReasonStarting, e.Pod
	case Released:
		if e.Reason != ReasonFirstReady {
			s.Reason, s.Pod = s.Rollout.Reason, ""
			if s.Step.Open() {
				s.Reason, s.Pod = ReasonStarting, e.Pod
			}
		}
	default:
	}
	if s.Name != before.Name || s.Reason != before.Reason || e.Anchor() {
		s.Since = e.Time
	} else {
		s.Since = before.Since
	}
	return s
}

// scaled forgets the ordinals that are out of range. A step of which none is left is aborted by an event of its own.
func (s State) scaled() State {
	inRange := func(n int32) bool { return n >= s.Start && n-s.Start < s.Replicas }
	s.Finished = s.Finished.keep(inRange)
	if rest := s.Step.Ordinals.keep(inRange); rest != "" {
		s.Step.Ordinals = rest
	}
	return s
}

// ordinalRange is the set of n ordinals from start on.
func ordinalRange(start, n int32) Ordinals {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return OrdinalsOf(start)
	default:
		return Ordinals(fmt.Sprintf("%d-%d", start, start+n-1))
	}
}

// first is the lowest ordinal of the set, or noOrdinal.
func first(o Ordinals) int32 {
	for n := range o.All() {
		return n
	}
	return noOrdinal
}
