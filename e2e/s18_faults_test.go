package e2e

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

// stepwise is a rollout of three pods that nothing disturbs.
var stepwise = []string{
	"RolloutStarted NewRevision",
	"StepStarted 2", "StepCompleted 2", "StepStarted 1", "StepCompleted 1", "StepStarted 0", "StepCompleted 0",
	"RolloutCompleted Completed",
}

// The API refuses, breaks connections before and after it has done what was asked, is slow, and its watches are late and
// break: a good image, a bad one and its revert, and more replicas in the middle go as they go without. make faults tells every
// story so.
func TestS18Faults(t *testing.T) {
	t.Parallel()
	for lot := range 2 {
		for _, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
			if half && (lot == 1) != (policy == appsv1.ParallelPodManagement) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", policy, lot), func(t *testing.T) {
				t.Parallel()
				via := &proxy{faults: someFaults("s18", policy, lot)}
				tellOne(t, "s18-faults", policy, lot == 0, settings{via: via}, func(s *story) {
					s.create("1")
					s.setImage("2")
					s.waitFor("the first step", state("Stepping", "", podName(2)))
					s.waitFor("the rollout", rolloutDone(2))
					s.Expect(s.since(2)).To(Equal(stepwise))

					s.setImage("bad")
					s.waitFor("the bad image to be named", state("Blocked", pullReasons, podName(2)))
					s.setImage("2")
					s.waitFor("the way back", done("RolledBack"))

					first := s.pod(2)
					s.setImage("3")
					s.Eventually(func() bool { p := s.find(2); return p != nil && p.UID != first.UID }, patience, tick).
						Should(BeTrue(), "waiting for the first pod to be replaced: a step is recorded before it is written")
					s.edit(func(set *appsv1.StatefulSet) { set.Spec.Replicas = new(int32(4)) })
					s.waitFor("the last rollout", rolloutDone(5))
				})
			})
		}
	}
}

// One watch of the manager, or every one, is half a minute behind. Each step waits for what it cannot see yet, and none is
// taken on what was so half a minute ago.
func TestS18LateWatch(t *testing.T) {
	t.Parallel()
	behind := 30 * time.Second
	if half {
		behind = 8 * time.Second
	}
	for _, resource := range []string{"pods", "statefulsets", "rolloutprogresses", everything} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			var late atomic.Bool
			via := &proxy{faults: &faults{late: func(of string) time.Duration {
				if !late.Load() || resource != everything && resource != of {
					return 0
				}
				return behind
			}}}
			tellOne(t, "s18-late", appsv1.ParallelPodManagement, true, settings{via: via}, func(s *story) {
				s.create("1")
				late.Store(true)
				s.setImage("2")
				s.waitLong("the rollout", rolloutDone(2))
				s.Expect(s.since(2)).To(Equal(stepwise))
			})
		})
	}
}

// A manager that is killed in the middle of a rollout and started again fills its caches with lists from before the rollout,
// of one kind or of all, as an API server may give that was cut off itself; the watches follow later.
func TestS18StaleLists(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"pods", "statefulsets", "rolloutprogresses", everything} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			var late atomic.Bool
			f := &faults{late: func(string) time.Duration {
				if late.Load() {
					return 5 * time.Second
				}
				return 0
			}}
			tellOne(t, "s18-stale", appsv1.ParallelPodManagement, true, settings{via: &proxy{faults: f}, lists: true}, func(s *story) {
				s.create("1")
				s.runAs(pawlAccount) // its lists are the ones to come back to
				s.idles()
				old := s.pod(1)
				s.setImage("2")
				s.waitFor("the second step", state("Stepping", "", podName(1)))
				s.Eventually(func() bool { p := s.find(1); return p != nil && p.UID != old.UID }, patience, tick).
					Should(BeTrue(), "waiting for its pod to be replaced: a StatefulSet from before does not lead to that step")
				s.stopManager(syscall.SIGKILL)
				f.replay.Store(&resource)
				late.Store(true)
				s.startManager()
				s.waitFor("the rollout", rolloutDone(2))
				s.Expect(f.replayed.Load()).NotTo(BeZero(), "it was given a list from before")
				s.Expect(s.since(2)).To(Equal(stepwise))
			})
		})
	}
}

// waitLong waits as long as it takes where everything is late.
func (s *story) waitLong(what string, wanted is) {
	s.t.Helper()
	s.Eventually(func() string { return wanted(s.observer.status()) }, 5*patience, tick).Should(BeEmpty(), "waiting for "+what)
}

// idles waits until a manager that was just started has looked at the StatefulSet: it has said that it begins.
func (s *story) idles() {
	s.t.Helper()
	s.Eventually(func() []string { return s.manager.lines("Starting workers") }, patience, tick).ShouldNot(BeEmpty(), "waiting for the manager")
}
