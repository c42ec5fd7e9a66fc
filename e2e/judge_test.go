package e2e

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// judge replays what the observer saw, one version after the other.
type judge struct {
	set  *appsv1.StatefulSet
	pods map[int]*corev1.Pod

	faults     []string
	partitions []int32          // as they were written, repeats left out
	uids       map[int][]string // by ordinal, in the order of their creation
	endings    []int            // ordinals whose pods began to end, in order
	ready      int              // pods that are ready now
	fewest     int              // the fewest ready pods since all were ready for the first time; -1 before that
}

// judgement looks at everything seen so far. A pod that a story itself ended is no fault: excused has its uid.
func (o *observer) judgement(excused map[string]bool) *judge {
	j := &judge{pods: map[int]*corev1.Pod{}, uids: map[int][]string{}, fewest: -1}
	for _, s := range o.history() {
		switch {
		case s.set != nil && s.set.Name == name:
			j.sawSet(s)
		case s.pod != nil && strings.HasPrefix(s.pod.Name, name+"-"):
			j.sawPod(s, excused)
		}
	}
	return j
}

func (j *judge) fault(s sighting, format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf("version %d: ", s.version)+fmt.Sprintf(format, args...))
}

func (j *judge) sawSet(s sighting) {
	before := j.set
	j.set = s.set
	p := partition(s.set)
	if before != nil && min(p, *s.set.Spec.Replicas) < min(partition(before), *s.set.Spec.Replicas) {
		j.lowered(s, int(p))
	}
	if n := len(j.partitions); n == 0 || j.partitions[n-1] != p {
		j.partitions = append(j.partitions, p)
	}
}

// lowered: the partition goes down by one pod, past none that is not at the update revision and ready (I2); and unless
// that pod is down itself, while all others are ready (I4). Handing a finished StatefulSet back is no step.
func (j *judge) lowered(s sighting, to int) {
	st := s.set.Status
	if st.CurrentRevision == st.UpdateRevision && st.UpdatedReplicas == *s.set.Spec.Replicas {
		return
	}
	for k := range int(*s.set.Spec.Replicas) {
		pod := j.pods[k]
		up := pod != nil && ready(pod)
		switch next := j.pods[to]; {
		case k > to && (!up || revision(pod) != st.UpdateRevision):
			j.fault(s, "partition %d is past pod %d, which is not ready at %s", to, k, st.UpdateRevision)
		case k != to && !up && next != nil && ready(next):
			j.fault(s, "pod %d is released while pod %d is not ready", to, k)
		}
	}
}

func (j *judge) sawPod(s sighting, excused map[string]bool) {
	i := ordinal(s.pod.Name)
	before := j.pods[i]
	if s.what == watch.Deleted {
		if before != nil && !ending(before) {
			j.ends(s, i, before, excused)
		}
		delete(j.pods, i)
		j.count()
		return
	}
	if before == nil || before.UID != s.pod.UID {
		j.uids[i] = append(j.uids[i], string(s.pod.UID))
		j.created(s, i)
	} else if !ending(before) && ending(s.pod) {
		j.ends(s, i, before, excused)
	}
	j.pods[i] = s.pod
	j.count()
}

func (j *judge) count() {
	j.ready = 0
	for _, p := range j.pods {
		if ready(p) {
			j.ready++
		}
	}
	switch {
	case j.fewest < 0 && j.set != nil && j.ready == int(*j.set.Spec.Replicas):
		j.fewest = j.ready
	case j.fewest > j.ready:
		j.fewest = j.ready
	}
}

// ends: a pod that works is taken away only while all others work (I1, I2, I4), and from the highest ordinal down.
func (j *judge) ends(s sighting, i int, before *corev1.Pod, excused map[string]bool) {
	j.endings = append(j.endings, i)
	if j.set == nil || !ready(before) || excused[string(before.UID)] {
		return
	}
	for k := range int(*j.set.Spec.Replicas) {
		other := j.pods[k]
		if k == i {
			continue
		}
		if other == nil || !ready(other) {
			j.fault(s, "pod %d was ready and is taken away while pod %d is not", i, k)
		}
		if k > i && other != nil && revision(other) != j.set.Status.UpdateRevision {
			j.fault(s, "pod %d is taken away before pod %d is at %s", i, k, j.set.Status.UpdateRevision)
		}
	}
}

// created: a pod below the partition never comes at the new revision (I5).
func (j *judge) created(s sighting, i int) {
	if j.set == nil || j.set.Status.ObservedGeneration != j.set.Generation {
		return
	}
	st := j.set.Status
	if int32(i) < partition(j.set) && st.CurrentRevision != "" && st.CurrentRevision != st.UpdateRevision && revision(s.pod) == st.UpdateRevision {
		j.fault(s, "pod %d is below partition %d and was created at the new revision %s", i, partition(j.set), st.UpdateRevision)
	}
}

// effective is the partitions as people read them: parked means all pods are held back.
func (j *judge) effective() []int32 {
	var out []int32
	for _, p := range j.partitions {
		p = min(p, *j.set.Spec.Replicas)
		if n := len(out); n == 0 || out[n-1] != p {
			out = append(out, p)
		}
	}
	return out
}

func (j *judge) report() string { return strings.Join(j.faults, "\n") }

func partition(s *appsv1.StatefulSet) int32 {
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}

func ordinal(pod string) int {
	n, err := strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}

func revision(p *corev1.Pod) string { return p.Labels[appsv1.ControllerRevisionHashLabelKey] }

func ending(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && !ending(p)
		}
	}
	return false
}
