package statemachine

import (
	"math/rand/v2"
	"testing"
)

// What the checker takes for one world goes on as one: whatever happens, a world and what is left of it when it is made
// comparable come to the same. Without that the search would pass worlds by that it never saw.
func TestModelForgetsNothingThatMatters(t *testing.T) {
	const walks, most = 200, 80
	for _, s := range append(settings(false), settings(true)...) {
		s.budget = budget{3, 3, 3, 3, 3}
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(walks) {
				way, forgot := forgets(s, seed, most)
				if !forgot {
					continue
				}
				told := *s
				told.diary = &diary{keeps: true}
				w := newWorld(&told)
				t.Fatalf("parallel: %t, seed %d: after %s it goes on differently\n%s", s.parallel, seed, way[len(way)-1], tell(&w, way))
			}
		})
	}
}

// forgets walks at random, in a world and in what is left of it, until they part. It returns the way.
func forgets(s *setting, seed uint64, most int) (way []action, forgot bool) {
	roll := rand.New(rand.NewPCG(seed, 3)).IntN //nolint:forbidigo // the worlds are random, the decisions are not
	actions := append(s.fairly(), s.moves...)
	whole := newWorld(s)
	left := whole
	left.canonical()
	for range most {
		a := action{act: actLeap} // what was long ago is what may be forgotten
		if roll(3) > 0 {
			a = actions[roll(len(actions))]
		}
		did, also := whole.do(a), left.do(a)
		if !did && !also {
			continue
		}
		way = append(way, a)
		w := whole
		w.canonical()
		left.canonical()
		if did != also || w != left {
			return way, true
		}
	}
	return way, false
}
