package e2e

import (
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// kills are the writes of a manager, with a story in which each is seen three times. A write that is not among them fails
// every story.
var kills = []kill{
	{"create rolloutprogresses", logsLost},
	{"update rolloutprogresses/status", goodImages},
	{"patch rolloutprogresses", recreations},
	{"create rolloutrecords", goodImages},
	{"patch statefulsets", goodImages},
	{"patch statefulsets/status", recreations},
	{"delete pods", reverts},
	{"delete rolloutrecords", recordsAged},
}

type kill struct {
	write string // as in the audit log
	story *undisturbed
}

// occurrences of each failpoint at which the manager is killed.
const occurrences = 3

// The manager is killed before and after every write that it makes, at each of its first three occurrences, and started
// again. Everything ends as if it had not been: the same pods, the same steps in the log, the same partitions (I7).
func TestKills(t *testing.T) {
	t.Parallel()
	cells := map[*undisturbed][]*proxy{}
	for i, k := range kills {
		for _, after := range []bool{false, true} {
			for nth := 1; nth <= occurrences; nth++ {
				if chosen := 1 + i%occurrences; !half || nth == chosen {
					cells[k.story] = append(cells[k.story], &proxy{at: failpoint{write: k.write, after: after}, nth: nth})
				}
			}
		}
	}
	for u, struck := range cells {
		t.Run(u.title, func(t *testing.T) {
			t.Parallel()
			var want []string
			tellOne(t, "kill-none-"+u.title, appsv1.OrderedReadyPodManagement, true, settings{}, func(s *story) { want = u.tell(s) })
			for _, p := range struck {
				t.Run(fmt.Sprintf("%s/%d", p.at, p.nth), func(t *testing.T) {
					t.Parallel()
					tellOne(t, "kill-"+u.title, appsv1.OrderedReadyPodManagement, true, settings{via: p}, func(s *story) {
						got := u.tell(s)
						s.Expect(p.reached()).To(Succeed())
						s.Expect(p.worked()).To(Succeed())
						s.Expect(got).To(Equal(want), "as if the manager had not been killed %s, the %d. time", p.at, p.nth)
					})
				})
			}
		})
	}
}

// undisturbed is a story that is told once without a kill, to know what comes of it, and then with a kill in each cell.
type undisturbed struct {
	title  string
	script func(*story)
}

// tell tells it and one rollout more, which whoever was started again has to lead. It returns the outline of both.
func (u *undisturbed) tell(s *story) []string {
	u.script(s)
	next := int64(1)
	if r := s.progress().Status.Rollout; r != nil {
		next += r.Number
	}
	s.setImage("last")
	s.waitFor("one rollout more", rolloutDone(next))
	s.parkedNow()
	return s.outline()
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

// Records are older than they have to be kept.
var recordsAged = &undisturbed{title: "aged", script: func(s *story) {
	s.keeps = true
	s.runAs(pawlAccount)
	for n := range occurrences {
		record := ledger.Record(s.namespace, s.pageOf(fmt.Sprint("gone-", n), 100*24*time.Hour))
		s.Expect(lab.admin.Create(s.t.Context(), &record)).To(Succeed())
	}
	s.keeps = false
	s.runAs(pawlAccount) // it looks at the start
	for n := range occurrences {
		s.Eventually(func() int { return len(s.recordsOf(fmt.Sprint("gone-", n))) }, patience, tick).Should(BeZero(), "waiting for the old records to go")
	}
	s.create("1")
}}

// outline is what may not depend on whether the manager was killed: what the log tells beside that somebody waits, and what
// became of the pods and the partition.
func (s *story) outline() []string {
	var lines []string
	log := s.events()
	for i, t := range log {
		if t.Type == "Abandoned" && i+1 < len(log) && log[i+1].Reason == "Recreated" {
			continue // whether a manager looks between the end of the one and the begin of the next is chance
		}
		if t.Type == "RolloutStarted" && i > 0 && log[i-1].Reason == "Recreated" {
			t.Reason = "Recreated" // BringUp if not all pods were adopted yet when the manager looked
		}
		lines = append(lines, inOutline(t)...)
	}
	lines = slices.Compact(lines) // a restore that was overwritten, or cut short by more than a second, is recorded again
	j, st := s.judge(), s.progress().Status
	lines = append(lines,
		fmt.Sprintf("%s %s %s", st.State, st.Reason, st.Progress),
		fmt.Sprintf("pods were replaced in the order %v, deleted by Pawl: %v", j.endings, s.deletions()),
		fmt.Sprintf("partition %v, by Pawl %v", j.partitions, j.byPawl))
	for i := range 3 {
		pod := s.pod(i)
		lines = append(lines, fmt.Sprintf("%s %s ready=%t, %d in all", pod.Name, pod.Spec.Containers[0].Image, ready(pod), len(j.uids[i])))
	}
	return lines
}

// inOutline is the line of a transition in the outline, if it has one.
func inOutline(t pawlv1alpha1.Transition) []string {
	reason, ordinals, revision := t.Reason, t.Ordinals, ""
	switch {
	case strings.HasPrefix(t.Type, "Rollout"), t.Type == "Adopted":
		ordinals = "" // those that are there already: of pods that come up, how many is chance
	case strings.HasPrefix(t.Type, "Step"), t.Type == "PodReplaced", t.Type == "Parked", t.Type == "Abandoned":
	case t.Type == "RevisionRestored":
		revision = t.Revision
	case t.Type == "Blocked" && strings.Contains(pullReasons, t.Reason):
		reason = pullReasons // whichever the kubelet says at that moment
	case t.Type == "Blocked":
	default:
		return nil
	}
	line := []string{t.Type, reason, ordinals, revision}
	if aboutPartition(t) {
		line = append(line, fmt.Sprintf("%d>%d", *t.PreviousPartition, *t.Partition))
	}
	return []string{strings.Join(slices.DeleteFunc(line, func(word string) bool { return word == "" }), " ")}
}

// byLot has the manager of stories S1 to S9 killed at a failpoint that the lot decides, if KILLS is a number: make kills;
// and with FAULTS that of every story meet an API that fails: make faults. What the stories ask for they ask for all the same.
func byLot(title, policy, where string) *proxy {
	if title == "s1-reads" {
		return nil // it counts what a manager reads that nobody disturbs
	}
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
