package e2e

import (
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// kills are the writes of a manager, with a story in which each is seen three times.
var kills = []struct {
	write string
	story *undisturbed
}{
	{"create rolloutprogresses", logsLost},
	{"update rolloutprogresses/status", goodImages},
	{"patch rolloutprogresses", recreations},
	{"create rolloutrecords", goodImages},
	{"patch statefulsets", goodImages},
	{"patch statefulsets/status", recreations},
	{"delete pods", reverts},
}

// occurrences of each failpoint at which the manager is killed.
const occurrences = 3

// The manager is killed before and after every write that it makes, at each of its first three occurrences, and started
// again. Everything ends as if it had not been: the same pods, the same steps in the log, the same partition (I7).
func TestKills(t *testing.T) {
	t.Parallel()
	for i, k := range kills {
		for _, after := range []bool{false, true} {
			at := failpoint{write: k.write, after: after}
			for nth := 1; nth <= occurrences; nth++ {
				if chosen := 1 + i%occurrences; half && nth != chosen {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d", at, nth), func(t *testing.T) {
					t.Parallel()
					want := k.story.outline(t)
					p := &proxy{at: at, nth: nth}
					tellOne(t, "kill-"+k.story.title, appsv1.OrderedReadyPodManagement, true, settings{via: p}, func(s *story) {
						k.story.script(s)
						s.Expect(p.reached()).To(Succeed())
						s.Expect(s.outline()).To(Equal(want), "as if the manager had not been killed %s, the %d. time", at, nth)
					})
				})
			}
		}
	}
}

// undisturbed is a story that is told once without a kill, to know what comes of it.
type undisturbed struct {
	title  string
	script func(*story)
	once   sync.Once
	ends   []string
}

func (u *undisturbed) outline(t *testing.T) []string {
	u.once.Do(func() {
		tellOne(t, "kill-none-"+u.title, appsv1.OrderedReadyPodManagement, true, settings{}, func(s *story) {
			u.script(s)
			u.ends = s.outline()
		})
	})
	if u.ends == nil {
		t.Fatalf("%s was not told to the end without a kill", u.title)
	}
	return u.ends
}

// S1.
var goodImages = &undisturbed{title: "good", script: func(s *story) {
	s.create("1")
	s.setImage("2")
	s.waitFor("the rollout", rolloutDone(2))
	s.parkedNow()
	s.setImage("3")
	s.waitFor("another one", rolloutDone(3))
	s.parkedNow()
	s.recordsEndWith("RolloutCompleted Completed")
}}

// S3.
var reverts = &undisturbed{title: "reverts", script: func(s *story) {
	s.create("1")
	for range occurrences {
		s.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, podName(2)))
		s.setImage("1")
		s.waitFor("the rollback", done("RolledBack"))
		s.parkedNow()
	}
}}

// S7.
var recreations = &undisturbed{title: "recreations", script: func(s *story) {
	s.create("1")
	for n := range occurrences {
		s.recreate(fmt.Sprint(n + 2))
		s.waitFor("the rollout of what was created again", rolloutDone(int64(n+2)))
		s.parkedNow()
	}
}}

// A person deletes the RolloutProgress.
var logsLost = &undisturbed{title: "logs-lost", script: func(s *story) {
	s.create("1")
	for n := range occurrences - 1 {
		s.recordsEndWith("RolloutCompleted Completed")
		old := s.progress()
		s.Expect(lab.alice.Delete(s.t.Context(), old, client.Preconditions{UID: &old.UID})).To(Succeed())
		s.Eventually(func() bool { return s.progress().UID != old.UID && s.progress().Status.State == pawlv1alpha1.StateDone }, patience, tick).
			Should(BeTrue(), "waiting for the log to go on")
		s.setImage(fmt.Sprint(n + 2))
		s.waitFor("the next rollout", rolloutDone(int64(n+2)))
		s.parkedNow()
	}
}}

// outline is what may not depend on whether the manager was killed: the steps in the log, and what became of the pods and
// the partition.
func (s *story) outline() []string {
	var lines []string
	for _, t := range s.events() {
		if strings.HasPrefix(t.Type, "Step") || strings.HasPrefix(t.Type, "Rollout") || t.Type == "PodReplaced" {
			if strings.HasPrefix(t.Type, "Rollout") {
				t.Ordinals = "" // those that are there already: of pods that come up, how many is chance
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", t.Type, t.Reason, t.Ordinals)))
		}
	}
	j, st := s.judge(), s.progress().Status
	lines = append(lines,
		fmt.Sprintf("%s %s %s", st.State, st.Reason, st.Progress),
		fmt.Sprintf("pods were replaced in the order %v, deleted by Pawl: %v", j.endings, s.deletions()),
		fmt.Sprintf("partition %v", j.effective()))
	for i := range 3 {
		pod := s.pod(i)
		lines = append(lines, fmt.Sprintf("%s %s ready=%t, %d in all", pod.Name, pod.Spec.Containers[0].Image, ready(pod), len(j.uids[i])))
	}
	return lines
}

// byLot has the manager of stories S1 to S9 killed at a failpoint that the lot decides, if KILLS is a number: make kills;
// and with FAULTS that of every story meet an API that fails: make faults. What the stories ask for they ask for all the same.
func byLot(title, policy, where string) *proxy {
	if seed := os.Getenv("FAULTS"); seed != "" {
		return &proxy{faults: someFaults(seed, title, policy, where)}
	}
	seed := os.Getenv("KILLS")
	if seed == "" || !regexp.MustCompile(`^s[1-9]-`).MatchString(title) {
		return nil
	}
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, seed, title, policy, where)
	n := int(h.Sum64() % uint64(len(kills)*2*occurrences))
	return &proxy{at: failpoint{write: kills[n/2/occurrences].write, after: n%2 == 1}, nth: 1 + n/2%occurrences}
}

// killed is what became of each failpoint at each occurrence.
var killed = &matrix{cells: map[string][2]int{}}

type matrix struct {
	mu    sync.Mutex
	cells map[string][2]int // how often it went well, and how often not
}

// told counts a story whose manager was killed. One that did not come to the failpoint says nothing about it.
func (m *matrix) told(p *proxy, failed bool) {
	if p.nth == 0 || p.strike != nil {
		return // it is not there to kill
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cell := fmt.Sprintf("%s %d", p.at, p.nth)
	counts := m.cells[cell]
	switch {
	case failed:
		counts[1]++
	case p.reached() == nil:
		counts[0]++
	}
	m.cells[cell] = counts
}

// String is the table as it is in docs/reliability.md; empty if no manager was killed.
func (m *matrix) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cells) == 0 {
		return ""
	}
	lines := []string{"", "| the manager was killed | 1st | 2nd | 3rd |", "|---|---|---|---|"}
	for _, k := range kills {
		for _, after := range []bool{false, true} {
			at := failpoint{write: k.write, after: after}
			row := []string{at.String()}
			for nth := 1; nth <= occurrences; nth++ {
				counts, cell := m.cells[fmt.Sprintf("%s %d", at, nth)], "-"
				if counts != [2]int{} {
					cell = fmt.Sprintf("%d of %d", counts[0], counts[0]+counts[1])
				}
				row = append(row, cell)
			}
			lines = append(lines, "| "+strings.Join(row, " | ")+" |")
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
