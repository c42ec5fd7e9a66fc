package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// bench is a StatefulSet as the API server shows it, the log of Pawl about it, and a clock that is turned by hand. What
// the StatefulSet controller and the kubelets do, the test does; the partition follows Pawl.
type bench struct {
	facts   facts
	start   time.Time
	state   statemachine.State
	first   []statemachine.Event // the log before the clock began
	log     []statemachine.Event
	intents []statemachine.Intent
	samples []sample
	faults  []string
	uids    int

	only int // the one pod that may be stepped, where the test wants to see no other; -1 is any
}

// sample is what a person would have read at one moment.
type sample struct {
	at      time.Duration
	state   statemachine.StateName
	reason  statemachine.Reason
	pod     string
	healthy bool // whether pod 2 has been finished
}

var epoch = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// newBench is a StatefulSet t1/db whose three pods have been healthy at r1 for an hour, as Pawl has known it for long.
func newBench() *bench {
	b := &bench{start: epoch, only: -1}
	b.facts = facts{
		now: epoch.Add(-time.Hour), digest: "r1", mayRestore: true, mayListen: true,
		patience: Patience{StallGrace: 30 * time.Second, ProgressDeadline: 10 * time.Minute},
		nodes:    map[string]corev1.Node{}, claims: map[string]corev1.PersistentVolumeClaim{},
		namesakes: map[string]corev1.Pod{}, said: map[types.UID][]corev1.Event{},
		statefulSet: &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "t1", Name: "db", UID: "U1", ResourceVersion: "1", Generation: 1,
				CreationTimestamp: metav1.NewTime(epoch.Add(-24 * time.Hour)), Labels: map[string]string{v1alpha1.ModeLabel: "Enforce"},
			},
			Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(statemachine.Parked)},
			}},
			Status: appsv1.StatefulSetStatus{
				ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, CurrentRevision: "r1", UpdateRevision: "r1",
			},
		},
	}
	for i := range 3 {
		b.addNode("n"+strconv.Itoa(i), true)
		b.put(i, "r1")
		b.makeReady(i)
	}
	b.decide()
	b.facts.now = epoch
	b.first, b.log = b.log, nil
	return b
}

func (b *bench) set() *appsv1.StatefulSet { return b.facts.statefulSet }

// edited is a change of spec that the StatefulSet controller has seen.
func (b *bench) edited() {
	b.set().Generation++
	b.set().Status.ObservedGeneration = b.set().Generation
}

func (b *bench) template(revision string) {
	b.facts.digest = revision
	b.edited()
	b.set().Status.UpdateRevision, b.set().Status.UpdatedReplicas = revision, 0
}

func (b *bench) addNode(name string, ready bool) {
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown
	}
	b.facts.nodes[name] = corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(b.facts.now),
		}}},
	}
}

func benchPod(i int) string { return "db-" + strconv.Itoa(i) }

// pod is the pod of this ordinal; nil when it is absent.
func (b *bench) pod(i int) *corev1.Pod {
	for k := range b.facts.pods {
		if b.facts.pods[k].Name == benchPod(i) {
			return &b.facts.pods[k]
		}
	}
	return nil
}

func (b *bench) remove(i int) {
	kept := b.facts.pods[:0:0]
	for _, p := range b.facts.pods {
		if p.Name != benchPod(i) {
			kept = append(kept, p)
		}
	}
	b.facts.pods = kept
}

// put makes a new pod that no kubelet has seen.
func (b *bench) put(i int, revision string) *corev1.Pod {
	b.remove(i)
	b.uids++
	if node := "n" + strconv.Itoa(i); i > 2 {
		b.addNode(node, true)
	}
	b.facts.pods = append(b.facts.pods, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "t1", Name: benchPod(i), UID: types.UID(fmt.Sprintf("p%d", b.uids)), ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(b.facts.now.Truncate(time.Second)),
			Labels:            map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "U1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName:   "n" + strconv.Itoa(i),
			Containers: []corev1.Container{{Name: "main", Image: "db:" + revision, ReadinessProbe: &corev1.Probe{}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
	return b.pod(i)
}

func (b *bench) makeReady(i int) {
	now := metav1.NewTime(b.facts.now.Truncate(time.Second))
	p := b.pod(i)
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &p.CreationTimestamp,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}

// decide observes, decides, records and acts once; it returns when to look again.
func (b *bench) decide() time.Time {
	o := observe(b.facts)
	d := statemachine.Decide(b.state, o)
	if d.Bug != nil {
		b.fault("illegal: %v", d.Bug)
		return time.Time{}
	}
	folded, err := statemachine.Fold(b.state, d.Events)
	if err != nil || len(d.Events) > 0 && folded != d.State {
		b.fault("I6: the state is not the fold of the events: %v", err)
	}
	if d, err = b.withhold(o, d); err != nil {
		b.fault("%v", err)
	}
	if again, _ := b.withhold(o, statemachine.Decide(d.State, o)); len(again.Events) > 0 {
		b.fault("I7: the same observation twice: %s", short(again.Events[0]))
	}
	for _, e := range d.Events {
		if n := len([]rune(e.Message)); n == 0 || n > 200 {
			b.fault("the message of %s has %d characters", short(e), n)
		}
	}
	b.state, b.log = d.State, append(b.log, d.Events...)
	b.carryOut(d.Intent)
	b.samples = append(b.samples, sample{
		at: b.facts.now.Sub(b.start), state: d.State.Name, reason: d.State.Reason, pod: d.State.Pod, healthy: d.State.Finished.Has(2),
	})
	if !d.WakeAt.IsZero() && !d.WakeAt.After(b.facts.now) {
		b.fault("I9: wakes at once, for ever")
		return time.Time{}
	}
	return d.WakeAt
}

// withhold leaves out the steps of other pods than the one that the test is about, as if something held them.
func (b *bench) withhold(o statemachine.Observation, d statemachine.Decision) (statemachine.Decision, error) {
	for i, e := range d.Events {
		if b.only >= 0 && e.Type == statemachine.StepStarted && !e.Ordinals.Has(int32(b.only)) {
			d.Events, d.Intent = d.Events[:i], statemachine.Intent{}
			after := d.Events
			if p := o.Pods[b.only]; b.state.Hold.Reason != "" && o.Now.Sub(p.ReadySince) > time.Minute { // what holds the step has taken its place
				after = append(slices.Clone(after), statemachine.Event{Type: statemachine.Released, Time: e.Time})
			}
			var err error
			d.State, err = statemachine.Fold(b.state, after)
			return d, err
		}
	}
	return d, nil
}

func (b *bench) carryOut(i statemachine.Intent) {
	switch i.Kind {
	case statemachine.SetPartition:
		b.set().Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(i.Partition)}
		b.edited()
	case statemachine.ReplacePod:
		p := b.pod(int(i.Pod.Ordinal))
		p.DeletionTimestamp = &metav1.Time{Time: b.facts.now.Add(30 * time.Second).Truncate(time.Second)}
	case statemachine.RestoreRevision:
		b.set().Status.CurrentRevision = i.Revision
	case statemachine.NoIntent:
		return
	}
	b.intents = append(b.intents, i)
}

// look decides until there is nothing more to write: each write is a reason to look again.
func (b *bench) look() time.Time {
	for range 10 {
		done := len(b.intents)
		if wake := b.decide(); len(b.intents) == done {
			return wake
		}
	}
	b.fault("I9: ten writes in a row")
	return time.Time{}
}

// until lets time pass: Pawl looks at each moment that it asked for, and every half minute in between.
func (b *bench) until(at time.Time) {
	for {
		wake := b.look()
		next := b.facts.now.Add(30 * time.Second)
		if !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		if next.After(at) {
			break
		}
		b.facts.now = next
	}
	b.facts.now = at
	b.look()
}

func (b *bench) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf("at %s: ", b.facts.now.Sub(b.start))+fmt.Sprintf(format, args...))
}

func short(e statemachine.Event) string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Ordinals), " ")
}

// steps begins a rollout to r2, so that db-2 is in flight, and takes it away.
func (b *bench) steps() {
	b.template("r2")
	b.look()
	b.remove(2)
}
