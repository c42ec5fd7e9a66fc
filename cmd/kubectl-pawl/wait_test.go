package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"pawl.dev/pawl/api/v1alpha1"
)

// scene is what wait sees: a StatefulSet that wants db-b, and what Pawl says of it. It begins when all is done.
type scene struct {
	set appsv1.StatefulSet
	rp  v1alpha1.RolloutProgress
}

func newScene() *scene {
	s := &scene{}
	s.set.APIVersion, s.set.Kind = "apps/v1", "StatefulSet"
	s.set.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-1", Generation: 2, Labels: map[string]string{v1alpha1.ModeLabel: "Enforce"}}
	s.set.Spec.Replicas = new(int32(3))
	s.set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2147483647))}
	s.set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdateRevision: "db-b", CurrentRevision: "db-b", Replicas: 3, UpdatedReplicas: 3}
	s.rp.APIVersion, s.rp.Kind = v1alpha1.GroupVersion.String(), "RolloutProgress"
	s.rp.Namespace, s.rp.Name = "shop", "db"
	s.rp.Status = v1alpha1.RolloutProgressStatus{
		State: v1alpha1.StateDone, Reason: "Completed", Message: "All 3 pods run db-b.", StatefulSetUID: "uid-1", StableRevision: "db-b",
		Partition: new(int32(3)), Progress: "3/3", Rollout: &v1alpha1.Rollout{Number: 2, ToRevision: "db-b", Outcome: v1alpha1.OutcomeCompleted},
	}
	s.condition(v1alpha1.ConditionReady, "Completed", "")
	return s
}

// condition is the only one that is true.
func (s *scene) condition(kind, reason, message string) {
	s.rp.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
}

// blocked is a state of the log, and the condition that repeats it.
func (s *scene) blocked(reason string) {
	s.rp.Status.State, s.rp.Status.Reason = v1alpha1.StateBlocked, reason
	s.condition(v1alpha1.ConditionStalled, reason, "Get help.")
}

// other makes the rollout one to another revision.
func (s *scene) other(outcome v1alpha1.Outcome) {
	s.rp.Status.Rollout.ToRevision, s.rp.Status.Rollout.Outcome, s.rp.Status.StableRevision = "db-a", outcome, "db-a"
}

// found is a StatefulSet that was there before Pawl: no rollout is known of it.
func (s *scene) found() { s.rp.Status.Rollout = nil }

func TestWait(t *testing.T) {
	const twoLooks = 2500 * time.Millisecond
	for name, c := range map[string]struct {
		see     func(*scene)
		timeout time.Duration
		code    int
		want    string
	}{
		"done":                         {func(*scene) {}, 0, 0, "done: All 3 pods run db-b."},
		"found so":                     {(*scene).found, 0, 0, "done: "},
		"of another uid":               {func(s *scene) { s.rp.Status.StatefulSetUID = "uid-0" }, 0, exitTimeout, "Pawl has not seen this StatefulSet yet"},
		"of another uid, found":        {func(s *scene) { s.found(); s.rp.Status.StatefulSetUID = "uid-0" }, 0, exitTimeout, "Pawl has not seen this StatefulSet yet"},
		"of another uid, blocked":      {func(s *scene) { s.blocked("NotReady"); s.rp.Status.StatefulSetUID = "uid-0" }, twoLooks, exitTimeout, "Pawl has not seen this StatefulSet yet"},
		"found, pods are older":        {func(s *scene) { s.found(); s.set.Status.UpdatedReplicas = 1 }, 0, exitTimeout, "1 of 3 pods are at db-b"},
		"found, not promoted":          {func(s *scene) { s.found(); s.set.Status.CurrentRevision = "db-a" }, 0, exitTimeout, "3 of 3 pods are at db-b"},
		"not seen by Kubernetes":       {func(s *scene) { s.set.Generation = 3 }, 0, exitTimeout, "the StatefulSet controller has not seen the template yet"},
		"not seen by Pawl":             {func(s *scene) { s.other(v1alpha1.OutcomeCompleted) }, 0, exitTimeout, "Pawl has not seen revision db-b yet"},
		"no RolloutProgress":           {func(s *scene) { s.rp = v1alpha1.RolloutProgress{} }, 0, exitTimeout, "Pawl has not seen this StatefulSet yet"},
		"blocked":                      {func(s *scene) { s.blocked("NotReady") }, 0, exitBlocked, "Blocked: NotReady: Get help."},
		"another rollout is blocked":   {func(s *scene) { s.other(""); s.blocked("NotReady") }, twoLooks, exitTimeout, "Pawl has not seen revision db-b yet"},
		"the log is damaged":           {func(s *scene) { s.other(""); s.condition(v1alpha1.ConditionStalled, "LogDamaged", "Get help.") }, 0, exitBlocked, "Blocked: LogDamaged"},
		"strategy, no rollout":         {func(s *scene) { s.found(); s.blocked("UnsupportedStrategy") }, twoLooks, exitBlocked, "Blocked: UnsupportedStrategy"},
		"strategy, after a rollout":    {func(s *scene) { s.other(v1alpha1.OutcomeCompleted); s.blocked("UnsupportedStrategy") }, twoLooks, exitBlocked, "Blocked: UnsupportedStrategy"},
		"strategy of a moment ago":     {func(s *scene) { s.other(v1alpha1.OutcomeCompleted); s.blocked("UnsupportedStrategy") }, 0, exitTimeout, "Pawl has not seen revision db-b yet"},
		"the controller is away":       {func(s *scene) { s.set.Generation = 3; s.other(""); s.blocked("StatusStale") }, twoLooks, exitBlocked, "Blocked: StatusStale"},
		"the controller is back":       {func(s *scene) { s.other(""); s.blocked("StatusStale") }, twoLooks, exitTimeout, "Pawl has not seen revision db-b yet"},
		"the partition is not written": {func(s *scene) { stepping(s, time.Minute) }, 0, exitTimeout, "db-2 is being replaced. Partition 2 is recorded and not written: look at the events"},
		"it will be in a moment":       {func(s *scene) { stepping(s, time.Second) }, 0, exitTimeout, "db-2 is being replaced.\n"},
		"it is written": {func(s *scene) {
			stepping(s, time.Minute)
			s.set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(2))
		}, 0, exitTimeout, "db-2 is being replaced.\n"},
		"unmanaged": {func(s *scene) { s.set.Labels = nil }, 0, 1, "not managed by Pawl"},
		"no such":   {func(s *scene) { s.set.Name = "" }, 0, 1, "read the StatefulSet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			c.see(s)
			if c.timeout == 0 {
				c.timeout = 300 * time.Millisecond
			}
			out, errs, code := s.api().said(t, "wait", "db", "--timeout", c.timeout.String())
			g := NewWithT(t)
			g.Expect(code).To(Equal(c.code), out+errs)
			g.Expect(out + errs).To(ContainSubstring(c.want))
		})
	}
}

// What stands at the end is for programs to read, whatever the end is; what happened on the way is beside it.
func TestWaitPrintsWhatStands(t *testing.T) {
	g := NewWithT(t)
	for code, see := range map[int]func(*scene){0: func(*scene) {}, exitBlocked: func(s *scene) { s.blocked("NotReady") }, exitTimeout: func(s *scene) { stepping(s, time.Second) }} {
		s := newScene()
		see(s)
		for _, output := range []string{"json", "yaml"} {
			out, errs, got := s.api().said(t, "wait", "db", "--timeout", "300ms", "-o", output)
			g.Expect(got).To(Equal(code), errs)
			var read v1alpha1.RolloutProgress
			g.Expect(yaml.UnmarshalStrict([]byte(out), &read)).To(Succeed(), out)
			g.Expect(read.Status.State).To(Equal(s.rp.Status.State))
		}
		out, errs, _ := s.api().said(t, "wait", "db", "--timeout", "300ms", "-o", "table")
		g.Expect(out).To(MatchRegexp(`^NAME +STATE +REASON +POD +UPDATED +PARTITION\ndb +%s +%s +\S+ +3/3 +\d\n$`, s.rp.Status.State, s.rp.Status.Reason))
		g.Expect(errs).NotTo(BeEmpty(), "what happened on the way")
	}
}

// How each end reads, as text and in columns.
func TestWaitGolden(t *testing.T) {
	g := NewWithT(t)
	var all strings.Builder
	for _, see := range []func(*scene){func(*scene) {}, func(s *scene) { s.blocked("NotReady") }, func(s *scene) { stepping(s, time.Second) }} {
		s := newScene()
		see(s)
		for _, output := range []string{"text", "table"} {
			out, errs, code := s.api().said(t, "wait", "db", "--timeout", "300ms", "-o", output)
			if output == "table" {
				fits(g, out) // a sentence is as long as what Pawl says
			}
			fmt.Fprintf(&all, "$ kubectl pawl wait db -o %s\n%s%s(exit code %d)\n", output, out, errs, code)
		}
	}
	golden(g, "wait", all.String())
}

// stepping is a step that was recorded that long ago, and its partition not written.
func stepping(s *scene, ago time.Duration) {
	st := &s.rp.Status
	st.State, st.Reason, st.Pod, st.Message, st.Partition = v1alpha1.StateStepping, "Starting", "db-2", "db-2 is being replaced.", new(int32(2))
	st.Since = metav1.NewMicroTime(now.Add(-ago))
	st.Rollout.Outcome = ""
	s.condition(v1alpha1.ConditionReconciling, "Starting", "")
}

func (s *scene) api() api {
	a := api{}
	if s.set.Name != "" {
		a["/apis/apps/v1/namespaces/shop/statefulsets/db"] = func() any { return s.set }
	}
	if s.rp.Name != "" {
		a["/apis/pawl.dev/v1alpha1/namespaces/shop/rolloutprogresses/db"] = func() any { return s.rp }
	}
	return a
}

// Once the revision is known, what happens to the generation does not matter: Pawl's own writes change it, too.
func TestWaitGoesOnWhileTheControllerIsBehind(t *testing.T) {
	g := NewWithT(t)
	s := newScene()
	done := s.rp.Status
	stepping(s, time.Second)
	a, looks := s.api(), 0
	const at = "/apis/pawl.dev/v1alpha1/namespaces/shop/rolloutprogresses/db"
	a[at] = func() any {
		if looks++; looks > 1 {
			s.rp.Status = done
		}
		s.set.Generation++
		return s.rp
	}
	out, errs, code := a.said(t, "wait", "db", "--timeout", "10s")
	g.Expect(code).To(BeZero(), out+errs)
	g.Expect(out).To(ContainSubstring("done: "))

	s = newScene()
	a = s.api()
	a[at] = func() any {
		s.other("")
		s.set.Status.UpdateRevision = "db-c"
		return s.rp
	}
	out, errs, code = a.said(t, "wait", "db", "--timeout", "10s")
	g.Expect(code).To(Equal(exitOvertaken), out+errs)
	g.Expect(errs).To(ContainSubstring("another change came: db-b is no longer the target, db-c is"))
}
