package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// lab is the control plane that all stories share; TestMain starts it.
var lab *cluster

// name of the StatefulSet in every story.
const name = "db"

// patience bounds every wait; each says what it waits for.
const patience = 90 * time.Second

// story is one telling of a story: a namespace, a manager and an observer.
type story struct {
	Gomega
	t         *testing.T
	namespace string
	policy    appsv1.PodManagementPolicyType
	admission bool // whether the admission policies are in force in its namespace
	settings
	manager  *manager
	managers int
	observer *observer
	excused  map[string]bool // pods that the story itself ended, revisions that it forced
	good     string          // the revision that works, once it is known
	filled   []string        // variables of runbooks that the story filled in

	namespaceGone bool // the story deletes its namespace, and the log with it
}

var told atomic.Int64

// tell tells a story for both pod management policies, with the admission policies and without.
func tell(t *testing.T, title string, script func(*story)) {
	t.Parallel()
	tellWithAdmission(t, title, script)
	tellWithoutAdmission(t, title, script)
}

// tellWithAdmission is for what only the admission policies do.
func tellWithAdmission(t *testing.T, title string, script func(*story)) {
	tellIn(t, title, true, script)
}

// tellWithoutAdmission is for what the admission policies do not let happen.
func tellWithoutAdmission(t *testing.T, title string, script func(*story)) {
	tellIn(t, title, false, script)
}

// half leaves out every other setting of a story, so that a change is tested in a quarter of an hour: OrderedReady with
// the admission policies and Parallel without, or the other two. make stories tells all of them.
var half = os.Getenv("STORIES") == "half"

func tellIn(t *testing.T, title string, admission bool, script func(*story)) {
	for i, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
		if odd := i%2 == 1; half && (odd != admission) != (len(title)%2 == 1) {
			continue
		}
		where := whereabouts(admission)
		t.Run(string(policy)+"/"+where, func(t *testing.T) {
			t.Parallel()
			tellOne(t, title, policy, admission, settings{}, script)
		})
	}
}

func whereabouts(admission bool) string {
	return map[bool]string{true: "admission", false: "bare"}[admission]
}

// tellOne tells a story in one setting.
func tellOne(t *testing.T, title string, policy appsv1.PodManagementPolicyType, admission bool, with settings, script func(*story)) {
	where := whereabouts(admission)
	if with.via == nil {
		with.via = byLot(title, string(policy), where)
	}
	if with.via != nil {
		defer with.via.close()
		defer func() { killed.told(with.via, t.Failed()) }()
	}
	s := &story{
		Gomega: NewWithT(t), t: t, policy: policy, admission: admission, settings: with, excused: map[string]bool{},
		namespace: strings.ToLower(fmt.Sprintf("%s-%s-%s-%d", title, string(policy)[:3], where[:1], told.Add(1))),
	}
	defer results.record(title, policy, where, time.Now(), t)
	s.begin()
	defer s.end()
	script(s)
	s.holdsTogether()
}

func (s *story) begin() {
	ctx := s.t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{}}}
	if !s.admission {
		ns.Labels[bareLabel] = "true"
	}
	s.Expect(lab.admin.Create(ctx, ns)).To(Succeed())
	var err error
	s.observer, err = observe(lab.alice, s.namespace)
	s.Expect(err).NotTo(HaveOccurred())
	s.startManager()
}

func (s *story) startManager() {
	s.managers++
	m, err := lab.startManager(s.namespace, s.managers, s.settings)
	s.Expect(err).NotTo(HaveOccurred())
	s.manager = m
}

func (s *story) stopManager(sig syscall.Signal) {
	s.Expect(s.manager.stop(sig)).To(Succeed())
	s.manager = nil
}

// end cleans up, and says what there is to say if the story failed.
func (s *story) end() {
	if s.t.Failed() {
		s.t.Logf("%s\n%s\n%s", s.kubectl("get", "sts,pods,rp,rrec", "-o", "wide"), s.kubectl("get", "rp", name, "-o", "yaml"), s.kubectl("get", "events"))
		s.t.Logf("the log:\n%s\nwhat was seen:\n%s", s.history(), s.observer.chronicle())
		if s.manager != nil {
			s.t.Logf("the manager's log ends with:\n%s", s.manager.tail())
		}
	}
	if s.manager != nil {
		if err := s.manager.stop(syscall.SIGTERM); err != nil {
			s.t.Errorf("stop the manager: %v", err)
		}
	}
	s.observer.end()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if err := lab.admin.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
		s.t.Errorf("delete the namespace: %v", err)
	}
}

// holdsTogether is how every story ends: the observer saw everything and found no fault, and the log is whole.
func (s *story) holdsTogether() {
	s.Expect(s.observer.failure()).To(Succeed(), "the observer must have seen everything")
	s.Expect(s.judge().report()).To(BeEmpty(), "the observer found the rollout unsafe")
	s.watched().actsAreRecorded(s)
	if s.namespaceGone {
		return
	}
	s.Eventually(func() error {
		rp := s.progress()
		var records pawlv1alpha1.RolloutRecordList
		if err := lab.admin.List(s.t.Context(), &records, client.InNamespace(s.namespace)); err != nil {
			return fmt.Errorf("list records: %w", err)
		}
		var pages []pawlv1alpha1.Page
		for _, r := range records.Items {
			pages = append(pages, r.Page)
		}
		return ledger.Verify(name, rp.Status, pages)
	}, 10*time.Second, 200*time.Millisecond).Should(Succeed(), "status is the fold of its transitions and records")
	s.areExplained()
}

func (s *story) judge() *judge { return s.observer.judgement(s.excused) }

// image is an image with a tag that decides the fate of its pods (e2e/lab/README.md).
func image(tag string) string { return "registry.example/db:" + tag }

// create makes the StatefulSet and waits until it is up and Pawl has nothing to do.
func (s *story) create(tag string, edits ...func(*appsv1.StatefulSet)) {
	s.submit(tag, edits...)
	s.waitFor("the first pods to come up", done("Completed"))
	if s.set().Labels["pawl.dev/mode"] == "Enforce" {
		s.parkedNow() // it is recorded first
	}
	s.good = s.progress().Status.StableRevision
	s.Expect(s.good).NotTo(BeEmpty(), "the revision that came up is the stable one")
}

// submit makes the StatefulSet, whatever becomes of it.
func (s *story) submit(tag string, edits ...func(*appsv1.StatefulSet)) {
	s.Expect(lab.alice.Create(s.t.Context(), s.written(tag, edits...))).To(Succeed())
}

// written is the StatefulSet as a person writes it.
func (s *story) written(tag string, edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	replicas := int32(3)
	set := bareSet(s.namespace, tag)
	set.Spec.Replicas, set.Spec.PodManagementPolicy = &replicas, s.policy
	// A second between running and Ready, so that a story can meet a rollout in the middle.
	set.Spec.Template.Annotations = map[string]string{"lab.pawl.dev/ready-after": "1s"}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

// setImage changes the template as a person does.
func (s *story) setImage(tag string) {
	s.edit(func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image(tag) })
}

func (s *story) edit(change func(*appsv1.StatefulSet)) {
	set := s.set()
	before := set.DeepCopy()
	change(set)
	s.Expect(lab.alice.Patch(s.t.Context(), set, client.StrategicMergeFrom(before))).To(Succeed())
}

func (s *story) pause(paused bool) {
	rp := s.progress()
	before := rp.DeepCopy()
	rp.Spec.Paused = &paused
	s.Expect(lab.alice.Patch(s.t.Context(), rp, client.MergeFrom(before))).To(Succeed())
}

func (s *story) set() *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{}
	s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, set)).To(Succeed())
	return set
}

func (s *story) progress() *pawlv1alpha1.RolloutProgress {
	rp := &pawlv1alpha1.RolloutProgress{}
	err := lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, rp)
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return rp
}

func (s *story) pod(i int) *corev1.Pod {
	pod := &corev1.Pod{}
	s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: podName(i)}, pod)).To(Succeed())
	return pod
}

// kubectl runs the lab's kubectl in the story's namespace and returns what it prints.
func (s *story) kubectl(args ...string) string {
	return run(lab.lab.Kubectl, append([]string{"-n", s.namespace}, args...)...)
}

// fate changes what becomes of one running pod.
func (s *story) fate(i int, fate string) { s.annotate(i, "lab.pawl.dev/fate", fate) }

func (s *story) annotate(i int, key, value string) {
	pod := s.pod(i)
	before := pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
	s.Expect(lab.alice.Patch(s.t.Context(), pod, client.MergeFrom(before))).To(Succeed())
}

// is says what a RolloutProgress should look like.
type is func(pawlv1alpha1.RolloutProgressStatus) string

// waitFor waits until status looks like that; on failure it says what was waited for and what is there.
func (s *story) waitFor(what string, wanted is) {
	s.t.Helper()
	s.Eventually(func() string { return wanted(s.observer.status()) }, patience, 50*time.Millisecond).Should(BeEmpty(), "waiting for "+what)
}

func state(state, reason, pod string) is {
	return func(st pawlv1alpha1.RolloutProgressStatus) string {
		got := fmt.Sprintf("%s %s %s", st.State, st.Reason, st.Pod)
		if string(st.State) == state && (reason == "" || strings.Contains(" "+reason+" ", " "+st.Reason+" ")) && (pod == "" || st.Pod == pod) {
			return ""
		}
		return fmt.Sprintf("have %s; want %s %s %s; %s", got, state, reason, pod, st.Message)
	}
}

func done(reason string) is { return state("Done", reason, "") }

// events are the transitions of a rollout, also those that are in records already.
func (s *story) events() []pawlv1alpha1.Transition {
	bySequence := map[int64]pawlv1alpha1.Transition{}
	last := int64(0)
	add := func(list []pawlv1alpha1.Transition) {
		for _, t := range list {
			bySequence[t.Sequence] = t
			last = max(last, t.Sequence)
		}
	}
	for _, r := range s.records() {
		add(r.Page.Transitions)
	}
	add(s.progress().Status.Transitions)
	var all []pawlv1alpha1.Transition
	for n := int64(1); n <= last; n++ {
		all = append(all, bySequence[n])
	}
	return all
}

// diary is the log in short: what a person would tell of it.
func (s *story) diary() []string {
	var lines []string
	for _, t := range s.events() {
		switch t.Type {
		case "Held", "Released", "Parked", "Adopted":
			continue // when they come depends on how fast the machine is
		}
		line := t.Type
		if t.Reason != "" {
			line += " " + t.Reason
		}
		if t.Ordinals != "" && !strings.HasPrefix(t.Type, "Rollout") {
			line += " " + t.Ordinals
		}
		lines = append(lines, line)
	}
	return lines
}

// deletions are the pods that Pawl deleted, whatever it ran as.
func (s *story) deletions() []string {
	var found []string
	for _, r := range s.byManagers() {
		if r.write() == "delete pods" {
			found = append(found, r.ObjectRef.Name)
		}
	}
	return found
}
