package statemachine

import (
	"os"
	"testing"
	"time"
)

// TestModel goes everywhere, within the bounds of settings. Within go test the budgets are cut to one move of a sort;
// make model has them whole.
func TestModel(t *testing.T) {
	for _, policy := range []string{"OrderedReady", "Parallel"} {
		for _, s := range settings(policy == "Parallel") {
			if os.Getenv("MODEL") != "whole" {
				s.budget = s.budget.short()
			}
			t.Run(policy+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				begin := time.Now() //nolint:forbidigo // how long the checker takes, not what it decides
				g := explore(s, nil)
				t.Logf("%d worlds, %d actions, %d ends, %s", len(g.parent), g.actions, len(g.ends), time.Since(begin).Round(time.Millisecond)) //nolint:forbidigo // as above
				for _, v := range g.violations() {
					t.Errorf("%s (%d times)\n%s", v, g.broken[v].count, g.counterexample(v))
				}
			})
		}
	}
}

// short is at most one move of a sort.
func (b budget) short() budget {
	return budget{min(b.faults, 1), min(b.templates, 1), min(b.scales, 1), min(b.orders, 1), min(b.flips, 1)}
}
