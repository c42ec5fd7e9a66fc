package statemachine

import (
	"math"
	"time"
)

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
		spell := max(0, e.Time.Sub(s.Block.Since)) // two managers' clocks may differ
		r.BlockedSeconds += int32(min(spell/time.Second, math.MaxInt32/2))
	}
	return r
}
