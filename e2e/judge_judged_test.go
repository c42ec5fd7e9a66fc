package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
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
		"past one that is there already":   {[]sighting{set(2, "a", "b"), end(2), pod(2, "b", true), set(3, "a", "b"), pod(1, "a", false), set(2, "a", "b")}, ""},
		"released before the last is back": {[]sighting{set(2, "a", "b"), end(2), pod(2, "b", false), set(1, "a", "b")}, "past pod 2"},
		"two pods down":                    {[]sighting{set(0, "a", "a"), end(2), end(1)}, "pod 2 is not"},
		"the lower one first":              {[]sighting{set(3, "a", "b"), end(1)}, "before pod 2"},
		"new below the partition":          {[]sighting{set(2, "a", "b"), gone(0), pod(0, "b", true)}, "below partition 2"},
		"scaled down, from the top":        {[]sighting{scaled(2), end(2)}, ""},
		"two released by Pawl":             {[]sighting{wrote(1, "pawl")}, "past pod 2"},
		"two released by someone let in":   {[]sighting{wrote(1, "someone")}, ""},
		"by someone else":                  {[]sighting{wrote(1, "another")}, "past pod 2"},
		"released in an outage":            {append(outage(), set(0, "a", "b")), "past pod 2"},
		"forced in an outage":              {append(outage(), set(3, "a", "forced"), set(0, "a", "forced")), ""},
		"forced, but some pods work":       {append(outage()[1:], set(3, "a", "forced"), set(0, "a", "forced")), "past pod 2"},
		"forced whatever the health":       {[]sighting{set(3, "a", "ordered"), set(0, "a", "ordered")}, ""},
		"another revision then":            {[]sighting{set(3, "a", "c"), set(0, "a", "c")}, "past pod 2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observer{}
			for _, s := range append([]sighting{pod(0, "a", true), pod(1, "a", true), pod(2, "a", true), set(3, "a", "b")}, c.then...) {
				s.version = uint64(len(o.seen))
				o.seen = append(o.seen, s)
			}
			g := NewWithT(t)
			excused := map[string]bool{"0a": true, "forced": true, whateverTheHealth("ordered"): true, "someone": true}
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

// scaled is a parked set with so many replicas.
func scaled(replicas int32) sighting {
	s := set(3, "a", "b")
	s.set.Spec.Replicas = &replicas
	return s
}

// outage is every pod ceasing to be ready.
func outage() []sighting {
	return []sighting{pod(0, "a", false), pod(1, "a", false), pod(2, "a", false)}
}

// TestTheJudgeKnowsWhatNeverWorked: where no pod was ever ready there is nothing to protect.
func TestTheJudgeKnowsWhatNeverWorked(t *testing.T) {
	g := NewWithT(t)
	never := &observer{seen: append(outage(), set(3, "a", "b"), set(0, "a", "b"))}
	g.Expect(never.judgement(nil).report()).To(BeEmpty())
	once := &observer{seen: append([]sighting{pod(0, "a", true)}, never.seen...)}
	g.Expect(once.judgement(nil).report()).To(ContainSubstring("past pod 2"))
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

// wrote is the partition written by a program of this name.
func wrote(partition int32, manager string) sighting {
	s := set(partition, "a", "b")
	s.set.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "other", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)},
		{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:updateStrategy":{"f:rollingUpdate":{"f:partition":{}}}}}`)},
	}
	return s
}

// TestTheLogIsHeldAgainstWhatWasSeen: a write that is in one and not in the other is found, whoever made it.
func TestTheLogIsHeldAgainstWhatWasSeen(t *testing.T) {
	g := NewWithT(t)
	o := &observer{}
	parkedByPolicy := wrote(3, "pawl") // as it was before; the template is what a person wrote
	parkedByPolicy.set.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	for _, s := range []sighting{set(3, "a", "b"), wrote(2, "pawl"), wrote(3, "kubectl"), wrote(1, "pawl"), parkedByPolicy} {
		s.version = uint64(len(o.seen))
		o.seen = append(o.seen, s)
	}
	g.Expect(o.judgement(nil).byPawl).To(Equal([]string{"3>2", "3>1"}), "a person's write is not Pawl's, and neither is what a policy makes of it")

	record := func(from, to int32) pawlv1alpha1.Transition {
		return pawlv1alpha1.Transition{PreviousPartition: &from, Partition: &to}
	}
	g.Expect(promisedWrites([]pawlv1alpha1.Transition{record(3, 2), {}, record(2, 2), record(2, 1)})).To(Equal([]string{"3>2", "2>1"}))
	g.Expect(promisedWrites([]pawlv1alpha1.Transition{record(3, 2), record(3, 3)})).To(BeEmpty(), "the next record saw the partition as it was")
	at := func(generation int64, t pawlv1alpha1.Transition) pawlv1alpha1.Transition {
		t.Generation = generation
		return t
	}
	g.Expect(promisedWrites([]pawlv1alpha1.Transition{at(4, record(3, 2)), at(5, record(9, 9))})).To(BeEmpty(), "the one edit since was someone else's")
	g.Expect(promisedWrites([]pawlv1alpha1.Transition{at(4, record(3, 2)), at(6, record(9, 9))})).To(Equal([]string{"3>2"}), "and someone else's after it")

	doubtful := promisedWrites([]pawlv1alpha1.Transition{at(4, record(3, 2)), at(5, record(3, 2)), at(7, record(3, 2)), at(8, record(2, 1))})
	g.Expect(doubtful).To(Equal([]string{"3>2?", "3>2", "2>1"}), "the second was written or not: there were two edits after it, which left 3")
	g.Expect(settled(doubtful, []string{"3>2", "3>2", "2>1"})).To(Equal([]string{"3>2", "3>2", "2>1"}), "it was seen")
	g.Expect(settled(doubtful, []string{"3>2", "2>1"})).To(Equal([]string{"3>2", "2>1"}), "it was not seen")
	g.Expect(settled(doubtful, []string{"2>1"})).To(Equal([]string{"3>2", "2>1"}), "what is certain has to be seen")

	another := record(3, 3)
	another.Type, another.Reason = "Adopted", "Recreated"
	g.Expect(promisedWrites([]pawlv1alpha1.Transition{record(3, 2), another})).To(Equal([]string{"3>2"}), "the partition of another StatefulSet proves nothing")
}

// A write in a form that is not matched with the log is not overlooked.
func TestUnknownWritesAreSeen(t *testing.T) {
	const guard = `"metadata":{"uid":"u","resourceVersion":"7"}`
	for _, c := range []struct {
		what, body string
		known      bool
	}{
		{"patch statefulsets", `{` + guard + `,"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, true},
		{"patch statefulsets/status", `{` + guard + `,"status":{"currentRevision":"db-1"}}`, true},
		{"delete pods", ``, true},
		{"update rolloutprogresses/status", ``, true},
		{"patch statefulsets", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, false},
		{"patch statefulsets", `{` + guard + `,"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}},"replicas":4}}`, false},
		{"patch statefulsets", `[{"op":"replace","path":"/spec/updateStrategy/rollingUpdate/partition","value":2}]`, false},
		{"patch statefulsets", `{` + guard + `,"status":{"currentRevision":"db-1"}}`, false},
		{"update statefulsets", `{` + guard + `,"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}`, false},
		{"delete statefulsets", ``, false},
		{"deletecollection pods", ``, false},
		{"create pods/eviction", ``, false},
	} {
		var r request
		r.RequestObject = json.RawMessage(c.body)
		r.Verb, r.ObjectRef.Resource, _ = strings.Cut(c.what, " ")
		r.ObjectRef.Resource, r.ObjectRef.Subresource, _ = strings.Cut(r.ObjectRef.Resource, "/")
		NewWithT(t).Expect(r.known()).To(Equal(c.known), "%s %s", c.what, c.body)
	}
}

// A command that hangs does not take the stories with it, nor what it started, and it is named.
func TestACommandThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("did not end in time"))
	defer cancel()
	out, err := attempt(ctx, "", "sh", "-c", "echo begun; exec sleep 600")
	NewWithT(t).Expect(err).To(MatchError("sh -c echo begun; exec sleep 600: did not end in time"))
	NewWithT(t).Expect(out).To(Equal("begun\n"))
}
