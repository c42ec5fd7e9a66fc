package e2e

import (
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// glass is a way past Pawl, as the runbooks have it under "Break glass".
type glass struct {
	title string
	page  string
	cause func(*story) // of an update that does not get on
	way   int          // the command that begins it
	stuck bool         // pod 0 is not ready, and has to be deleted under OrderedReady
	keeps bool         // the StatefulSet stays in Pawl's hands
}

// commands are those of the page that are for this case; empty if there is none.
func (c glass) commands(g Gomega) (begin, unstick, handBack string) {
	all := runbook(g, c.page, "Break glass")
	begin = all[c.way]
	if c.stuck {
		unstick = all[len(all)-2]
	}
	if !c.keeps {
		handBack = all[len(all)-1]
	}
	return begin, unstick, handBack
}

func glasses() []glass {
	unready := func(s *story) {
		s.fate(0, "never")
		s.setImage("2")
		s.troubled("NotReady")
	}
	return []glass{
		{title: "force", page: "NotReady", cause: unready, way: 0, stuck: true, keeps: true},
		{title: "away", page: "NotReady", cause: unready, way: 1, stuck: true},
		{title: "ledger", page: "LedgerBroken", way: 0, cause: func(s *story) {
			s.damage()
			s.troubled("LogDamaged")
			s.setImage("2")
		}},
		{title: "mode", page: "UnknownMode", way: 0, cause: func(s *story) {
			s.edit(func(set *appsv1.StatefulSet) { set.Labels["pawl.dev/mode"] = "Enforcing" })
			s.troubled("UnknownMode")
			s.setImage("2")
		}},
		{title: "manager", page: "ManagerDown", way: 0, cause: func(s *story) {
			s.stopManager(syscall.SIGKILL)
			s.setImage("2")
		}},
	}
}

// The glass is broken: an update that Pawl does not let through gets through all the same, with the commands of the
// runbook, and the next one is Pawl's again.
func TestS14BreakGlass(t *testing.T) {
	t.Parallel()
	for _, c := range glasses() {
		t.Run(c.title, func(t *testing.T) {
			tell(t, "s14-glass-"+c.title, func(s *story) {
				s.deadline = "30s"
				s.runAs(pawlAccount)
				s.create("1")
				c.cause(s)
				target := s.target()
				s.fills("WHY", "somebody must")
				s.excused[whateverTheHealth(target)], s.excused["kubectl-patch"] = true, true
				for _, uid := range s.uids(0, 1, 2) {
					s.excused[string(uid)] = true // Kubernetes looks at readiness only
				}
				begin, unstick, handBack := c.commands(s)
				s.runs([]string{begin})
				if c.stuck && s.policy == appsv1.OrderedReadyPodManagement {
					s.fills("POD", podName(0))
					s.runs([]string{unstick})
				}
				s.Eventually(func() []string { return s.born(0, 1, 2) }, 2*patience).Should(HaveEach(target), "waiting for all pods to be updated")
				s.allReady(3)

				if s.manager == nil {
					s.startManager()
				}
				if !c.keeps {
					s.runs([]string{handBack})
				}
				s.recovers()
				s.parkedNow()
				ended := len(s.judge().endings)
				s.setImage("3")
				s.waitFor("a plain update", func(st status) string {
					if st.Rollout == nil || st.Rollout.ToRevision != s.target() {
						return "it has not begun"
					}
					return done("Completed")(st)
				})
				s.fromTheTop(ended, false, "a plain update")
			})
		})
	}
}
