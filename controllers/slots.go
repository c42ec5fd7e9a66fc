package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// slots knows which StatefulSets have a pod being replaced and which wait for others: for a turn of their policy with
// maxConcurrentSteps, or for room in a PodDisruptionBudget that they share. It follows what was recorded, and what is about
// to be: a step is announced here before StepStarted is written, so that several workers cannot take the last room together.
type slots struct {
	mutex   sync.Mutex
	members map[types.NamespacedName]member
	limits  map[string]int32 // of policies, as last seen
	version uint64           // changes with members
	seeded  bool             // whether what was recorded before this process began is in members
	wake    func(types.NamespacedName)
}

// member is a StatefulSet that has a pod being replaced, or waits.
type member struct {
	policy string
	takes  bool
	queues bool      // for a turn
	budget bool      // waits for room in a budget
	since  time.Time // when its rollout began: the oldest goes first
}

// before orders those that queue.
func (m member) before(other member, key, otherKey types.NamespacedName) bool {
	if !m.since.Equal(other.since) {
		return m.since.Before(other.since)
	}
	return strings.Compare(key.String(), otherKey.String()) < 0
}

// others is what the other StatefulSets do, as a decision about one needs it.
type others struct {
	slots   statemachine.Slots     // of its policy
	beside  []types.NamespacedName // those in its namespace that have a pod being replaced
	version uint64                 // to take a slot with
}

// of is what the others do.
func (s *slots) of(key types.NamespacedName, me member, limit int32) others {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.limits == nil {
		s.limits = map[string]int32{}
	}
	s.limits[me.policy] = limit
	out := others{slots: statemachine.Slots{Limit: limit}, version: s.version}
	for other, m := range s.members {
		if other == key {
			continue
		}
		if m.takes && other.Namespace == key.Namespace {
			out.beside = append(out.beside, other)
		}
		switch {
		case m.policy != me.policy:
		case m.takes:
			out.slots.Holders = append(out.slots.Holders, other.String())
		case m.queues && m.before(me, other, key):
			out.slots.Ahead = append(out.slots.Ahead, other.String())
		}
	}
	slices.Sort(out.slots.Holders)
	slices.Sort(out.slots.Ahead)
	slices.SortFunc(out.beside, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// take announces a step, unless anything has changed since the version.
func (s *slots) take(key types.NamespacedName, me member, version uint64) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.version != version {
		return false
	}
	me.takes = true
	s.set(key, me)
	return true
}

// follow takes over what is recorded of one StatefulSet.
func (s *slots) follow(key types.NamespacedName, policy string, state statemachine.State) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.change(key, member{
		policy: policy, takes: state.TakesSlot(), queues: state.WaitsForSlot(), budget: state.WaitsForBudget(), since: state.Rollout.StartedAt,
	})
}

// leave forgets a StatefulSet that is no longer managed.
func (s *slots) leave(key types.NamespacedName) { s.follow(key, "", statemachine.State{}) }

// pass lets those behind a StatefulSet go first that cannot go on; it is in the queue again with its next look. What it
// has it keeps.
func (s *slots) pass(key types.NamespacedName) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.members[key].takes {
		s.change(key, member{})
	}
}

// change puts a member into the place of the one before, and calls those that may go on because of it.
func (s *slots) change(key types.NamespacedName, me member) {
	before := s.members[key]
	switch {
	case me == before:
		return
	case me.takes || me.queues || me.budget:
		s.set(key, me)
	case before == member{}:
		return
	default:
		delete(s.members, key)
		s.version++
	}
	s.call(before.policy)
	if me.policy != before.policy {
		s.call(me.policy)
	}
	if before.takes && !me.takes {
		s.callBeside(key)
	}
}

func (s *slots) set(key types.NamespacedName, m member) {
	if s.members == nil {
		s.members = map[types.NamespacedName]member{}
	}
	s.members[key] = m
	s.version++
}

// call wakes those whose turn it is now.
func (s *slots) call(policy string) {
	free := int(s.limits[policy])
	var waiting []types.NamespacedName
	for key, m := range s.members {
		switch {
		case m.policy != policy:
		case m.takes:
			free--
		case m.queues:
			waiting = append(waiting, key)
		}
	}
	slices.SortFunc(waiting, func(a, b types.NamespacedName) int {
		if s.members[a].before(s.members[b], a, b) {
			return -1
		}
		return 1
	})
	for i := 0; i < min(free, len(waiting)); i++ {
		s.wake(waiting[i])
	}
}

// callBeside wakes those that wait for a budget in the namespace: its status may have had room for long.
func (s *slots) callBeside(key types.NamespacedName) {
	for other, m := range s.members {
		if m.budget && other.Namespace == key.Namespace {
			s.wake(other)
		}
	}
}

// decide asks for a decision, with the steps of the others as they are at that moment. A decision that begins a step stands
// only if nobody else began one meanwhile, and if the owner says so that is there now: else it is made again.
func (r *Reconciler) decide(ctx context.Context, s sight, state statemachine.State, o statemachine.Observation) (statemachine.Decision, error) {
	me := member{policy: o.Policy.Name, since: o.Now}
	if state.Rollout.Open() {
		me.since = state.Rollout.StartedAt
	}
	for live := false; ; {
		d, stands, err := r.tryDecide(ctx, s, me, state, &o, &live)
		if err != nil || stands {
			return d, err
		}
	}
}

// tryDecide reports whether the decision stands. Once the owner has been asked live, live is true, and o has its answer.
func (r *Reconciler) tryDecide(
	ctx context.Context, s sight, me member, state statemachine.State, o *statemachine.Observation, live *bool,
) (d statemachine.Decision, stands bool, err error) {
	version, err := r.lookBeside(ctx, s.key, me, o)
	if err != nil {
		return d, false, err
	}
	d = statemachine.Decide(state, *o)
	if !starts(d) {
		if *live { // the owner that the cache has would let it pass, and may do so for ever
			d.WakeAt = sooner(d.WakeAt, o.Now.Add(tryAgain))
		}
		return d, true, nil
	}
	if !*live {
		if *live, err = r.askLive(ctx, s, o); err != nil || *live {
			return d, false, err
		}
	}
	return d, !shares(o) || !d.State.TakesSlot() || r.slots.take(s.key, me, version), nil
}

// shares reports whether the steps of others matter.
func shares(o *statemachine.Observation) bool {
	return o.Policy.Slots.Limit > 0 || len(o.Policy.Budgets) > 0
}

// lookBeside notes the steps of the others, and which version of them that was.
func (r *Reconciler) lookBeside(ctx context.Context, key types.NamespacedName, me member, o *statemachine.Observation) (uint64, error) {
	if !shares(o) {
		return 0, nil
	}
	if err := r.seed(ctx); err != nil {
		return 0, err
	}
	now := r.slots.of(key, me, o.Policy.Slots.Limit)
	o.Policy.Slots = now.slots
	return now.version, r.shareBudgets(ctx, now.beside, o)
}

// starts reports whether the decision records a step.
func starts(d statemachine.Decision) bool {
	return slices.ContainsFunc(d.Events, func(e statemachine.Event) bool { return e.Type == statemachine.StepStarted })
}

// shareBudgets notes at each budget which StatefulSets with a pod being replaced have pods under it too.
func (r *Reconciler) shareBudgets(ctx context.Context, beside []types.NamespacedName, o *statemachine.Observation) error {
	for i := range o.Policy.Budgets {
		o.Policy.Budgets[i].Others = nil
	}
	for _, key := range beside {
		set, err := fetch(ctx, r.Client, key, &appsv1.StatefulSet{})
		if err != nil {
			return fmt.Errorf("read the StatefulSet %s: %w", key, err)
		}
		for i := range o.Policy.Budgets {
			b := &o.Policy.Budgets[i]
			if b.Problem != "" {
				continue // it stops its pods by itself
			}
			under, err := r.under(ctx, set, types.NamespacedName{Namespace: o.Namespace, Name: b.Name})
			if err != nil {
				return err
			}
			if under {
				b.Others = append(b.Others, key.String())
			}
		}
	}
	return nil
}

// under reports whether a budget selects pods of a StatefulSet, by the template that they are made of: the pod that counts
// is the one that is not there. In doubt it does.
func (r *Reconciler) under(ctx context.Context, set *appsv1.StatefulSet, name types.NamespacedName) (bool, error) {
	budget, err := fetch(ctx, r.Client, name, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return true, fmt.Errorf("read the PodDisruptionBudget %s: %w", name, err)
	}
	if set == nil || budget == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return true, nil //nolint:nilerr // the API server lets none through
	}
	asked, _ := selector.Requirements()
	return !slices.ContainsFunc(asked, func(r labels.Requirement) bool {
		return !slices.Contains(labelsOfPods, r.Key()) && !r.Matches(labels.Set(set.Spec.Template.Labels))
	}), nil
}

// labelsOfPods are those that the StatefulSet controller adds to the ones of the template.
var labelsOfPods = []string{appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel, appsv1.ControllerRevisionHashLabelKey}

// seed takes over the steps that were recorded before this process began. They are read live: the cache of a replica
// that has just taken over may not have the last ones of the leader before it.
func (r *Reconciler) seed(ctx context.Context) error {
	s := &r.slots
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seeded {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, writeTimeout) // all workers wait for it
	defer done()
	namespaces := r.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if err := r.seedFrom(ctx, namespace); err != nil {
			return err
		}
	}
	s.seeded = true
	return nil
}

func (r *Reconciler) seedFrom(ctx context.Context, namespace string) error {
	const piece = 200
	for next := ""; ; {
		var list v1alpha1.RolloutProgressList
		if err := r.Live.List(ctx, &list, client.InNamespace(namespace), client.Limit(piece), client.Continue(next)); err != nil {
			return fmt.Errorf("list the RolloutProgresses: %w", err)
		}
		for i := range list.Items {
			if err := r.seedWith(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// seedWith takes over what one log says. It is newer than what a cache has made of it before, and if the StatefulSet is
// managed no longer it is not followed by anyone, so that nothing would ever take it out again.
func (r *Reconciler) seedWith(ctx context.Context, p *v1alpha1.RolloutProgress) error {
	if p.Status.Rollout == nil {
		return nil
	}
	me := member{
		takes:  stepOpen(p.Status),
		queues: p.Status.Reason == string(statemachine.ReasonConcurrencyLimit),
		budget: p.Status.Reason == string(statemachine.ReasonDisruptionBudget),
		since:  p.Status.Rollout.StartedAt.UTC(),
	}
	if !me.takes && !me.queues && !me.budget {
		return nil
	}
	key := client.ObjectKeyFromObject(p)
	set, err := fetch(ctx, r.Client, key, &appsv1.StatefulSet{})
	if err != nil {
		return fmt.Errorf("read the StatefulSet %s: %w", key, err)
	}
	if set == nil || (sight{set: set, progress: p}).standing() != driven {
		return nil
	}
	me.policy = policyName(set)
	r.slots.set(key, me)
	return nil
}

// stepOpen reads from status alone, which may be damaged or begin in the middle, whether a pod is being replaced that
// takes a slot. In doubt it is: the first look at the StatefulSet itself corrects it.
func stepOpen(status v1alpha1.RolloutProgressStatus) bool {
	if status.State != v1alpha1.StateStepping && status.State != v1alpha1.StateBlocked {
		return false
	}
	for _, t := range slices.Backward(status.Transitions) {
		switch statemachine.EventType(t.Type) {
		case statemachine.StepStarted:
			return statemachine.State{Step: statemachine.Step{Ordinals: "0", Reason: statemachine.Reason(t.Reason)}}.TakesSlot()
		case statemachine.StepCompleted, statemachine.StepAborted, statemachine.RolloutStarted, statemachine.Adopted:
			return false
		default:
		}
	}
	return true // its beginning is in a RolloutRecord
}
