package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// slots knows which StatefulSets have a pod being replaced and which wait for their turn, for policies with
// maxConcurrentSteps. It follows what was recorded, and what is about to be: a slot is taken before StepStarted is
// written, so that several workers cannot take the last one together.
type slots struct {
	mutex   sync.Mutex
	members map[types.NamespacedName]member
	limits  map[string]int32 // of policies, as last seen
	version uint64           // changes with members
	seeded  bool             // whether what was recorded before this process began is in members
	wake    func(types.NamespacedName)
}

// member is a StatefulSet that has a slot or waits for one.
type member struct {
	policy string
	takes  bool
	since  time.Time // when its rollout began: the oldest goes first
}

// before orders those that wait.
func (m member) before(other member, key, otherKey types.NamespacedName) bool {
	if !m.since.Equal(other.since) {
		return m.since.Before(other.since)
	}
	return strings.Compare(key.String(), otherKey.String()) < 0
}

// of is what the others do, as a decision needs it, and the version of it to take a slot with.
func (s *slots) of(key types.NamespacedName, me member, limit int32) (statemachine.Slots, uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.limits == nil {
		s.limits = map[string]int32{}
	}
	s.limits[me.policy] = limit
	out := statemachine.Slots{Limit: limit}
	for other, m := range s.members {
		switch {
		case other == key || m.policy != me.policy:
		case m.takes:
			out.Holders = append(out.Holders, other.String())
		case m.before(me, other, key):
			out.Ahead = append(out.Ahead, other.String())
		}
	}
	slices.Sort(out.Holders)
	slices.Sort(out.Ahead)
	return out, s.version
}

// take reserves a slot, unless anything has changed since the version.
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
	me := member{policy: policy, takes: state.TakesSlot(), since: state.Rollout.StartedAt}
	before := s.members[key]
	switch {
	case me == before:
		return
	case me.takes || state.WaitsForSlot():
		s.set(key, me)
	case before == member{}:
		return
	default:
		delete(s.members, key)
		s.version++
	}
	s.call(before.policy)
	if policy != before.policy {
		s.call(policy)
	}
}

// leave forgets a StatefulSet that is no longer managed.
func (s *slots) leave(key types.NamespacedName) { s.follow(key, "", statemachine.State{}) }

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
		default:
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

// decide asks for a decision, with the slots of the policy as they are at that moment. A decision that takes a slot
// stands only if nobody else took one meanwhile; else it is made again.
func (r *Reconciler) decide(ctx context.Context, s sight, state statemachine.State, o statemachine.Observation) (statemachine.Decision, error) {
	limit := o.Policy.Slots.Limit
	if limit == 0 {
		return statemachine.Decide(state, o), nil
	}
	if err := r.seed(ctx); err != nil {
		return statemachine.Decision{}, err
	}
	me := member{policy: o.Policy.Name, since: o.Now}
	if state.Rollout.Open() {
		me.since = state.Rollout.StartedAt
	}
	for {
		var version uint64
		o.Policy.Slots, version = r.slots.of(s.key, me, limit)
		d := statemachine.Decide(state, o)
		if !starts(d) || r.slots.take(s.key, me, version) {
			return d, nil
		}
	}
}

// starts reports whether the decision records a step that takes a slot.
func starts(d statemachine.Decision) bool {
	return d.State.TakesSlot() && slices.ContainsFunc(d.Events, func(e statemachine.Event) bool { return e.Type == statemachine.StepStarted })
}

// seed takes over the steps that were recorded before this process began. They are read live: the cache of a replica
// that has just taken over may not have the last ones of the leader before it.
func (r *Reconciler) seed(ctx context.Context) error {
	s := &r.slots
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seeded {
		return nil
	}
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

func (r *Reconciler) seedWith(ctx context.Context, p *v1alpha1.RolloutProgress) error {
	key := client.ObjectKeyFromObject(p)
	if _, known := r.slots.members[key]; known || p.Status.Rollout == nil {
		return nil
	}
	takes := stepOpen(p.Status)
	if !takes && p.Status.Reason != string(statemachine.ReasonConcurrencyLimit) {
		return nil
	}
	set, err := fetch(ctx, r.Client, key, &appsv1.StatefulSet{})
	if err != nil {
		return fmt.Errorf("read the StatefulSet %s: %w", key, err)
	}
	if set != nil {
		r.slots.set(key, member{policy: policyName(set), takes: takes, since: p.Status.Rollout.StartedAt.UTC()})
	}
	return nil
}

// stepOpen reads from status alone, which may be damaged or begin in the middle, whether a pod is being replaced that
// takes a slot. In doubt it is; the first look at the StatefulSet itself corrects it.
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
	return status.State == v1alpha1.StateStepping
}
