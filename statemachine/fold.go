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
	for i, e := range events {
		name, err := after(base.Name, e.Type)
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
	case StepStarted, StepCompleted, StepAborted, StepSkipped, PodReplaced:
		s = s.step(e).free()
	case RevisionRestored:
		s.Restores, s.RestoredAt = s.Restores+1, e.Time
	case PartitionOverridden:
		s.Overrides = [3]time.Time{e.Time, s.Overrides[0], s.Overrides[1]}
	case PodRegressed:
		s.Finished, s.Prior = s.Finished.Without(e.Ordinals), s.Prior.Without(e.Ordinals)
	case Held:
		s.Hold, s.Clock = s.Hold.next(e), s.Clock.next(e)
	case BlockedEvent:
		s.Block, s.Hold, s.Clock = before.Block.next(e), s.Hold.next(e), s.Clock.next(e)
	case Released:
		s = s.released(e)
	case StepResumed:
		if before.Block.Reason == ReasonPartitionNotWritten {
			s.Step.StartedAt = e.Time // nobody could replace its pods before
		}
		s = s.free()
	case Unblocked, Settled:
		s = s.free()
	case RolloutCompleted:
		s.Finished = ordinalRange(s.Start, s.Replicas)
		s.StableRevision, s.Origin = s.Rollout.ToRevision, ""
		s.Restores, s.RestoredAt, s.Prior = 0, time.Time{}, ""
		s.Step = Step{}
		s = s.free()
	case Abandoned:
		s.Step, s.Mode = Step{}, ModeOff
		s = s.free()
	case Scaled:
		s = s.scaled()
	case PartitionParked:
		if e.TemplateDigest != "" {
			s.Starts = 0
		}
	}
	return s.show(e, before)
}

// step is the part of the fold that is about the open step.
func (s State) step(e Event) State {
	switch e.Type {
	case StepStarted:
		s.Step = Step{Ordinals: s.Step.Ordinals.Union(e.Ordinals), Partition: s.Partition, Reason: e.Reason, StartedAt: e.Time}
	case StepCompleted:
		s.Finished, s.LastCompleted = s.Finished.Union(s.Step.Ordinals), e.Time
		s.Step = Step{}
	case StepAborted:
		if s.Step.Ordinals.Has(s.Replace.Ordinal) { // a deletion that was not carried out is recorded anew, if ever
			s.Replaced, s.Replace = s.Replaced.Without(s.Step.Ordinals), Replacement{}
		}
		s.Step = Step{}
	case StepSkipped:
		s.Finished = s.Finished.Union(e.Ordinals)
	case PodReplaced:
		s.Replaced = s.Replaced.Union(e.Ordinals)
		s.Replace = Replacement{Ordinal: first(e.Ordinals), UID: e.PodUID, At: e.Time}
	default:
	}
	return s
}

// released: the first Ready pod of a new StatefulSet releases nothing; it only has to be remembered.
func (s State) released(e Event) State {
	if e.Reason == ReasonFirstReady {
		s.Origin = OriginCameUp
		return s
	}
	return s.free()
}
