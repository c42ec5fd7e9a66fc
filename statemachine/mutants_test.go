package statemachine

import (
	"slices"
	"testing"
)

// TestMutantsAreFound: the properties can fail. With rules or facts taken out, random worlds break the invariant that
// they are for.
func TestMutantsAreFound(t *testing.T) {
	for _, m := range []struct {
		name, breaks string
		without      []string
	}{
		{"a step beside unhealthy pods", "I4", []string{"14 pod unhealthy"}},
		{"a step while one is in flight", "I4", []string{"8 step in flight", "14 pod unhealthy"}},
		{"nobody looks at what others released", "I1", []string{"6 released by others", "14 pod unhealthy", "8 step in flight"}},
		{"the revision is not restored after a re-creation", "I5", []string{"3 restore the revision"}},
		{"the claim of the next pod is not looked at", "I2", []string{"15 claim lost"}},
		{"a stale read is believed", "I8", []string{"a0 stale read"}},
	} {
		t.Run(m.name, func(t *testing.T) {
			defer take(t, m.without)()
			const worlds = 3000
			for seed := range uint64(worlds) {
				if broken := wander(seededDice(seed), 120).broken(m.breaks); len(broken) > 0 {
					t.Logf("seed %d: %s", seed, broken[0])
					return
				}
			}
			t.Errorf("%d worlds, and none broke %s", worlds, m.breaks)
		})
	}
}

// take takes rules and facts out, and returns what puts them back.
func take(t *testing.T, names []string) func() {
	t.Helper()
	oldRules, oldFacts := slices.Clone(rules), slices.Clone(whatHappened)
	for _, name := range names {
		r := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		f := slices.IndexFunc(whatHappened, func(f fact) bool { return f.name == name })
		switch {
		case r >= 0:
			rules[r].when = func(*view) bool { return false }
		case f >= 0:
			whatHappened[f].stops = func(*view) bool { return false }
		default:
			t.Fatalf("there is no rule or fact %q", name)
		}
	}
	return func() { rules, whatHappened = oldRules, oldFacts }
}
