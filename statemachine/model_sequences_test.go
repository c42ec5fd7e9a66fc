package statemachine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

// sequence is what is done to a StatefulSet that nobody leads, and what the model makes of it.
type sequence struct {
	Seed     uint64
	Parallel bool
	Start    int32
	Replicas int32
	Steps    []sequenceStep
}

// sequenceStep is one action, and how things are once nothing moves any more.
type sequenceStep struct {
	Do                 string // one of sequenceMoves
	N                  int32
	Revision           string            // of template and recreate
	Pods               map[string]string // "db-0": "A ready"
	Current, Update    string
	Updated, Partition int32
}

// sequenceMoves are the actions that a lab can take as well.
var sequenceMoves = []struct {
	name   string
	do     func(w *world, n int32) bool
	values int // 0 to this, without it
}{
	{"template", (*world).setTemplate, len(revisions)},
	{"recreate", (*world).recreate, len(revisions)},
	{"partition", (*world).setPartition, 4},
	{"scale", (*world).scale, 4},
	{"delete", (*world).killed, 4},
	{"delete held", func(w *world, n int32) bool { return w.killed(n) && w.sticks(n) }, 4},
	{"let go", (*world).unsticks, 4},
	{"unready", (*world).getsUnready, 4},
	{"heal", (*world).isCured, 4},
	{"forget", func(w *world, _ int32) bool { return w.forgets() }, 1},
}

// TestModelSequences writes sequences to the file SEQUENCES, SEQUENCES_COUNT of them from SEQUENCES_SEED on. The lab takes
// the same actions, and its StatefulSet controller has to come to the same (TestS18Model in e2e).
func TestModelSequences(t *testing.T) {
	g := NewWithT(t)
	seed, count := uint64(1), uint64(20)
	if os.Getenv("SEQUENCES") != "" {
		var err error
		seed, err = strconv.ParseUint(os.Getenv("SEQUENCES_SEED"), 10, 64)
		g.Expect(err).NotTo(HaveOccurred())
		count, err = strconv.ParseUint(os.Getenv("SEQUENCES_COUNT"), 10, 64)
		g.Expect(err).NotTo(HaveOccurred())
	}
	var all []sequence
	done := map[string]int{}
	for n := range count {
		s := randomSequence(seed + n)
		for _, step := range s.Steps {
			done[step.Do]++
		}
		all = append(all, s)
	}
	g.Expect(done).To(HaveLen(len(sequenceMoves)), "every action is taken: %v", done)
	if path := os.Getenv("SEQUENCES"); path != "" {
		text, err := json.Marshal(all)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
	}
}

func randomSequence(seed uint64) sequence {
	r := rand.New(rand.NewPCG(seed, 3)) //nolint:forbidigo // the sequences are random, the decisions are not
	roll := r.IntN                      //nolint:forbidigo // as above
	s := &setting{
		parallel: roll(2) == 0, replicas: int32(1 + roll(3)), start: int32(roll(2)), behaves: map[string]behaviour{"C": staysUnready},
		budget: budget{100, 100, 100, 100, 100},
	}
	w := newWorld(s)
	w.set.mode = ModeOff
	out := sequence{Seed: seed, Parallel: s.parallel, Start: s.start, Replicas: s.replicas}
	const most = 8
	for len(out.Steps) < most {
		m := sequenceMoves[roll(len(sequenceMoves))]
		n := int32(roll(m.values))
		if !m.do(&w, n) {
			continue
		}
		w.settles()
		step := sequenceStep{Do: m.name, N: n, Current: w.set.cur, Update: w.set.upd, Updated: w.set.updated, Partition: w.set.partition}
		if m.values == len(revisions) {
			step.Revision = revisions[n]
		}
		step.Pods = map[string]string{}
		for i := range w.pods {
			if p := &w.pods[i]; p.kind != podAbsent {
				is := map[bool]string{true: "ready", false: "unready"}[p.kind == podReady]
				if p.terminating {
					is = "terminating"
				}
				step.Pods[podName(int32(i))] = fmt.Sprintf("%s %s", p.rev, is)
			}
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}

// settles lets the controller and the pods do what they do until nothing moves.
func (w *world) settles() {
	for moved := true; moved; {
		moved = w.controllerPods()
		moved = w.controllerStatus() || moved
		for i := range int32(maxOrdinal) {
			moved = w.gone(i) || moved
			moved = w.pods[i].kind == podStarting && w.comesUp(i) || moved // what fell over stays so until it is healed
		}
	}
}
