package statemachine

import "time"

// 12: watched since its creation, no pod was ever Ready, nothing ever completed, and it is dead, or has been starting at
// an older template for longer than a pod may take.
func nothingToProtect(v *view) bool {
	if !v.enforce() || v.s.Origin != OriginCreated || v.s.StableRevision != "" || v.nextPod() < 0 {
		return false
	}
	dead := false
	for i := range v.o.Pods {
		if p := &v.o.Pods[i]; p.Present && !neverReady(p) {
			return false
		}
		dead = dead || v.dead(i) || v.off(i) && v.reached(v.comesUpUntil(i))
	}
	return dead
}

// comesUpUntil is for how long a pod of an older template may be starting before all are released.
func (v *view) comesUpUntil(i int) time.Time { return v.factTime(i).Add(v.o.ProgressDeadline) }

func releaseAll(v *view) {
	v.startStep(Event{Reason: ReasonNothingToProtect, Gates: v.gates(true)}, 0)
}

// 12: the next pods are dead and another works: all of the run are released at once, over the health of the others.
func nextPodsDead(v *view) bool {
	return v.enforce() && v.deadRun() != "" && (len(v.o.Pods) == 1 || v.anyHealthy())
}

// deadRun is the contiguous run of dead pods that are next and not at the target.
func (v *view) deadRun() Ordinals {
	var run []int32
	for i := v.nextPod(); i >= 0 && v.dead(i) && !v.atTarget(i); i-- {
		if !v.o.Pods[i].Present && v.o.CurrentRevision == v.o.UpdateRevision {
			break // it comes back at the target without being released
		}
		run = append(run, v.ordinal(i))
	}
	return OrdinalsOf(run...)
}

func (v *view) anyHealthy() bool { return v.anyPod(v.healthy) }

func stepDead(v *view) {
	v.startStep(Event{Reason: ReasonPodDead, Gates: v.gates(true)}, v.index(first(v.deadRun())))
}

// 12: an outage of a set that once worked is no licence.
func totalOutage(v *view) bool {
	if v.deadRun() == "" {
		return false
	}
	return v.everyPod(v.dead)
}

func blockOutage(v *view) { v.block(ReasonTotalOutage, -1, finding{}) }

// 14: the next pod is the only unhealthy one and has been unready for a while: replacing it hurts nobody.
func onlyUnhealthyPod(v *view) bool {
	n := v.nextPod()
	return n >= 0 && v.aloneUnhealthy(n) && v.runsUnready(n)
}

// aloneUnhealthy reports whether no other pod is unhealthy, and this one may be replaced for it.
func (v *view) aloneUnhealthy(n int) bool {
	if !v.enforce() || !v.off(n) || v.healthy(n) {
		return false
	}
	if claimIn(&v.o.Pods[n], claimLost) != "" {
		return false // it would not come back
	}
	for i := range v.o.Pods {
		if i != n && !v.healthy(i) {
			return false
		}
	}
	return true
}

// runsUnready: Running, staying, on a Ready node, not ready now and unready for flapWindow, also if it flickered.
func (v *view) runsUnready(i int) bool {
	since := v.unreadySince(i)
	if since.IsZero() || v.has(v.countUnready, i) {
		return !since.IsZero()
	}
	return since.Before(v.o.Now) && v.reached(since.Add(flapWindow))
}

// unreadySince is since when a pod that runs, and stays, is unready; zero for one that is not so.
func (v *view) unreadySince(i int) time.Time {
	p := &v.o.Pods[i]
	if p.Phase != "Running" || p.Terminating || p.NodeNotReady || p.Ready {
		return time.Time{}
	}
	since := v.o.Now
	if !p.ReadySince.IsZero() {
		since = p.ReadySince
	}
	if v.named(i) && v.s.Clock.Named.Before(since) {
		since = v.s.Clock.Named
	}
	return since
}

func stepUnhealthy(v *view) {
	v.startStep(Event{Reason: ReasonOnlyUnhealthyPod, Gates: v.gates(true)}, v.nextPod())
}
