package statemachine

import "fmt"

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
	s.Finished, s.Prior = e.Ordinals, e.Prior
	s.Starts = max(e.Starts, 1)
	s.Rollout = Rollout{
		Number: e.Number, Reason: e.Reason, FromRevision: e.FromRevision, ToRevision: e.Revision,
		StartedBy: e.Actor, Cause: e.Cause, StartedAt: e.Time,
	}
	return s
}
