package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// S8: a pod below the next one keeps dying, and is Ready for a few seconds in between. An update does not start on top
// of that (I4), and goes on by itself when the pod has been Ready for a minute.

func TestS8PodZeroCrashLoops(t *testing.T) {
	tell(t, "s8-crash-0", func(s *story) { s.doesNotStart(0, func() { s.setImage("2") }) })
}

func TestS8PodOneCrashLoops(t *testing.T) {
	tell(t, "s8-crash-1", func(s *story) { s.doesNotStart(1, func() { s.setImage("2") }) })
}

// The StatefulSet is deleted with its pods left behind, and created again with another template.

func TestS8PodZeroCrashLoopsRecreated(t *testing.T) {
	tell(t, "s8-recreated-0", func(s *story) { s.doesNotStart(0, func() { s.recreate("2") }) })
}

func TestS8PodOneCrashLoopsRecreated(t *testing.T) {
	tell(t, "s8-recreated-1", func(s *story) { s.doesNotStart(1, func() { s.recreate("2") }) })
}

// doesNotStart has one pod die every few seconds, changes the template, and sees no pod move for a minute; then the
// pod is left alone.
func (s *story) doesNotStart(dying int, change func()) {
	s.create("1")
	endure := s.killing(dying)
	defer endure()
	s.Eventually(func() int32 { return s.restarts(dying) }, patience).Should(BeNumerically(">=", 2), "waiting for pod %d to have died twice", dying)
	kept, before := s.uids(0, 1, 2), s.judge()
	change()
	s.waitFor("the reason to show", waitsFor(dying))
	s.Consistently(func() string { return waitsFor(dying)(s.progress().Status) }, time.Minute, 500*time.Millisecond).Should(BeEmpty(), "no step for a minute")
	s.Expect(s.uids(0, 1, 2)).To(Equal(kept), "no pod is touched")
	s.Expect(s.judge().byPawl).To(Equal(before.byPawl), "not one write of the partition")
	s.Expect(s.restarts(dying)).To(BeNumerically(">=", 5), "all the while it went on dying")

	endure()
	s.waitFor("the first step, a minute after the last death", state("Stepping", "", podName(2)))
	s.waitFor("the rollout to complete", rolloutDone(2))
	s.oneByOne()
	s.Eventually(func() []int32 { return s.judge().effective()[len(before.effective()):] }, patience).Should(Equal([]int32{2, 1, 0, 3}))
}

// waitsFor: no pod is released, and it says which pod is in the way.
func waitsFor(i int) is {
	return func(st status) string {
		if st.Partition == nil || *st.Partition != 3 {
			return "a pod is released: " + st.Message
		}
		if waiting := state("Waiting", "", podName(i))(st); waiting != "" {
			return state("Blocked", "", podName(i))(st)
		}
		return ""
	}
}

// killing ends the container of a pod every few seconds, until the returned function is called.
func (s *story) killing(i int) (endure func()) {
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(4 * time.Second):
				lab.labCommand("kill", "-n", s.namespace, podName(i)) // a container that is down already cannot be ended
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		ended.Wait()
	})
}

// oneByOne: each pod was replaced in its turn, and not by Pawl. The StatefulSet controller deletes by name: when its
// cache is late it may take a pod twice.
func (s *story) oneByOne() {
	s.Expect(slices.Compact(s.judge().endings)).To(Equal([]int{2, 1, 0}), "from the highest ordinal down")
	s.Expect(s.deletions()).To(BeEmpty(), "Pawl deletes nothing")
}

func (s *story) restarts(i int) int32 {
	var n int32
	for _, c := range s.pod(i).Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// recreate deletes the StatefulSet, leaves its pods behind, and creates it again with another image. Without the
// admission policies the manifest has to park it: with partition 0 the StatefulSet controller would take pod 2 at once.
func (s *story) recreate(tag string, edits ...func(*appsv1.StatefulSet)) {
	lab.collects(s.t)
	old := s.set()
	s.Expect(s.kubectl("delete", "sts", name, "--cascade=orphan")).To(ContainSubstring("deleted"))
	again := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, Labels: old.Labels}, Spec: *old.Spec.DeepCopy()}
	again.Spec.Template.Spec.Containers[0].Image = image(tag)
	if s.admission {
		again.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
	}
	for _, edit := range edits {
		edit(again)
	}
	s.Expect(lab.alice.Create(s.t.Context(), again)).To(Succeed())
}
