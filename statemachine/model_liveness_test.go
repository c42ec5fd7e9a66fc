package statemachine

import (
	"slices"
	"time"
)

// Liveness: from every world, with no more faults and with all that happens of itself happening sooner or later, an end
// is reached at which nothing happens any more. There Pawl is Done, or says what a person has to do; and when it is done,
// the next end is reached, until Pawl is Done.

// mostRemedies is how many times a person has to do what Pawl says, at most, after two faults: the template, and
// something for each of three pods, or for one the order to go on.
const mostRemedies = 5

// live looks at all ends, and at the worlds from which none is reached.
func (g *graph) live() {
	seen := int32(0)
	for round := 0; ; round++ {
		remedied := g.remedied(seen, round)
		if seen = int32(len(g.parent)); len(remedied) == 0 || g.stopped {
			break
		}
		g.spread(remedied, g.fairly())
	}
	if lost := g.endless(); lost >= 0 && !g.stopped {
		g.breaks("liveness: there is no end to it", lost)
	}
}

// remedied are the ends from this world on, those that are no good end with the remedy applied that Pawl names.
func (g *graph) remedied(seen int32, round int) []start {
	var remedied []start
	for _, id := range g.newEnds(seen) {
		w := g.ends[id]
		if wrong := w.quiet(); wrong != "" {
			g.breaks(wrong, id)
		}
		if w.isOver() {
			if wrong := w.over(); wrong != "" {
				g.breaks(wrong, id)
			}
			continue
		}
		t, a, ok := w.remedy()
		switch {
		case !ok:
			g.breaks("liveness: it ends in "+w.standing()+", and no remedy changes anything", id)
		case round == mostRemedies:
			g.breaks("liveness: remedies have no end: "+w.standing(), id)
		default:
			t.canonical()
			remedied = append(remedied, start{t, id, a})
		}
	}
	return remedied
}

func (g *graph) newEnds(from int32) []int32 {
	var ids []int32
	for id := range g.ends {
		if id >= from {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// endless is the first world from which no end is reached, or -1.
func (g *graph) endless() int32 {
	n := int32(len(g.parent))
	at := make([]int32, n+1) // where those that lead to a world begin in back
	for _, to := range g.fair {
		at[to+1]++
	}
	for i := range n {
		at[i+1] += at[i]
	}
	back, filled := make([]int32, len(g.fair)), slices.Clone(at[:n])
	for from := range n {
		for _, to := range g.fair[g.fairAt[from]:g.fairEnd(from)] {
			back[filled[to]] = from
			filled[to]++
		}
	}
	ends := make([]bool, n)
	var queue []int32
	for id := range g.ends {
		ends[id] = true
		queue = append(queue, id)
	}
	for len(queue) > 0 {
		to := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range back[at[to]:at[to+1]] {
			if !ends[from] {
				ends[from] = true
				queue = append(queue, from)
			}
		}
	}
	return int32(slices.Index(ends, false))
}

func (g *graph) fairEnd(id int32) int32 {
	if int(id)+1 < len(g.fairAt) {
		return g.fairAt[id+1]
	}
	return int32(len(g.fair))
}

// standing is what Pawl says of this world.
func (w *world) standing() string {
	return string(w.state.Name) + " " + string(w.state.Block.Reason+w.state.Hold.Reason)
}

// isOver: nobody has to do anything more.
func (w *world) isOver() bool {
	return w.state.Name == Done || w.set.mode == ModeOff && (w.state.Name == New || w.state.Name == "")
}

// over is what is wrong with a world in which Pawl is Done; empty if nothing is.
func (w *world) over() string {
	if w.set.mode == ModeOff {
		return ""
	}
	for i := w.start; i < w.start+w.set.replicas; i++ {
		if p := &w.pods[i]; p.kind != podAbsent && p.rev != w.set.template {
			return "liveness: Done, and a pod is not at the target"
		}
	}
	switch s := &w.set; {
	case s.cur != s.template || s.upd != s.template:
		return "I5: Done, and a lost pod comes back at another revision"
	case s.mode == ModeEnforce && s.partition != Parked:
		return "I5: Done, and not parked"
	default:
		return ""
	}
}

// quiet is what is wrong with a world in which nothing happens any more: Pawl must not ask to be woken (I9).
func (w *world) quiet() string {
	o := w.observe()
	if d := w.decide(w.state, o); !d.WakeAt.IsZero() && d.WakeAt.Sub(o.Now) < time.Hour {
		return "I9: nothing happens any more, and Pawl wakes up: " + w.standing()
	}
	return ""
}

// remedy does what Pawl says is to be done: of the things that its words may mean, the first that changes anything.
func (w *world) remedy() (world, action, bool) {
	for _, a := range w.remedies() {
		t := *w
		t.left = budget{}
		if a.free = true; t.do(a) {
			return t, a, true
		}
	}
	return *w, action{}, false
}

func (w *world) remedies() []action {
	if w.state.Name != Blocked {
		return w.orders(w.state.Hold.Reason)
	}
	switch b := &w.state.Block; b.Reason {
	case ReasonTotalOutage:
		return append(w.revert(), action{act: actForce})
	case ReasonSupersededPodStuck:
		return []action{{act: actKill, n: int8(b.Ordinal)}}
	case ReasonGateClosed, ReasonGateError:
		return []action{{act: actGate}, {act: actGateUp}}
	case ReasonDisruptionBudget:
		return []action{{act: actBudget, n: 1}}
	case ReasonNotPromoted:
		return append(each(actUnstick, 0, 1, 2, 3, 4), w.condemned()...)
	default:
		all := append(w.looksAt(b.Ordinal), w.revert()...)
		if b.Ordinal >= 0 { // its image, its configuration
			all = append(all, action{act: actCure, n: int8(b.Ordinal)})
		}
		return append(all, action{act: actPause}, action{act: actMode})
	}
}

// condemned is to delete the pods that are out of range, the highest first.
func (w *world) condemned() []action {
	var all []action
	for i := int32(maxOrdinal) - 1; i >= 0; i-- {
		if !w.wants(i) {
			all = append(all, action{act: actKill, n: int8(i)})
		}
	}
	return all
}

// orders are what takes back or gives what a person asked for.
func (w *world) orders(held Reason) []action {
	switch held {
	case ReasonPaused:
		return []action{{act: actPause}}
	case ReasonObserving:
		return []action{{act: actMode}}
	case ReasonAwaitingApproval:
		return []action{{act: actApprove}}
	case ReasonConcurrencyLimit: // the other one is through
		return []action{{act: actSlot}}
	default:
		return nil
	}
}

// looksAt is what a person does for the pod that Pawl names.
func (w *world) looksAt(ordinal int32) []action {
	if ordinal < 0 {
		return nil
	}
	n := int8(ordinal)
	all := []action{{act: actFind, n: n}, {act: actBack, n: n}, {act: actUnstick, n: n}}
	if w.pods[n].kind == podExited {
		all = append(all, action{act: actHeal, n: n})
	}
	return all
}

// revert is to a template that works; the way back first.
func (w *world) revert() []action {
	if w.behaves[w.set.template] == startsWell {
		return nil
	}
	var all []action
	for n, rev := range revisions {
		switch {
		case w.behaves[rev] != startsWell:
		case rev == w.state.StableRevision:
			all = slices.Insert(all, 0, action{act: actTemplate, n: int8(n)})
		default:
			all = append(all, action{act: actTemplate, n: int8(n)})
		}
	}
	return all
}
