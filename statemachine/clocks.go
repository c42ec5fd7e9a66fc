package statemachine

import "time"

// hardStalled: a finding that does not heal by waiting, past its grace.
func (v *view) hardStalled(i int) bool {
	f := v.finding(i)
	switch {
	case f.reason.class() == classTerminal:
		return true
	case f.reason.class().hard():
		since := v.stalledSince(i, f)
		if !since.Before(v.o.Now) { // a clock that begins now has no alarm yet, unless an object's time, cut to the second, says so
			since = later(since, v.provenSince(i, f))
		}
		return !since.Equal(v.o.Now) && v.reached(since.Add(v.o.StallGrace))
	default:
		return false
	}
}

// finding is what is wrong with this pod; the zero finding if it is healthy.
func (v *view) finding(i int) finding {
	if v.healthy(i) {
		return finding{}
	}
	p := &v.o.Pods[i]
	if p.Told.Reason != "" && p.Told.Last.Add(objectTime).Before(v.floor(i)) { // it speaks of an earlier try
		earlier := *p
		earlier.Told = Told{}
		p = &earlier
	}
	return examine(p, v.o.Now)
}

// stalledSince is when the clock of a finding started: with the Held that names the pod with a reason of this class,
// or else, when Pawl did not see it begin, with the newest object time that proves it.
func (v *view) stalledSince(i int, f finding) time.Time {
	since := v.o.Now
	if proven := v.provenSince(i, f); !proven.IsZero() {
		if proven = later(proven, v.floor(i)); proven.Before(since) {
			since = proven
		}
	}
	if c := v.s.Clock; v.named(i) && c.Reason.class() == f.reason.class() && c.Since.Before(since) {
		since = c.Since
	}
	return since
}

// objectTime is how much later than its object time says a thing may have happened: these are cut to whole seconds.
const objectTime = time.Second - time.Microsecond

// provenSince is the newest object time that proves the finding; zero if there is none. What was published before the
// node came back says nothing of now. A pod without an object time that shows what the named pod shows goes by that
// pod's clock: two pods that cannot pull one image are one stall.
func (v *view) provenSince(i int, f finding) time.Time {
	if !f.since.IsZero() {
		return later(f.since, v.o.Pods[i].NodeSince).Add(objectTime)
	}
	c, t := v.s.Clock, v.factTime(i)
	if c.Ordinal == noOrdinal || v.named(i) || c.Reason.class() != f.reason.class() || t.IsZero() {
		return time.Time{}
	}
	return later(c.Since, t.Add(objectTime))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// floor is the newest progress: no clock of this pod began before it.
func (v *view) floor(i int) time.Time {
	t := later(v.s.Rollout.StartedAt, v.s.LastCompleted)
	if v.has(v.s.Step.Ordinals, i) {
		t = later(t, v.s.Step.StartedAt)
	}
	return t
}

// late: past the progress deadline without being finished. The clock belongs to the ordinal: restarts, new uids and
// flips reset nothing.
func (v *view) late(i int) bool {
	start := v.lateStart(i)
	return !start.IsZero() && v.reached(start.Add(v.o.ProgressDeadline))
}

// lateStart is when the progress deadline of this pod began; zero if it has not.
func (v *view) lateStart(i int) time.Time {
	var start time.Time
	switch {
	case v.has(v.s.Step.Ordinals, i):
		start = v.s.Step.StartedAt
	default:
		if v.named(i) {
			start = v.s.Clock.Named
		}
		if t := v.factTime(i); t.After(v.floor(i)) && (start.IsZero() || t.Before(start)) {
			start = t
		}
	}
	if p := &v.o.Pods[i]; !start.IsZero() && p.Terminating {
		start = later(start, p.DeletionTime) // its grace period is its own
	}
	return start
}

// overdue: nothing has been finished for the progress deadline, because one pod or another was in the way, and this is
// the one now. Pods that flap in turn name each other for ever.
func (v *view) overdue(i int) bool {
	c := v.s.Clock
	return v.late(i) || v.named(i) && v.reached(c.Any.Add(v.o.ProgressDeadline))
}

// named reports whether it is this pod whose clock runs.
func (v *view) named(i int) bool { return v.s.Clock.Ordinal == v.ordinal(i) }

// factTime is the object time since when a pod in the way is known to be so; zero if no object tells.
func (v *view) factTime(i int) time.Time {
	p := &v.o.Pods[i]
	switch {
	case p.Terminating:
		return p.DeletionTime
	case p.Present && !p.Ready && !p.ReadySince.IsZero():
		return p.ReadySince
	case p.Present && !p.Ready:
		return p.Created
	default:
		return time.Time{}
	}
}

// quietSince is the newest object time at which anything happened to the pod.
func quietSince(p *Pod) time.Time {
	t := later(p.Created, p.ReadySince)
	for i := range p.Containers {
		t = later(t, p.Containers[i].RunningSince)
		for _, e := range []*Exit{p.Containers[i].Terminated, p.Containers[i].Last} {
			if e != nil {
				t = later(t, e.FinishedAt)
			}
		}
	}
	return t
}
