package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alice runs kubectl as a person, with a manifest for -f - if there is one, and returns what it says.
func (s *story) alice(manifest string, args ...string) string {
	s.t.Helper()
	out, err := s.aliceTries(manifest, args...)
	s.Expect(err).NotTo(HaveOccurred(), "it says: %s", out)
	return out
}

func (s *story) aliceTries(manifest string, args ...string) (string, error) {
	return attempt(s.t.Context(), manifest, lab.lab.Kubectl, append([]string{"--kubeconfig", lab.lab.Kubeconfigs["alice"], "-n", s.namespace}, args...)...)
}

// manifest is the StatefulSet as people keep it in git: without what the API server fills in.
func (s *story) manifest(tag string, edits ...func(*appsv1.StatefulSet)) string {
	set := s.written(tag, edits...)
	set.APIVersion, set.Kind = "apps/v1", "StatefulSet"
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	s.Expect(err).NotTo(HaveOccurred())
	delete(o, "status")
	spec, is := o["spec"].(map[string]any)
	s.Expect(is).To(BeTrue())
	if strategy, is := spec["updateStrategy"].(map[string]any); is && len(strategy) == 0 {
		delete(spec, "updateStrategy")
	}
	text, err := json.Marshal(o)
	s.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// withPartition has the manifest set the partition.
func withPartition(p int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &p},
		}
	}
}

// way is one way to write a new template.
type way struct {
	name  string
	write func()
	// lowers: the same write sets the partition too. Without the admission policy the StatefulSet controller then begins
	// at once, until Pawl has parked the partition.
	lowers bool
}

// rollsOut writes a new template that way and looks at what comes of it: a rollout of its own, one pod after the other
// from the top, and the partition parked again.
func (s *story) rollsOut(w way) {
	s.t.Helper()
	s.parkedNow()
	before, ended, number := s.set().Status.UpdateRevision, len(s.judge().endings), s.progress().Status.Rollout.Number
	w.write()
	s.waitFor("the rollout after "+w.name, rolloutDone(number+1))
	s.parkedNow()
	after := s.target()
	s.Expect(after).NotTo(Equal(before), "%s changed the template", w.name)
	for i := range 3 {
		s.Expect(revision(s.pod(i))).To(Equal(after), "pod %d after %s", i, w.name)
	}
	s.fromTheTop(ended, w.lowers && !s.admission, w.name)
	s.Expect(s.progress().Status.Rollout.StartedBy).To(Equal(s.known("alice")[0]), "after %s", w.name)
}

// fromTheTop: since so many had ended, each pod was replaced once, one after the other from the top. Where Kubernetes
// began before Pawl saw the new template, the pod that it was replacing when the partition was parked may have come back
// old, and was replaced once more.
func (s *story) fromTheTop(ended int, natively bool, after string) {
	s.t.Helper()
	endings := s.judge().endings[ended:]
	if natively {
		s.Expect(len(endings)).To(BeNumerically("<=", 4), "one pod twice at most, after %s: %v", after, endings)
		endings = slices.Compact(endings)
	}
	s.Expect(endings).To(Equal([]int{2, 1, 0}), "pods were replaced from the top, after %s", after)
}

// parkedNow waits until the partition is written that the end of a rollout records.
func (s *story) parkedNow() {
	s.t.Helper()
	s.Eventually(func() int32 { return partition(s.set()) }, patience, tick).Should(BeEquivalentTo(parked), "waiting for the partition to be parked")
}

// someone writes the partition who is not Pawl, and whom the story lets in.
func (s *story) someone(p int32) {
	s.t.Helper()
	s.excused["someone"] = true
	s.alice("", "patch", "sts", name, "--field-manager=someone", "--type=merge", "-p", partitionPatch(p))
}

func partitionPatch(p int32) string {
	return fmt.Sprintf(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":%d}}}}`, p)
}

// count is how often an event is in the log.
func (s *story) count(event string) int {
	n := 0
	for _, t := range s.events() {
		if t.Type == event {
			n++
		}
	}
	return n
}

// waitForEvent waits until an event is in the log for the n-th time.
func (s *story) waitForEvent(event string, n int) {
	s.t.Helper()
	s.Eventually(func() int { return s.count(event) }, patience, tick).Should(BeNumerically(">=", n), "waiting for %s, %d times", event, n)
}

// since is the log in short from the n-th rollout on.
func (s *story) since(n int) []string {
	diary := s.diary()
	for i, line := range diary {
		if strings.HasPrefix(line, "RolloutStarted") {
			if n--; n == 0 {
				return diary[i:]
			}
		}
	}
	return nil
}

// stays: neither the partition nor any pod changes for a few seconds.
func (s *story) stays(p int32, why string) {
	s.t.Helper()
	kept := s.uids(0, 1, 2)
	s.Consistently(func() []any { return []any{partition(s.set()), s.uids(0, 1, 2)} }, 3*time.Second, 200*time.Millisecond).
		Should(Equal([]any{p, kept}), why)
}

// lose deletes a pod by hand, and waits until another one of its name is Ready.
func (s *story) lose(i int) *corev1.Pod {
	s.t.Helper()
	lost := s.pod(i)
	s.excused[string(lost.UID)] = true
	s.Expect(lab.alice.Delete(s.t.Context(), lost, client.Preconditions{UID: &lost.UID})).To(Succeed())
	var back *corev1.Pod
	s.Eventually(func() bool {
		back = s.find(i)
		return back != nil && back.UID != lost.UID && ready(back)
	}, patience, tick).Should(BeTrue(), "waiting for pod %d to come back", i)
	return back
}
