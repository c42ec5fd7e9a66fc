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

// everyPod reports whether all wanted pods are so, absent ones included.
func (v *view) everyPod(is func(int) bool) bool {
	return !v.anyPod(func(i int) bool { return !is(i) })
}

// anyPod reports whether some wanted pod is so.
func (v *view) anyPod(is func(int) bool) bool {
	for i := range v.o.Pods {
		if is(i) {
			return true
		}
	}
	return false
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

// steppedDead: released because it was dead, and not replaced yet. It stays dead until it is healthy, although the step
// restarted its clocks.
func (v *view) steppedDead(i int) bool {
	why := v.s.Step.Reason
	return (why == ReasonPodDead || why == ReasonNothingToProtect) && v.has(v.s.Step.Ordinals, i) && v.off(i) && v.released(i)
}

// dead: a pod that costs nothing to replace (I3).
func (v *view) dead(i int) bool {
	p := &v.o.Pods[i]
	if p.Terminating || v.healthy(i) {
		return false
	}
	if v.steppedDead(i) || v.has(v.countDead, i) || v.hardStalled(i) {
		return true
	}
	if p.Phase != "Running" && v.late(i) { // absent pods have no phase
		return true
	}
	if v.finding(i).reason.class() == classRefused { // nothing to lose, and nothing to wait for
		return true
	}
	return v.superseded(i) && neverReady(p)
}
