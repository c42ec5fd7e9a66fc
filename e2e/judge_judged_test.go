package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestTheJudgeFindsFaults: the observer is worth something. Each history has one fault, but the first.
func TestTheJudgeFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		then  []sighting
		fault string
	}{
		"a good step":                      {[]sighting{set(2, "a", "b"), end(2), pod(2, "b", true), set(1, "a", "b"), end(1), pod(1, "b", true)}, ""},
		"two pods released at once":        {[]sighting{set(1, "a", "b")}, "past pod 2"},
		"released beside an unready pod":   {[]sighting{pod(0, "a", false), set(2, "a", "b")}, "while pod 0 is not ready"},
		"released before the last is back": {[]sighting{set(2, "a", "b"), end(2), pod(2, "b", false), set(1, "a", "b")}, "past pod 2"},
		"two pods down":                    {[]sighting{set(0, "a", "a"), end(2), end(1)}, "pod 2 is not"},
		"the lower one first":              {[]sighting{set(3, "a", "b"), end(1)}, "before pod 2"},
		"new below the partition":          {[]sighting{set(2, "a", "b"), gone(0), pod(0, "b", true)}, "below partition 2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observer{}
			for _, s := range append([]sighting{pod(0, "a", true), pod(1, "a", true), pod(2, "a", true), set(3, "a", "b")}, c.then...) {
				s.version = uint64(len(o.seen))
				o.seen = append(o.seen, s)
			}
			g := NewWithT(t)
			excused := map[string]bool{"0a": true}
			if c.fault == "" {
				g.Expect(o.judgement(excused).report()).To(BeEmpty())
				return
			}
			g.Expect(o.judgement(excused).report()).To(ContainSubstring(c.fault))
		})
	}
}

func set(partition int32, current, update string) sighting {
	replicas := int32(3)
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}, Status: appsv1.StatefulSetStatus{CurrentRevision: current, UpdateRevision: update}}
	s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
	return sighting{what: watch.Modified, set: s}
}

func pod(i int, revision string, ready bool) sighting {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return sighting{what: watch.Modified, pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("db-%d", i), UID: types.UID(fmt.Sprintf("%d%s", i, revision)),
			Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}}
}

// end is pod i at revision a beginning to terminate.
func end(i int) sighting {
	s := pod(i, "a", true)
	s.pod.DeletionTimestamp = &metav1.Time{}
	return s
}

func gone(i int) sighting {
	s := pod(i, "a", true)
	s.what = watch.Deleted
	return s
}
