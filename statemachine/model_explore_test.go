package statemachine

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// graph is every world that can be reached, in the order of the shortest way to it. A world is known by a hash of 64
// bits: with n worlds the probability that two of them were taken for one is below n²/2⁶⁵, a millionth for six million.
// What a world was is found again by going the way to it.
type graph struct {
	*setting
	hash    maphash.Seed
	known   map[uint64]int32
	parent  []int32 // -1 for the first
	via     []action
	fair    []int32 // where fair actions lead, one world after the other
	fairAt  []int32 // where those of each world begin in fair
	ends    map[int32]world
	broken  map[string]*found
	actions int
	first   world
	trial   world                       // in which an action is tried; worlds are large
	used    [][]world                   // boxes of shelves that are done with
	suffice func(violation string) bool // stops there
	stopped bool
}

// found is a violation, with the shortest way to it.
type found struct {
	count int
	from  int32
	by    []action // one, or none if it is that nothing leads on
}

// start is a world to begin from: the first, or one that a person has put right.
type start struct {
	world
	from int32
	via  action
}

// explore goes everywhere. With suffice it stops at the first such violation.
func explore(s *setting, suffice func(violation string) bool) *graph {
	g := &graph{
		setting: s, hash: maphash.MakeSeed(), known: map[uint64]int32{}, ends: map[int32]world{}, broken: map[string]*found{},
		suffice: suffice,
	}
	g.first = newWorld(s)
	first := g.first
	first.canonical()
	g.spread([]start{{world: first, from: -1}}, append(s.fairly(), s.moves...))
	if !g.stopped {
		g.live()
	}
	return g
}

// add makes a world known; it reports whether it is new.
func (g *graph) add(w *world, from int32, by action) (int32, bool) {
	h := maphash.Comparable(g.hash, *w)
	if id, known := g.known[h]; known {
		return id, false
	}
	id := int32(len(g.parent))
	g.known[h] = id
	g.parent, g.via = append(g.parent, from), append(g.via, by)
	return id, true
}

// spread goes from these worlds everywhere that the actions lead.
func (g *graph) spread(from []start, actions []action) {
	next := int32(len(g.parent))
	var frontier shelf
	for i := range from {
		if _, isNew := g.add(&from[i].world, from[i].from, from[i].via); isNew {
			g.put(&frontier, &from[i].world)
		}
	}
	for len(frontier) > 0 {
		var reached shelf
		for _, box := range frontier {
			for i := range box {
				g.step(&box[i], next, actions, &reached)
				next++
				if g.stopped {
					return
				}
			}
			g.used = append(g.used, box[:0])
		}
		frontier = reached
	}
}

// shelf holds worlds in boxes, so that none is moved when it grows.
type shelf [][]world

func (g *graph) put(s *shelf, w *world) {
	const box = 64
	if n := len(*s); n == 0 || len((*s)[n-1]) == box {
		if len(g.used) == 0 {
			g.used = append(g.used, make([]world, 0, box))
		}
		last := len(g.used) - 1
		*s, g.used = append(*s, g.used[last]), g.used[:last]
	}
	last := &(*s)[len(*s)-1]
	*last = append(*last, *w)
}

// step takes all actions in one world.
func (g *graph) step(w *world, id int32, actions []action, reached *shelf) {
	g.fairAt = append(g.fairAt, int32(len(g.fair)))
	moves := false
	t := &g.trial
	*t = *w
	g.diary.looked, g.diary.same = unseen, true
	for _, a := range actions {
		if !t.do(a) {
			continue // nothing has changed
		}
		g.actions++
		g.judge(id, a)
		t.canonical()
		to, isNew := g.add(t, id, a)
		if isNew {
			g.put(reached, t)
		}
		if a.fair() && to != id {
			g.fair = append(g.fair, to)
			moves = true
		}
		*t = *w
	}
	g.diary.same = false
	if !moves {
		g.ends[id] = *w
	}
}

// judge takes down what the action broke.
func (g *graph) judge(from int32, by action) {
	for _, v := range g.diary.violations {
		g.breaks(v, from, by)
	}
	g.diary.violations = g.diary.violations[:0]
}

func (g *graph) breaks(violation string, from int32, by ...action) {
	f := g.broken[violation]
	if f == nil {
		f = &found{from: from, by: by}
		g.broken[violation] = f
	}
	f.count++
	g.stopped = g.stopped || g.suffice != nil && g.suffice(violation)
}

// way is the actions that lead to a world.
func (g *graph) way(to int32, then ...action) []action {
	var actions []action
	for ; g.parent[to] >= 0; to = g.parent[to] {
		actions = append(actions, g.via[to])
	}
	slices.Reverse(actions)
	return append(actions, then...)
}

// violations are what was broken, what is reached first before the others.
func (g *graph) violations() []string {
	return slices.SortedFunc(maps.Keys(g.broken), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.broken[a].from, g.broken[b].from), strings.Compare(a, b))
	})
}

// counterexample is a shortest way to a violation, as a script.
func (g *graph) counterexample(violation string) string {
	f := g.broken[violation]
	return g.tell(g.way(f.from, f.by...))
}
