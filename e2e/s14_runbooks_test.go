package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Each runbook is followed from Blocked to Done: what it says to look at is there, and what it says to do is enough.
func TestS14Runbooks(t *testing.T) {
	t.Parallel()
	for i, c := range troubles() {
		if half && i%2 == 1 {
			continue // make stories follows all of them
		}
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			tell := tellWithAdmission
			if c.bare {
				tell = tellWithoutAdmission
			}
			tell(t, "s14-runbook-"+strings.ToLower(c.reason), func(s *story) {
				s.deadline = "30s"
				s.metrics, s.open = freeAddress(s), true
				s.runAs(pawlAccount)
				if c.create == nil {
					s.create("1")
				} else {
					c.create(s)
				}
				beside := c.cause(s)
				s.troubled(c.reason)
				s.exports(c.reason)
				s.looks(c.page())
				if beside.before != nil {
					beside.before()
				}
				s.follows(c.page(), c.parts...)
				if beside.after != nil {
					beside.after()
				}
				s.recovers()
				s.runs(runbook(s, c.page(), "How to make sure"))
			})
		})
	}
}

func troubles() []trouble {
	return slices.Concat(troublesOfPods(), troublesOfKubelets(), troublesAround(), troublesOfControllers(), troublesOfPolicies())
}

// partsOf are these commands of a page, or all of them.
func partsOf(g Gomega, page string, parts []int) []int {
	if len(parts) == 0 {
		for i := range runbook(g, page, "What to do") {
			parts = append(parts, i)
		}
	}
	return parts
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
		s.follows("RolloutWaitingTooLong", 0)
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		s.fate(0, "ready")
		s.follows("RolloutWaitingTooLong", 1)
		s.waitFor("the rollout to complete", rolloutDone(2))
	})
}

// Who fought over the partition has stopped: Pawl goes on by itself ten minutes after the third time, as the page says,
// and parks again.
func TestS14ContestedNoMore(t *testing.T) {
	if half {
		return // make stories takes the time
	}
	t.Parallel()
	tellWithoutAdmission(t, "s14-contested-no-more", func(s *story) {
		s.create("1")
		s.contested()
		third := time.Now()
		s.troubled("PartitionContested")
		s.Consistently(func() int32 { return partition(s.set()) }, 9*time.Minute+30*time.Second-time.Since(third), time.Second).
			Should(BeZero(), "Pawl does not fight")
		s.recovers()
		s.parkedNow()
		s.runs(runbook(s, "PartitionContested", "How to make sure"))
		s.setImage("2")
		s.waitFor("a plain update", rolloutDone(2))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
	})
}

// The manager is gone: its runbook shows so, and that the lease is no longer renewed. Started again it goes on. What to do
// for one that cannot begin is done in TestBadEnvironment.
func TestS14ManagerDown(t *testing.T) {
	tellWithAdmission(t, "s14-manager-down", func(s *story) {
		s.elect()
		s.deployed()
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

// A gate that cannot be evaluated: its alert begins, its page shows what is wrong, and ends when the gate is mended.
func TestS14GateErrors(t *testing.T) {
	tellWithAdmission(t, "s14-gate-errors", func(s *story) {
		w := s.monitored()
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{Gates: []pawlv1alpha1.Gate{{Name: "ready", Expression: "statefulSet.status.nothing > 0"}}})
		s.create("1", s.governed)
		s.setImage("2")
		s.waitFor("the gate", state("Waiting", "GateError", ""))
		w.waitForAlert("GateErrors", "pending") // fires after five minutes: config/prometheus/rules_test.yaml
		s.looks("GateErrors")
		s.fillsGate("statefulSet.status.readyReplicas > 0")
		s.follows("GateErrors")
		w.waitForAlert("GateErrors", "")
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.runs(runbook(s, "GateErrors", "How to make sure"))
		for _, result := range []string{"Error", "Open"} {
			w.waitForAnswer(`sum(pawl_gate_results_total{gate="ready", result="` + result + `"}) > 0`)
		}
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

// deployed has the Deployment of the manager there, as it is shipped. Nothing runs in its pods; the manager is that of
// the story.
func (s *story) deployed() {
	s.Expect(lab.apply(s.t.Context(), "../config/manager")).To(Succeed())
	s.t.Cleanup(func() {
		_ = lab.admin.Delete(context.Background(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pawlNamespace, Name: pawlAccount}})
	})
}

// troubled waits for a reason as an alert would show it. Of a log that is damaged, and of a mode that means nothing, the
// condition Stalled tells.
func (s *story) troubled(reason string) {
	s.t.Helper()
	s.Eventually(func() string {
		stalled := apimeta.FindStatusCondition(s.progress().Status.Conditions, "Stalled")
		if stalled == nil || stalled.Status != metav1.ConditionTrue {
			return ""
		}
		return stalled.Reason
	}, 3*patience, tick).Should(Equal(reason), "waiting for the trouble")
}

// exports waits for the series that the alerts on this reason ask for: Blocked, and of its class. What Pawl says of a log
// that is damaged, and of a mode that means nothing, counts as soft.
func (s *story) exports(reason string) {
	s.t.Helper()
	want := fmt.Sprintf(`(?m)^pawl_rollout_state_info\{class=%q,namespace=%q,pod="[^"]*",reason=%q,state="Blocked",statefulset=%q\} 1$`,
		cmp.Or(statemachine.Reason(reason).Class(), "soft"), s.namespace, reason, name)
	s.Eventually(func() (string, error) { return metricsAt(s.metrics) }, patience, tick).Should(MatchRegexp(want), "waiting for its series")
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

// looks: every command that shows the cause has something to show, but for those about what nobody plays on the lab: the
// logs of containers, and the lease of kube-controller-manager, which is alone there.
func (s *story) looks(page string) {
	s.t.Helper()
	for _, script := range runbook(s, page, "How to look") {
		for line := range strings.SplitSeq(script, "\n") {
			if !strings.HasPrefix(line, "kubectl logs ") && !strings.Contains(line, "lease kube-controller-manager") {
				s.Expect(s.runs([]string{line})).To(And(MatchRegexp(`\S`), Not(ContainSubstring("No resources found"))), "%s shows nothing", line)
			}
		}
	}
}

// follows does what the runbook says to do: all of it, or some of its commands where they are for different cases.
func (s *story) follows(page string, parts ...int) {
	s.t.Helper()
	scripts := runbook(s, page, "What to do")
	for _, i := range partsOf(s, page, parts) {
		s.runs(scripts[i : i+1])
	}
}

// fills sets a variable that a runbook leaves to the person who follows it.
func (s *story) fills(variable, value string) { s.filled = append(s.filled, variable+"="+value) }

// runs runs the commands of a runbook as they stand, in a checkout, with the labels of the alert and what a person filled
// in. What nobody filled in is an error.
func (s *story) runs(scripts []string) (said string) {
	s.t.Helper()
	dir := s.t.TempDir()
	config, err := filepath.Abs("../config")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(os.Symlink(config, filepath.Join(dir, "config"))).To(Succeed())
	for _, script := range scripts {
		env := append([]string{"NAME=" + name, "NAMESPACE=" + s.namespace, "POD=" + s.progress().Status.Pod}, s.filled...)
		code, printed := lab.sh(s.t.Context(), dir, "set -eu\n"+script, time.Minute, env...)
		s.Expect(code).To(BeZero(), "%s\n%s", script, printed)
		said += printed
	}
	return said
}
