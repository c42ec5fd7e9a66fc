package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each runbook is followed from Blocked to Done: what it says to look at is there, and what it says to do is enough.
func TestS14Runbooks(t *testing.T) {
	t.Parallel()
	for i, c := range slices.Concat(troublesOfPods(), troublesOfKubelets(), troublesAround(), troublesOfControllers()) {
		if half && i%2 == 1 {
			continue // make stories follows all of them
		}
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			tell := tellWithAdmission
			if c.bare {
				tell = tellWithoutAdmission
			}
			tell(t, "s14-runbook-"+strings.ToLower(strings.Fields(c.reason)[0]), func(s *story) {
				s.deadline = "30s"
				s.runAs(pawlAccount)
				if c.create == nil {
					s.create("1")
				} else {
					c.create(s)
				}
				heal := c.cause(s)
				reason := s.troubled(c.reason)
				s.looks(reason)
				if heal != nil {
					heal()
				} else {
					s.follows(reason)
				}
				s.recovers()
				s.runs(runbook(s, reason, "How to make sure"))
			})
		})
	}
}

// The alert that asks for patience: for an hour nothing got on, and nothing is Blocked. What it says to look at is there,
// and holding the rollout on purpose is what it says.
func TestS14WaitingTooLong(t *testing.T) {
	tellWithAdmission(t, "s14-waiting-too-long", func(s *story) {
		s.create("1")
		s.fate(0, "never")
		s.setImage("2")
		s.waitFor("the pod in the way", state("Waiting", "NotReady", podName(0)))
		s.looks("RolloutWaitingTooLong")
		s.follows("RolloutWaitingTooLong")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		s.pause(false)
		s.fate(0, "ready")
		s.waitFor("the rollout to complete", rolloutDone(2))
	})
}

// The manager is gone: its runbook shows so, and that the lease is no longer renewed. Started again it goes on.
func TestS14ManagerDown(t *testing.T) {
	tellWithAdmission(t, "s14-manager-down", func(s *story) {
		s.elect()
		w := s.monitored()
		s.create("1")
		alive := runbook(s, "RolloutWaitingTooLong", "")[0]
		renewed := func() string {
			_, said := s.waitAs(alive, time.Minute)
			return said
		}
		first := renewed()
		s.Eventually(renewed, patience, time.Second).ShouldNot(Equal(first), "a manager that is alive renews its lease")

		s.stopManager(syscall.SIGKILL)
		w.waitForAlert("ManagerDown", "pending") // fires after five minutes: config/prometheus/rules_test.yaml
		last := renewed()
		s.Consistently(renewed, 10*time.Second, time.Second).Should(Equal(last), "nobody renews the lease")
		s.looks("ManagerDown")
		s.setImage("2")
		s.startManager()
		w.waitForAlert("ManagerDown", "")
		s.waitFor("the rollout to complete", rolloutDone(2))
	})
}

// recovers waits until the rollout is Done and nothing stalls: of a log that is damaged, and of a mode that means nothing,
// the state says nothing.
func (s *story) recovers() {
	s.t.Helper()
	s.Eventually(func() string {
		st := s.progress().Status
		if c := apimeta.FindStatusCondition(st.Conditions, "Stalled"); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Sprintf("still stalled: %v", c)
		}
		return done("")(st)
	}, 2*patience, tick).Should(BeEmpty(), "waiting for the end of the trouble")
}

// election is held by the story whose manager may be the leader: the lease is one for the cluster.
var election sync.Mutex

// elect starts the manager again as one of several replicas.
func (s *story) elect() {
	election.Lock()
	s.t.Cleanup(election.Unlock)
	s.elects = true
	s.runAs(s.account)
}

// troubled waits for one of these reasons, which stand for each other, and returns the one that an alert would show. Of
// a log that is damaged, and of a mode that means nothing, the condition Stalled tells.
func (s *story) troubled(reasons string) (shown string) {
	s.t.Helper()
	s.Eventually(func() bool {
		st := s.progress().Status
		stalled := apimeta.FindStatusCondition(st.Conditions, "Stalled")
		if stalled == nil || stalled.Status != metav1.ConditionTrue {
			return false
		}
		shown = stalled.Reason
		return slices.Contains(strings.Fields(reasons), shown)
	}, 3*patience, tick).Should(BeTrue(), "waiting for %s", reasons)
	if shown == "LogDamaged" {
		return "LedgerBroken" // the name of its alert
	}
	return shown
}

// runbook is the commands of one section of a runbook; of what stands before the first one if it has no name.
func runbook(g Gomega, reason, section string) []string {
	return commands(g, "runbooks/"+reason+".md", section)
}

// commands are those of one section of a page of the docs.
func commands(g Gomega, page, section string) []string {
	text, err := os.ReadFile("../docs/" + page)
	g.Expect(err).NotTo(HaveOccurred())
	at, scripts := "", []string(nil)
	var script []string // of the block that is open
	indent, open := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch trimmed := strings.TrimLeft(line, " "); {
		case strings.HasPrefix(line, "## "):
			at = strings.TrimPrefix(line, "## ")
		case trimmed == "```sh":
			indent, open, script = line[:len(line)-len(trimmed)], true, nil
		case open && trimmed == "```":
			open = false
			if at == section {
				scripts = append(scripts, strings.Join(script, "\n"))
			}
		case open:
			script = append(script, strings.TrimPrefix(line, indent))
		}
	}
	g.Expect(open).To(BeFalse(), "a block of %s has no end", page)
	g.Expect(scripts).NotTo(BeEmpty(), "the section %q of %s has no command", section, page)
	return scripts
}

// looks: every command that shows the cause works, but for those about what nobody plays on the lab: the logs of
// containers, and the lease of kube-controller-manager, which is alone there.
func (s *story) looks(reason string) {
	s.t.Helper()
	for _, script := range runbook(s, reason, "How to look") {
		for line := range strings.SplitSeq(script, "\n") {
			if !strings.HasPrefix(line, "kubectl logs ") && !strings.Contains(line, "lease kube-controller-manager") {
				s.runs([]string{line})
			}
		}
	}
}

// follows does what the runbook says to do.
func (s *story) follows(reason string) {
	s.t.Helper()
	s.runs(runbook(s, reason, "What to do"))
}

// runs runs the commands of a runbook as they stand, with the labels of the alert.
func (s *story) runs(scripts []string) {
	s.t.Helper()
	for _, script := range scripts {
		code, said := s.waitAs("set -e\nPOD="+s.progress().Status.Pod+"\n"+script, time.Minute)
		s.Expect(code).To(BeZero(), "%s\n%s", script, said)
	}
}
