package e2e

import (
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// S7: a StatefulSet is deleted, its pods are left behind, and it is created again with another template. The StatefulSet
// controller takes the new revision for the current one then: a pod that is lost would come back new, whatever the
// partition. Pawl sets status.currentRevision back (RevisionRestored), and takes one step after the other from the top.

// With pods 0 and 1 lost before their steps: they come back old (I5).
func TestS7Recreated(t *testing.T) {
	tell(t, "s7-recreated", func(s *story) {
		s.create("1")
		s.pause(true) // so that pods can be lost before any step
		s.recreate("2")
		s.restored()
		for i := range 2 {
			s.Expect(revision(s.lose(i))).To(Equal(s.good), "pod %d comes back at the revision it had", i)
		}
		s.pause(false)
		s.goesOn()
	})
}

// Nobody is lost, nobody pauses.
func TestS7RecreatedQuietly(t *testing.T) {
	tell(t, "s7-quietly", func(s *story) {
		s.create("1")
		s.recreate("2")
		s.goesOn()
		s.Expect(s.judge().fewest).To(Equal(2), "never two pods down")
	})
}

// No manager runs while it is created again: it is parked as before, and the manager finds out when it is back.
func TestS7RecreatedWhileTheManagerIsAway(t *testing.T) {
	tell(t, "s7-manager-away", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.pause(true)
		s.stopManager(syscall.SIGTERM)
		s.recreate("2")
		s.Consistently(func() any { return s.uids(0, 1, 2) }, 3*time.Second, 200*time.Millisecond).Should(Equal(kept), "the partition is parked: no pod moves")
		s.startManager()
		s.restored()
		s.Expect(revision(s.lose(0))).To(Equal(s.good), "pod 0 comes back at the revision it had")
		s.pause(false)
		s.goesOn()
	})
}

// The pods come and go while it is created again and adopted, so that the StatefulSet controller writes status all the time, and
// may put back what it believes. Pawl tries again, and takes no step before it has held for five seconds.
func TestS7RecreatedWhilePodsFlap(t *testing.T) {
	tell(t, "s7-flapping", func(s *story) {
		s.create("1")
		s.pause(true)
		s.recreateFlapping("2")
		s.restored()
		s.Expect(revision(s.lose(0))).To(Equal(s.good), "pod 0 comes back at the revision it had")
		s.pause(false)
		s.goesOn()
		s.t.Logf("restored %d times", s.count("RevisionRestored"))
	})
}

// The same without a pause: the first step comes five seconds after the last try, at the earliest.
func TestS7NoStepBeforeItHolds(t *testing.T) {
	tell(t, "s7-holds", func(s *story) {
		s.create("1")
		s.recreateFlapping("2")
		s.goesOn()
		var restored time.Time
		for _, e := range s.events() {
			switch e.Type {
			case "RevisionRestored":
				restored = e.Time.Time
			case "StepStarted":
				s.Expect(e.Time.Time).To(BeTemporally(">=", restored.Add(5*time.Second)), "no step before it has held")
			}
		}
		s.Expect(s.whenReleased().Status.CurrentRevision).To(Equal(s.good), "it held when the first pod was released")
	})
}

// whenReleased is the StatefulSet that is there now as it was when its first pod was released.
func (s *story) whenReleased() *appsv1.StatefulSet {
	now := s.set()
	for _, seen := range s.observer.history() {
		if seen.set != nil && seen.set.UID == now.UID && partition(seen.set) < *now.Spec.Replicas {
			return seen.set
		}
	}
	s.t.Fatal("no pod was released")
	return nil
}

// Created again at the revision that it had: nothing is due, nothing moves.
func TestS7RecreatedUnchanged(t *testing.T) {
	tell(t, "s7-unchanged", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.recreate("1")
		s.waitForEvent("Adopted", 2)
		s.waitFor("it to be as before", state("Done", "", ""))
		s.parkedNow()
		s.stays(parked, "nothing is due")
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept))
		s.Expect(s.count("RevisionRestored")).To(BeZero())
		s.setImage("2")
		s.waitFor("the next rollout", func(st pawlv1alpha1.RolloutProgressStatus) string {
			if st.StableRevision == s.good {
				return "still at " + s.good // Completed is what it was before, if the pods came up once more
			}
			return done("Completed")(st)
		})
		s.Expect(s.steps()).To(Equal([]string{"2", "1", "0"}))
	})
}

// The RolloutProgress that stayed belongs to the new StatefulSet, and goes with it one day.
func TestS7OwnedAgain(t *testing.T) {
	tell(t, "s7-owned", func(s *story) {
		s.create("1")
		s.recreate("2")
		s.goesOn()
		s.Eventually(func() []types.UID {
			var owners []types.UID
			for _, o := range s.progress().OwnerReferences {
				owners = append(owners, o.UID)
			}
			return owners
		}, patience).Should(Equal([]types.UID{s.set().UID}), "waiting for the RolloutProgress to be owned by the StatefulSet")
		s.deleteSet("background")
		s.isGone()
		s.recordsEndWith("Abandoned Deleted")
	})
}

// restored waits until Pawl has adopted the new StatefulSet and its status names the old revision again.
func (s *story) restored() {
	s.t.Helper()
	s.waitForEvent("RevisionRestored", 1)
	s.Eventually(func() string { return s.set().Status.CurrentRevision }, patience, tick).Should(Equal(s.good), "waiting for the old revision to be the current one")
	s.Consistently(func() string { return s.set().Status.CurrentRevision }, 3*time.Second, 100*time.Millisecond).Should(Equal(s.good), "and to stay it")
	s.Expect(partition(s.set())).To(BeEquivalentTo(parked))
}

// goesOn waits for the end of the rollout, and looks at how it went.
func (s *story) goesOn() {
	s.t.Helper()
	s.Eventually(func() string { return rolloutDone(2)(s.progress().Status) }, 2*patience, 100*time.Millisecond).
		Should(BeEmpty(), "waiting for the restored revision to hold, and three steps")
	s.Expect(s.events()).To(ContainElement(And(HaveField("Type", "Adopted"), HaveField("Reason", "Recreated"))))
	s.Expect(s.count("RevisionRestored")).To(BeNumerically("~", 3, 2), "one to five tries")
	s.Expect(s.events()).To(ContainElement(And(HaveField("Type", "RevisionRestored"), HaveField("Revision", s.good))))
	s.Expect(s.since(2)[0]).To(Equal("RolloutStarted Recreated"))
	s.Expect(s.steps()).To(Equal([]string{"2", "1", "0"}), "one by one, from the top")
	st := s.progress().Status
	s.Expect(st.Rollout.FromRevision).To(Equal(s.good), "it says where it came from, which the status did not know")
	s.Expect(st.StableRevision).To(Equal(s.target()))
}

// recreateFlapping creates the StatefulSet again while its pods come and go, until Pawl has adopted it.
func (s *story) recreateFlapping(tag string) {
	s.t.Helper()
	calm := s.flapping(1, 2)
	defer calm()
	s.recreate(tag)
	s.waitForEvent("Adopted", 2)
}

// flapping has pods be Ready and not Ready in turn, until the returned function is called; then they are.
func (s *story) flapping(pods ...int) (calm func()) {
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				for _, i := range pods {
					s.fate(i, []string{"never", "ready"}[n%2])
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		ended.Wait()
		for _, i := range pods {
			s.fate(i, "ready")
		}
		s.allReady(int(*s.set().Spec.Replicas))
	})
}
