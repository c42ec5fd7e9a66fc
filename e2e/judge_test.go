package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
)

// judge replays what the observer saw, one version after the other.
type judge struct {
	set  *appsv1.StatefulSet
	pods map[int]*corev1.Pod // by ordinal

	replicas map[int64]int32 // that were asked for, by the generation of the StatefulSet

	faults     []string
	partitions []int32          // as they were written, repeats left out
	byPawl     []string         // the changes that Pawl made, "3>2"
	uids       map[int][]string // by ordinal, in the order of their creation
	endings    []int            // ordinals whose pods began to end, in order
	ready      int              // pods that are ready now
	worked     bool             // whether any pod was ever ready
	fewest     int              // the fewest ready pods since all were ready for the first time; -1 before that
}

// judgement looks at everything seen so far. A pod that a story itself ended is no fault: excused has its uid. So is
// what a person forced: excused has the revision. And what another writer of the partition released, whom the story let
// in: excused has its field manager.
func (o *observer) judgement(excused map[string]bool) *judge { return o.judgementOf(name, excused) }

func (o *observer) judgementOf(name string, excused map[string]bool) *judge {
	j := &judge{pods: map[int]*corev1.Pod{}, replicas: map[int64]int32{}, uids: map[int][]string{}, fewest: -1}
	for _, s := range o.history() {
		switch {
		case s.set != nil && s.set.Name == name:
			j.sawSet(s, excused)
		case s.pod != nil && setOf(s.pod.Name) == name:
			j.sawPod(s, excused)
		}
	}
	return j
}

func (j *judge) fault(s sighting, format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf("version %d: ", s.version)+fmt.Sprintf(format, args...))
}

func (j *judge) sawSet(s sighting, excused map[string]bool) {
	before := j.set
	j.set = s.set
	if s.what == watch.Deleted {
		j.set = nil
		return
	}
	if before != nil && before.UID != s.set.UID {
		before = nil // another one of this name
		clear(j.replicas)
	}
	j.replicas[s.set.Generation] = *s.set.Spec.Replicas
	p := partition(s.set)
	if before != nil && p < partition(before) && p < *s.set.Spec.Replicas && !j.costsNothing(s.set, excused) && !excused[writer(s.set)] {
		j.lowered(s, int(p))
	}
	if before != nil && partition(before) != p && wroteIt("pawl", before, s.set) {
		j.byPawl = append(j.byPawl, fmt.Sprintf("%d>%d", partition(before), p))
	}
	if n := len(j.partitions); n == 0 || j.partitions[n-1] != p {
		j.partitions = append(j.partitions, p)
	}
}

// costsNothing: no pod is ready, and either none ever was, or a person forced this revision: an outage of what once worked
// is no licence. Or a person forced it with pods that work.
func (j *judge) costsNothing(set *appsv1.StatefulSet, excused map[string]bool) bool {
	revision := set.Status.UpdateRevision
	return j.ready == 0 && (!j.worked || excused[revision]) || excused[whateverTheHealth(revision)]
}

// whateverTheHealth is the excuse of a story that forces a revision although pods work.
func whateverTheHealth(revision string) string { return revision + ", whatever the health" }

// lowered: the partition goes down by one pod, past none that is not at the update revision and ready (I2); and unless
// that pod is down itself or already at the update revision, while all others are ready (I4). Handing a finished
// StatefulSet back is no step.
func (j *judge) lowered(s sighting, to int) {
	st := s.set.Status
	if st.CurrentRevision == st.UpdateRevision && st.UpdatedReplicas == *s.set.Spec.Replicas {
		return
	}
	for k := range int(*s.set.Spec.Replicas) {
		pod := j.pods[k+start(s.set)]
		up := pod != nil && ready(pod)
		switch next := j.pods[to+start(s.set)]; {
		case k > to && pod == nil && next != nil && !ready(next) && j.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement:
			// It was never created: the StatefulSet controller stops at the lower one, which has to be replaced first.
		case k > to && (!up || revision(pod) != st.UpdateRevision):
			j.fault(s, "partition %d is past pod %d, which is not ready at %s", to, k, st.UpdateRevision)
		case k != to && !up && next != nil && ready(next) && revision(next) != st.UpdateRevision:
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
	j.worked = j.worked || j.ready > 0
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
	if j.set == nil || j.set.DeletionTimestamp != nil || !ready(before) || excused[string(before.UID)] {
		return
	}
	if i >= start(j.set)+int(j.least()) {
		return // scaled down
	}
	for k := start(j.set); k < start(j.set)+int(*j.set.Spec.Replicas); k++ {
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

// least is the fewest pods that the StatefulSet controller may be going by: the newest that it says it has seen, or any since.
// Scaled down and up again in a moment, it takes pods away when they are asked for already.
func (j *judge) least() int32 {
	fewest := *j.set.Spec.Replicas
	for generation, replicas := range j.replicas {
		if generation >= j.set.Status.ObservedGeneration {
			fewest = min(fewest, replicas)
		}
	}
	return fewest
}

// created: a pod below the partition never comes at the new revision (I5).
func (j *judge) created(s sighting, i int) {
	if j.set == nil || j.set.Status.ObservedGeneration != j.set.Generation {
		return
	}
	st := j.set.Status
	if i-start(j.set) < int(partition(j.set)) && st.CurrentRevision != "" && st.CurrentRevision != st.UpdateRevision && revision(s.pod) == st.UpdateRevision {
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

// start is the first ordinal; the partition counts from there.
func start(s *appsv1.StatefulSet) int {
	if s.Spec.Ordinals == nil {
		return 0
	}
	return int(s.Spec.Ordinals.Start)
}

// wroteIt: this manager changed the partition. Pawl changes nothing else; what an admission policy makes of a person's
// new template or label is not attributed to anybody, so that the manager before is still there.
func wroteIt(manager string, before, now *appsv1.StatefulSet) bool {
	return writer(now) == manager && equality.Semantic.DeepEqual(before.Spec.Template, now.Spec.Template) && maps.Equal(before.Labels, now.Labels)
}

// writer is the field manager that last wrote the partition.
func writer(s *appsv1.StatefulSet) string {
	for _, m := range s.ManagedFields {
		var fields struct {
			Spec struct {
				Strategy struct {
					RollingUpdate struct {
						Partition *struct{} `json:"f:partition"`
					} `json:"f:rollingUpdate"`
				} `json:"f:updateStrategy"`
			} `json:"f:spec"`
		}
		if m.FieldsV1 != nil && json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec.Strategy.RollingUpdate.Partition != nil {
			return m.Manager
		}
	}
	return ""
}

func ordinal(pod string) int {
	n, err := strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}

// setOf is the name of the StatefulSet of a pod.
func setOf(pod string) string { return pod[:max(strings.LastIndex(pod, "-"), 0)] }

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
