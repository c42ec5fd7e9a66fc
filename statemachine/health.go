package statemachine

import "time"

const (
	// flapWindow is how long a pod has to be Ready after a restart, and how long a cause has to be absent, to be believed.
	flapWindow = time.Minute
	// unprobedSoak is how long a pod without a readiness probe has to be Ready: one that exits at once is Ready for
	// half a second.
	unprobedSoak = 10 * time.Second
)

// index is the index of an ordinal; the caller knows that it is in range.
func (v *view) index(ordinal int32) int { return int(ordinal - v.o.Start) }

func (v *view) ordinal(i int) int32 { return v.o.Start + int32(i) } //nolint:gosec // an index of replicas

func (v *view) has(set Ordinals, i int) bool { return set.Has(v.ordinal(i)) }

// inRange reports whether the StatefulSet wants this ordinal.
func (v *view) inRange(ordinal int32) bool {
	return ordinal >= v.o.Start && v.index(ordinal) < len(v.o.Pods)
}

// released reports whether the partition lets this pod go to the update revision. Indices count from ordinals.start.
func (v *view) released(i int) bool { return i >= int(v.o.Partition) }

func (v *view) off(i int) bool {
	return v.o.Pods[i].Present && v.o.Pods[i].Revision != v.o.UpdateRevision
}

func (v *view) atTarget(i int) bool {
	return v.o.Pods[i].Present && v.o.Pods[i].Revision == v.o.UpdateRevision
}

// finished: at the target and healthy.
func (v *view) finished(i int) bool { return v.atTarget(i) && v.healthy(i) }

// healthy: not terminating, on a Ready node, and Ready for as long as it takes to believe it.
func (v *view) healthy(i int) bool {
	p := &v.o.Pods[i]
	if !p.Present || p.Terminating || p.NodeNotReady || !p.Ready || p.Phase != "Running" {
		return false
	}
	soak := v.o.MinReady
	if p.Unprobed {
		soak = max(soak, unprobedSoak)
	}
	if restarted := lastRestart(p); !restarted.IsZero() && p.ReadySince.Sub(restarted) < loopWindow {
		soak = max(soak, flapWindow)
	}
	return v.reached(p.ReadySince.Add(soak))
}

// lastRestart is when a container of the pod last began again; zero if none did.
func lastRestart(p *Pod) time.Time {
	var last time.Time
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Restarts == 0 || c.Init && !c.Sidecar {
			continue
		}
		began := c.RunningSince
		if began.IsZero() && c.Last != nil {
			began = c.Last.FinishedAt
		}
		if began.After(last) {
			last = began
		}
	}
	return last
}

// neverReady reports whether this pod cannot have been Ready: the Ready condition is absent, or False since the
// kubelet first spoke of the pod. In doubt it was.
func neverReady(p *Pod) bool {
	if p.Ready {
		return false
	}
	return p.ReadySince.IsZero() || !p.StartTime.IsZero() && p.ReadySince.Sub(p.StartTime) <= time.Second
}

// superseded: at a revision that is neither the target nor the current one, so that it never comes back there.
func (v *view) superseded(i int) bool {
	return v.off(i) && v.o.Pods[i].Revision != v.o.CurrentRevision
}

// dead: a pod that costs nothing to replace (I3).
func (v *view) dead(i int) bool {
	p := &v.o.Pods[i]
	if p.Terminating || v.healthy(i) {
		return false
	}
	if v.has(v.countDead, i) || v.hardStalled(i) {
		return true
	}
	if p.Phase != "Running" && v.late(i) { // absent pods have no phase
		return true
	}
	return v.superseded(i) && neverReady(p)
}

// hardStalled: a finding that does not heal by waiting, past its grace.
func (v *view) hardStalled(i int) bool {
	f := v.finding(i)
	switch {
	case f.reason.class() == classTerminal:
		return true
	case f.reason.class().hard():
		since := v.stalledSince(i, f)
		return since.Before(v.o.Now) && v.reached(since.Add(v.o.StallGrace)) // a clock that begins now has no alarm yet
	default:
		return false
	}
}

// finding is what is wrong with this pod; the zero finding if it is healthy.
func (v *view) finding(i int) finding {
	if v.healthy(i) {
		return finding{}
	}
	return examine(&v.o.Pods[i], v.o.Now)
}

// stalledSince is when the clock of a finding started: with the Held that names the pod with a reason of this class,
// or else, when Pawl did not see it begin, with the newest object time that proves it.
func (v *view) stalledSince(i int, f finding) time.Time {
	since := v.o.Now
	if f.since.After(v.floor(i)) && f.since.Before(since) {
		since = f.since
	}
	if c := v.s.Clock; v.named(i) && c.Reason.class() == f.reason.class() && c.Since.Before(since) {
		since = c.Since
	}
	return since
}

// floor is the newest progress: no clock of this pod began before it.
func (v *view) floor(i int) time.Time {
	t := v.s.Rollout.StartedAt
	if v.s.LastCompleted.After(t) {
		t = v.s.LastCompleted
	}
	if v.has(v.s.Step.Ordinals, i) && v.s.Step.StartedAt.After(t) {
		t = v.s.Step.StartedAt
	}
	return t
}

// late: past the progress deadline without being finished. The clock belongs to the ordinal: restarts, new uids and
// flips reset nothing.
func (v *view) late(i int) bool {
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
	if start.IsZero() {
		return false
	}
	if p := &v.o.Pods[i]; p.Terminating && p.DeletionTime.After(start) {
		start = p.DeletionTime // its grace period is its own
	}
	return v.reached(start.Add(v.o.ProgressDeadline))
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
	t := p.Created
	later := func(u time.Time) {
		if u.After(t) {
			t = u
		}
	}
	later(p.ReadySince)
	for i := range p.Containers {
		later(p.Containers[i].RunningSince)
		for _, e := range []*Exit{p.Containers[i].Terminated, p.Containers[i].Last} {
			if e != nil {
				later(e.FinishedAt)
			}
		}
	}
	return t
}
