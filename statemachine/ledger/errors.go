package ledger

import (
	"errors"
	"fmt"

	"pawl.dev/pawl/api/v1alpha1"
)

var (
	// ErrMustSeal says that status has no room for the events: seal Cut, and append them to TrimSealed.
	ErrMustSeal = errors.New("no room for the events in status: seal the log first")

	// ErrTooManyEvents says that the events would not even fit into an empty page. Append the first MaxEvents of them, and
	// decide again: a decision that was recorded in part is no different from one that was interrupted.
	ErrTooManyEvents = fmt.Errorf("more than %d events at once", MaxEvents)

	// ErrStale says that a record is ahead of status: what was read is an older copy of status. Read it again. If the API
	// server itself has no newer one, the object was restored from a backup, and the remedy is that of a damaged log.
	ErrStale = errors.New("a RolloutRecord is ahead of status: an older copy of status was read")
)

// MaxEvents is how many events fit into one Append: one place is for the transition that a cut leaves in status.
const MaxEvents = v1alpha1.MaxTransitions - 1

// DamagedError says that the log is not what Pawl wrote.
type DamagedError struct {
	Name     string // of the StatefulSet
	Sequence int64  // of the first transition that is wrong
	What     string // what is wrong with it
	Record   string // the RolloutRecord that it was found in; empty if it was found in status
}

// Error names the place and what is wrong with it. What to do about it only the caller knows: the log may be in a cluster, or
// in a copy of it.
func (e *DamagedError) Error() string {
	if e.Record != "" {
		return fmt.Sprintf("RolloutRecord %s is damaged at transition %d: %s", e.Record, e.Sequence, e.What)
	}
	return fmt.Sprintf("the log of %s is damaged at transition %d: %s", e.Name, e.Sequence, e.What)
}

// MissingError says that a transition is in no record at hand. Status alone is not enough if it begins in the middle of
// a rollout: then the records of that rollout are needed.
type MissingError struct {
	Name     string // of the StatefulSet
	Sequence int64  // of the missing transition
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("transition %d of %s is neither in status nor in a RolloutRecord", e.Sequence, e.Name)
}
