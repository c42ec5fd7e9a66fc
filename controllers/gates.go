package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/controllers/gate"
	"pawl.dev/pawl/statemachine"
)

// programs are the gates of the policies, compiled once for each generation. The series of a gate are there for as long
// as a policy has it.
type programs struct {
	mutex  sync.Mutex
	byName map[string]program
}

type program struct {
	uid        types.UID
	generation int64
	gates      *gate.Program
}

func (p *programs) of(policy *v1alpha1.RolloutPolicy) *gate.Program {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.byName[policy.Name]
	if known.gates == nil || known.uid != policy.UID || known.generation != policy.Generation {
		before := known.gates
		known = program{policy.UID, policy.Generation, gate.Compile(policy.Spec.Gates)}
		if p.byName == nil {
			p.byName = map[string]program{}
		}
		p.byName[policy.Name] = known
		startCounting(known.gates)
		p.stopCounting(before)
	}
	return known.gates
}

func (p *programs) forget(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before := p.byName[name].gates
	delete(p.byName, name)
	p.stopCounting(before)
}

// startCounting has a series for each answer of each gate: what appears with its first answer has no increase that
// Prometheus can see.
func startCounting(gates *gate.Program) {
	for _, name := range gates.Names() {
		for _, result := range verdicts {
			gateResults.WithLabelValues(name, string(result))
		}
	}
}

// stopCounting deletes the series of gates that no policy has any more; nil are none.
func (p *programs) stopCounting(gates *gate.Program) {
	if gates == nil {
		return
	}
	for _, name := range gates.Names() {
		has := func(other program) bool { return slices.Contains(other.gates.Names(), name) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(p.byName)), has) {
			gateResults.DeletePartialMatch(prometheus.Labels{"gate": name})
		}
	}
}

// gatesOf asks the gates of the policy, of caches only. askAt is when to ask again because an owner could not be read.
func (r *Reconciler) gatesOf(
	ctx context.Context, policy *v1alpha1.RolloutPolicy, f facts, o statemachine.Observation,
) (gates []statemachine.Gate, askAt time.Time, err error) {
	if policy == nil || len(policy.Spec.Gates) == 0 || o.Mode == statemachine.ModeOff { // what is handed back takes no step
		r.owners.release(client.ObjectKeyFromObject(f.statefulSet))
		return nil, askAt, nil
	}
	var owner ownerAnswer
	if r.programs.of(policy).AsksOwner() {
		owner = r.owners.of(ctx, f.statefulSet, f.now)
	} else {
		r.owners.release(client.ObjectKeyFromObject(f.statefulSet))
	}
	gates, err = r.askGates(ctx, policy, f.statefulSet, f.pods, o, owner)
	return gates, owner.again, err
}

// askLive asks the gates once more before a step, if they ask the owner: of the API server. A watch that lags, or is
// refused since it began, shows an owner that was healthy once.
func (r *Reconciler) askLive(ctx context.Context, s sight, o *statemachine.Observation) (asked bool, err error) {
	if len(o.Policy.Gates) == 0 {
		return false, nil
	}
	policy, _, err := r.policyOf(ctx, s.set)
	if err != nil || policy == nil || !r.programs.of(policy).AsksOwner() {
		return false, err
	}
	o.Policy.Gates, err = r.askGates(ctx, policy, s.set, s.pods, *o, r.owners.live(ctx, s.set))
	return true, err
}

// askGates asks all gates of a policy.
func (r *Reconciler) askGates(
	ctx context.Context, policy *v1alpha1.RolloutPolicy, set *appsv1.StatefulSet, pods []corev1.Pod, o statemachine.Observation, owner ownerAnswer,
) ([]statemachine.Gate, error) {
	compiled := r.programs.of(policy)
	in := gate.Input{Owner: owner.object, OwnerProblem: owner.problem}
	var err error
	if compiled.AsksStatefulSet() {
		if in.StatefulSet, err = asJSON(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")); err != nil {
			return nil, err
		}
	}
	if compiled.AsksPods() {
		if in.Pods, err = podsAsJSON(pods, o); err != nil {
			return nil, err
		}
	}
	return compiled.Ask(ctx, in), nil
}

// podsAsJSON are the pods that are there, in the order of their ordinals.
func podsAsJSON(candidates []corev1.Pod, o statemachine.Observation) ([]any, error) {
	byUID := make(map[string]*corev1.Pod, len(candidates))
	for i := range candidates {
		byUID[string(candidates[i].UID)] = &candidates[i]
	}
	pods := make([]any, 0, len(candidates))
	for _, p := range slices.Concat(o.Pods, o.Condemned) {
		if pod := byUID[p.UID]; p.Present && pod != nil {
			object, err := asJSON(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
			if err != nil {
				return nil, err
			}
			pods = append(pods, object)
		}
	}
	return pods, nil
}

// asJSON is an object as kubectl get -o json shows it; objects in caches do not say what kind they are.
func asJSON(o runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode the %s for its gates: %w", kind.Kind, err)
	}
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	return object, nil
}
