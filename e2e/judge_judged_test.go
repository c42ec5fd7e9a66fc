package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
		"past one that cannot come before": {[]sighting{gone(2), pod(1, "a", false), set(1, "a", "b")}, ""},
		"past one that could come":         {[]sighting{gone(2), set(1, "a", "b")}, "past pod 2"},
		"two pods down":                    {[]sighting{set(0, "a", "a"), end(2), end(1)}, "pod 2 is not"},
		"the lower one first":              {[]sighting{set(3, "a", "b"), end(1)}, "before pod 2"},
		"new below the partition":          {[]sighting{set(2, "a", "b"), gone(0), pod(0, "b", true)}, "below partition 2"},
		"scaled down, from the top":        {[]sighting{scaled(2), end(2)}, ""},
		"scaled down and up in a moment":   {[]sighting{edited(1, 0, 1), edited(2, 0, 3), end(2), end(1)}, ""},
		"scaled down before that":          {[]sighting{edited(1, 0, 1), edited(2, 0, 3), edited(2, 2, 3), end(2), end(1)}, "pod 2 is not"},
		"scaled down, but not so far":      {[]sighting{edited(1, 0, 2), edited(2, 0, 3), end(2), end(1)}, "pod 2 is not"},
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

// edited is a parked set with so many replicas at a generation, of which one was seen by the StatefulSet controller.
func edited(generation, observed int64, replicas int32) sighting {
	s := scaled(replicas)
	s.set.Generation, s.set.Status.ObservedGeneration = generation, observed
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

}

// TestTheLogIsHeldAgainstWhatWasDone: what is in one and not in the other is found, and so is what is in another order.
func TestTheLogIsHeldAgainstWhatWasDone(t *testing.T) {
	begin := time.Unix(1e9, 0)
	second := func(n int, what string) act { return act{what, begin.Add(time.Duration(n) * time.Second)} }
	recorded := []promise{
		{act: second(1, "partition 3>2")}, {act: second(3, "delete u1")}, {act: second(5, "delete u2")}, {act: second(7, "restore db-1")},
	}
	done := []act{second(2, "partition 3>2"), second(4, "delete u1"), second(6, "delete u2"), second(8, "restore db-1")}
	doubtful := func(n int) []promise {
		list := slices.Clone(recorded)
		list[n].doubtful = true
		return list
	}
	at := func(n int, a act) []act {
		list := slices.Clone(done)
		list[n] = a
		return list
	}
	restoredAgain := append(slices.Clone(done), act{"restore db-1", done[3].at.Add(time.Second / 2)})
	for name, c := range map[string]struct {
		recorded []promise
		done     []act
		found    string
	}{
		"the same":                         {recorded, done, ""},
		"nothing":                          {nil, nil, ""},
		"a swap":                           {recorded, []act{done[0], second(6, "delete u2"), second(7, "delete u1"), done[3]}, `record 2 of .* promises "delete u1"`},
		"a swap of two kinds":              {recorded, []act{done[0], done[1], second(8, "restore db-1"), second(9, "delete u2")}, `record 3 of .* promises "delete u2"`},
		"an act is lost":                   {recorded, slices.Delete(slices.Clone(done), 2, 3), `record 3 of .* promises "delete u2"; 2 acts`},
		"the last act is lost":             {recorded, done[:3], `record 4 of .* promises "restore db-1"; 3 acts`},
		"a record is lost":                 {slices.Delete(slices.Clone(recorded), 1, 2), done, `record 2 of .* promises "delete u2"; 1 acts`},
		"the last record is lost":          {recorded[:3], done, `"restore db-1" was done without a record`},
		"an act is doubled":                {recorded, slices.Insert(slices.Clone(done), 2, second(5, "delete u1")), `record 3 of .* promises "delete u2"; 2 acts`},
		"a record is doubled":              {slices.Insert(slices.Clone(recorded), 1, recorded[1]), done, `record 3 of .* promises "delete u1"; 2 acts`},
		"a foreign uid":                    {recorded, at(1, second(4, "delete u3")), `record 2 of .* promises "delete u1"; 1 acts`},
		"another value":                    {recorded, at(0, second(2, "partition 3>1")), `record 1 of .* promises "partition 3>2"; 0 acts`},
		"another value before":             {recorded, at(0, second(2, "partition 9>2")), `record 1 of .* promises "partition 3>2"; 0 acts`},
		"another revision":                 {recorded, at(3, second(8, "restore db-2")), `record 4 of .* promises "restore db-1"; 3 acts`},
		"done before it was recorded":      {recorded, at(1, second(2, "delete u1")), `record 2 of .* promises "delete u1"; 1 acts`},
		"others were first":                {doubtful(1), slices.Delete(slices.Clone(done), 1, 2), ""},
		"others may have been first":       {doubtful(1), done, ""},
		"doubt covers no foreign uid":      {doubtful(1), at(1, second(4, "delete u3")), `record 3 of .* promises "delete u2"; 1 acts`},
		"doubt covers no second deletion":  {doubtful(1), slices.Insert(slices.Clone(done), 2, second(5, "delete u1")), `record 3 of .* promises "delete u2"; 2 acts`},
		"set back again in one try":        {recorded, restoredAgain, ""},
		"and again, later than one try":    {recorded, append(slices.Clone(done), second(9, "restore db-1")), `"restore db-1" was done without a record`},
		"a try that failed and one more":   {append(doubtful(3), promise{act: second(9, "restore db-1")}), at(3, second(10, "restore db-1")), ""},
		"a deletion is not done over":      {recorded, slices.Insert(slices.Clone(done), 2, act{"delete u1", done[1].at.Add(time.Second / 2)}), `record 3 of .* promises "delete u2"`},
		"of a restart only the records":    {recorded, nil, `record 1 of .* promises "partition 3>2"; 0 acts`},
		"of a restart only what was done":  {nil, done, `"partition 3>2" was done without a record`},
		"the same twice, of which one not": {append(doubtful(0), recorded...), append(slices.Clone(done[:0]), done...), `promises "partition 3>2"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if c.found == "" {
				g.Expect(discrepancy(c.recorded, c.done)).To(BeEmpty())
				return
			}
			g.Expect(discrepancy(c.recorded, c.done)).To(MatchRegexp(c.found))
		})
	}
}

// What a record promises, and when it is no promise, or a doubtful one.
func TestWhatTheLogPromises(t *testing.T) {
	g := NewWithT(t)
	record := func(from, to int32) pawlv1alpha1.Transition {
		return pawlv1alpha1.Transition{PreviousPartition: &from, Partition: &to}
	}
	edited := false
	promised := func(log ...pawlv1alpha1.Transition) (all []string) {
		for _, p := range promises(log, func(pawlv1alpha1.Transition) bool { return edited }) {
			what := p.what
			if p.doubtful {
				what += "?"
			}
			all = append(all, what)
		}
		return all
	}
	g.Expect(promised(record(3, 2), pawlv1alpha1.Transition{}, record(2, 2), record(2, 1))).To(Equal([]string{"partition 3>2", "partition 2>1"}))
	g.Expect(promised(record(3, 2), record(3, 3))).To(BeEmpty(), "the next record saw the partition as it was")
	at := func(generation int64, t pawlv1alpha1.Transition) pawlv1alpha1.Transition {
		t.Generation = generation
		return t
	}
	g.Expect(promised(at(4, record(3, 2)), at(5, record(9, 9)))).To(BeEmpty(), "the one edit since was someone else's")
	g.Expect(promised(at(4, record(3, 2)), at(6, record(9, 9)))).To(Equal([]string{"partition 3>2"}), "and someone else's after it")
	g.Expect(promised(at(4, record(3, 2)), at(5, record(3, 2)), at(7, record(3, 2)), at(8, record(2, 1)))).
		To(Equal([]string{"partition 3>2?", "partition 3>2", "partition 2>1"}), "the second was written or not: there were two edits after it, which left 3")
	completed, changed := at(4, record(0, parked)), at(5, record(parked, parked))
	completed.Type, changed.Type = "RolloutCompleted", "RolloutStarted"
	g.Expect(promised(completed, changed)).To(BeEmpty(), "the one edit since was the new template, which was parked as it came in")
	changed.Generation = 6
	g.Expect(promised(completed, changed)).To(Equal([]string{"partition 0>2147483647"}), "and the template came after it")
	completed.Type, changed.Generation = "Parked", 5
	g.Expect(promised(completed, changed)).To(Equal([]string{"partition 0>2147483647"}), "it was parked because of the new template")
	other := record(2, 1)
	other.Type = "PartitionOverridden"
	g.Expect(promised(at(4, record(3, 2)), at(5, other), at(6, record(1, 0)))).To(Equal([]string{"partition 1>0"}), "it was someone else who wrote the partition")
	g.Expect(promised(at(4, record(3, 2)), at(6, other))).To(Equal([]string{"partition 3>2"}), "or who wrote it after Pawl")
	another := record(3, 3)
	another.Type, another.Reason = "Adopted", "Recreated"
	g.Expect(promised(record(3, 2), another)).To(Equal([]string{"partition 3>2"}), "the partition of another StatefulSet proves nothing")

	edited = true // by someone else, at that time
	completed.Type, changed.Generation = "RolloutCompleted", 6
	g.Expect(promised(completed, changed)).To(Equal([]string{"partition 0>2147483647?"}), "the template came after it, or before the second edit")
	g.Expect(promised(at(4, record(2, 1)), at(6, record(parked, 2)))).To(Equal([]string{"partition 2>1?", "partition 2147483647>2"}), "parked after it, or instead")
	g.Expect(promised(at(4, record(2, 1)), at(6, record(1, 0)))).To(Equal([]string{"partition 2>1", "partition 1>0"}), "it was written")
	g.Expect(promised(at(4, record(2, 1)), at(5, record(1, 0)))).To(Equal([]string{"partition 2>1", "partition 1>0"}), "by the one edit")
	edited = false

	gone := pawlv1alpha1.Transition{Type: "Abandoned", Reason: "Deleted", Generation: 4}
	g.Expect(promised(at(4, record(0, parked)), gone)).To(Equal([]string{"partition 0>2147483647?"}), "it was deleted before or after")
	gone.Generation = 5
	g.Expect(promised(at(4, record(0, parked)), gone)).To(Equal([]string{"partition 0>2147483647"}), "it was edited before it was deleted")

	replaced := pawlv1alpha1.Transition{Type: "PodReplaced", Pod: "db-2", PodUID: "u2"}
	restored := pawlv1alpha1.Transition{Type: "RevisionRestored", Revision: "db-1"}
	g.Expect(promised(replaced, restored)).To(Equal([]string{"delete u2", "restore db-1"}))
	started, stepped := pawlv1alpha1.Transition{Type: "RolloutStarted", Generation: 5}, pawlv1alpha1.Transition{Type: "StepStarted", Generation: 4}
	g.Expect(promised(at(4, replaced), started)).To(Equal([]string{"delete u2?"}), "the template changed before or after it")
	g.Expect(promised(at(4, restored), started)).To(Equal([]string{"restore db-1?"}), "as above")
	g.Expect(promised(at(4, replaced), stepped, started)).To(Equal([]string{"delete u2"}), "something else was seen before that")
	g.Expect(promised(at(4, replaced), pawlv1alpha1.Transition{Type: "Parked"}, started)).To(Equal([]string{"delete u2?"}), "parked for it")
	late := started
	late.Time.Time = late.Time.Add(time.Minute)
	g.Expect(promised(at(4, replaced), late)).To(Equal([]string{"delete u2"}), "it had a minute")
	g.Expect(promised(at(5, replaced), started)).To(Equal([]string{"delete u2"}), "it was recorded together with the rollout")
}

// A record is in doubt only when the audit log says who was at work beside Pawl, at that time.
func TestWhatIsDoubted(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1e9, 0)
	asked := func(user, verb, resource, subresource string, code int, body string, after time.Duration) request {
		var r request
		r.User.Username, r.Verb, r.ObjectRef.Resource, r.ObjectRef.Subresource, r.ObjectRef.Name = user, verb, resource, subresource, "db-2"
		r.ResponseStatus.Code, r.RequestObject, r.At = code, json.RawMessage(body), metav1.NewMicroTime(now.Add(after))
		return r
	}
	set := func(r request) request {
		r.ObjectRef.Name = name
		return r
	}
	const other, restore = "system:serviceaccount:kube-system:statefulset-controller", `{"status":{"currentRevision":"db-1"}}`
	replaced := pawlv1alpha1.Transition{Type: "PodReplaced", Pod: "db-2", PodUID: "u2", Time: metav1.NewMicroTime(now)}
	restored := pawlv1alpha1.Transition{Type: "RevisionRestored", Revision: "db-1", Time: metav1.NewMicroTime(now)}
	stepped := pawlv1alpha1.Transition{Type: "StepStarted", PreviousPartition: new(int32(2)), Partition: new(int32(1)), Time: metav1.NewMicroTime(now)}
	for _, c := range []struct {
		of    pawlv1alpha1.Transition
		asked request
		doubt bool
	}{
		{stepped, set(asked("alice", "patch", "statefulsets", "", 200, "", time.Second)), true},
		{stepped, set(asked("alice", "update", "statefulsets", "", 200, "", -time.Second)), true},
		{stepped, set(asked("alice", "patch", "statefulsets", "", 200, "", time.Minute)), false},
		{stepped, set(asked("alice", "patch", "statefulsets", "", 409, "", time.Second)), false},
		{stepped, set(asked(pawlUser, "patch", "statefulsets", "", 200, "", time.Second)), false},
		{stepped, set(asked("alice", "patch", "statefulsets", "status", 200, "", time.Second)), false},
		{stepped, asked("alice", "patch", "statefulsets", "", 200, "", time.Second), false}, // another one
		{replaced, asked(other, "delete", "pods", "", 200, "", time.Second), true},
		{replaced, asked(other, "delete", "pods", "", 200, "", time.Minute), false},
		{replaced, asked(other, "delete", "pods", "", 404, "", time.Second), false},
		{replaced, asked(pawlUser, "delete", "pods", "", 200, "", time.Second), false},
		{restored, asked(pawlUser, "patch", "statefulsets", "status", 409, restore, time.Second), true},
		{restored, asked(pawlUser, "patch", "statefulsets", "status", 200, restore, time.Second), false},
		{restored, asked(pawlUser, "patch", "statefulsets", "status", 409, `{"status":{"currentRevision":"db-9"}}`, time.Second), false},
	} {
		g.Expect(doubted(name, []request{c.asked}, nil)(c.of)).To(Equal(c.doubt), "%+v", c.asked)
	}
	g.Expect(doubted(name, nil, []time.Time{now.Add(time.Millisecond)})(restored)).To(BeTrue(), "it did not get there")
	g.Expect(doubted(name, nil, []time.Time{now.Add(time.Millisecond)})(replaced)).To(BeFalse(), "a pod is deleted all the same")
	g.Expect(doubted(name, nil, []time.Time{now.Add(-time.Millisecond)})(restored)).To(BeFalse(), "that was the one before")
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
		{"delete pods", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"}}`, true},
		{"delete pods", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}}`, false},
		{"delete pods", ``, false},
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

// A write at which no manager is killed is not overlooked either.
func TestWritesThatAreNotStruckAreSeen(t *testing.T) {
	g := NewWithT(t)
	writes := map[string]int{}
	for _, k := range kills {
		writes[k.write] = 1
	}
	for what := range aside {
		g.Expect(writes).NotTo(HaveKey(what), "both struck and left aside")
	}
	writes["create events"] = 3
	g.Expect(unstruck(writes)).To(Succeed())
	writes["update rolloutprogresses"] = 2
	g.Expect(unstruck(writes)).To(MatchError(ContainSubstring(`"update rolloutprogresses", which Pawl wrote 2 times`)))
	var r request
	r.Verb, r.RequestURI = "create", "/apis/apps/v1/namespaces/pawl-system/statefulsets?dryRun=All&fieldManager=pawl"
	g.Expect(r.stores()).To(BeFalse())
	r.RequestURI = "/apis/apps/v1/namespaces/pawl-system/statefulsets?fieldManager=pawl"
	g.Expect(r.stores()).To(BeTrue())
}

// A command that hangs does not take the stories with it, nor what it started, and it is named.
func TestACommandThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("did not end in time"))
	defer cancel()
	out, err := attempt(ctx, "", "sh", "-c", "echo begun; exec sleep 600")
	NewWithT(t).Expect(err).To(MatchError("sh -c echo begun; exec sleep 600: did not end in time"))
	NewWithT(t).Expect(out).To(Equal("begun\n"))
}
