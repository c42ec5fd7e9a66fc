package statemachine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Policy is what the RolloutPolicy of a StatefulSet asks for, and how things stand with it now. The zero Policy asks
// for nothing.
type Policy struct {
	Name    string // as the label pawl.dev/policy has it
	Missing string // why there is no policy of this name; empty if there is, or if none is needed

	Gates      []Gate   // as the policy has them
	Budgets    []Budget // the PodDisruptionBudgets that select pods of the StatefulSet; none if the policy ignores them
	CanaryPods int32    // pods to update before an approval is needed; 0 is none
	Bake       time.Duration
	Slots      Slots
}

// Gate is a question of the policy with the answer of this moment.
type Gate struct {
	Name    string
	Bypass  Bypass
	Verdict Verdict // Open or Closed; anything else is an error
	Message string  // the value it looked at, or the error
}

// Bypass is when a gate is not asked.
type Bypass string

// The bypasses. Anything but WhenPodDown is Never.
const (
	BypassNever       Bypass = "Never"
	BypassWhenPodDown Bypass = "WhenPodDown"
)

// Budget is a PodDisruptionBudget, with its status as the disruption controller last wrote it.
type Budget struct {
	Name     string
	Ordinals Ordinals // the pods that it selects
	Problem  string   // why it cannot be asked; empty if it can
	Stale    bool     // the status is of an older generation, or there is none
	Allowed  int32    // status.disruptionsAllowed
	Healthy  int32    // status.currentHealthy
	Desired  int32    // status.desiredHealthy
	Expected int32    // status.expectedPods
	Others   []string // other StatefulSets with pods under it and a pod being replaced, as namespace/name; see [State.TakesSlot]
}

// Slots is how many StatefulSets of a policy may have a pod being replaced. The zero Slots is no limit.
type Slots struct {
	Limit   int32
	Holders []string // other StatefulSets with a pod being replaced, as namespace/name; see [State.TakesSlot]
	Ahead   []string // other StatefulSets that wait for a slot and whose rollout began earlier
}

// TakesSlot reports whether a pod is being replaced that counts for maxConcurrentSteps, and for the budgets of others. One
// that was dead or unhealthy does not: replacing it costs nothing. Steps that wait for no turn do: those that a person
// forced, or someone else began.
func (s State) TakesSlot() bool {
	switch s.Step.Reason {
	case ReasonPodDead, ReasonNothingToProtect, ReasonRepair, ReasonOnlyUnhealthyPod:
		return false
	default:
		return s.Step.Open()
	}
}

// WaitsForSlot reports whether nothing but maxConcurrentSteps holds the next step.
func (s State) WaitsForSlot() bool { return s.Hold.Reason == ReasonConcurrencyLimit }

// WaitsForBudget reports whether a PodDisruptionBudget holds the next step.
func (s State) WaitsForBudget() bool {
	return s.Hold.Reason == ReasonDisruptionBudget || s.Block.Reason == ReasonDisruptionBudget
}

// GateResult is what one gate said when a step was decided.
type GateResult struct {
	Name    string
	Result  Verdict
	Message string // at most MaxGateMessage characters
}

// Verdict is the answer of a gate.
type Verdict string

// The verdicts.
const (
	GateOpen     Verdict = "Open"
	GateClosed   Verdict = "Closed"
	GateError    Verdict = "Error"
	GateBypassed Verdict = "Bypassed"
)

// MaxGateMessage is how long the message of a gate is in the log at most, in characters.
const MaxGateMessage = 128

// budgetGate is the name under which budgets are in the results.
const budgetGate = "DisruptionBudget"

// result is the answer as the log keeps it. What is neither open nor closed is an error (I12).
func (g Gate) result() GateResult {
	r := GateResult{Name: g.Name, Result: g.Verdict, Message: cut(strings.Join(strings.Fields(g.Message), " "), MaxGateMessage)}
	if r.Result != GateOpen && r.Result != GateClosed {
		r.Result = GateError
	}
	return r
}

// always reports whether the gate is asked also when the next pod is down.
func (g Gate) always() bool { return g.Bypass != BypassWhenPodDown }

// shutGate is the name of the first gate that is not open; empty if all are.
func shutGate(results []GateResult) string {
	for _, r := range results {
		if r.Result != GateOpen && r.Result != GateBypassed {
			return r.Name
		}
	}
	return ""
}

// gates are the answers, those left out that are bypassed for a pod that is down.
func (v *view) gates(podDown bool) []GateResult {
	var results []GateResult
	for _, g := range v.o.Policy.Gates {
		r := g.result()
		if podDown && !g.always() {
			r = GateResult{Name: g.Name, Result: GateBypassed}
		}
		results = append(results, r)
	}
	return results
}

// bypassed is every gate of the policy, none of which was asked.
func (v *view) bypassed() []GateResult {
	var results []GateResult
	for _, g := range v.o.Policy.Gates {
		results = append(results, GateResult{Name: g.Name, Result: GateBypassed})
	}
	return results
}

// 1: without its policy nobody knows what a step has to wait for.
func policyMissing(v *view) bool { return v.o.Policy.Missing != "" }

func blockPolicy(v *view) {
	v.block(ReasonPolicyNotFound, -1, finding{detail: v.o.Policy.Missing})
}

// 13, before 12: a gate that is asked whatever the pods are like is closed, or cannot be evaluated, and there is a pod
// that it could keep back.
func alwaysShut(v *view) bool { return v.shut(true) && v.nextPod() >= 0 }

// shut reports whether a gate is closed or cannot be evaluated, those left out that are bypassed for a pod that is down.
func (v *view) shut(podDown bool) bool { return shutGate(v.gates(podDown)) != "" }

func holdAlwaysShut(v *view) { v.waitForGate(v.gates(true)) }

// 15: any gate is closed, or cannot be evaluated.
func gateShut(v *view) bool { return v.shut(false) && v.nextPod() >= 0 }

func holdGate(v *view) { v.waitForGate(v.gates(false)) }

// waitForGate holds for the first gate that is shut, and blocks once the policy has been in the way past the deadline.
func (v *view) waitForGate(results []GateResult) {
	name := shutGate(results)
	for _, r := range results {
		if r.Name == name {
			v.waitForPolicy(r, results)
			return
		}
	}
}

func (v *view) waitForPolicy(r GateResult, results []GateResult) {
	f, why := finding{detail: r.Message, gates: results}, ReasonGateClosed
	switch {
	case r.Name == budgetGate:
		f.what, why = v.pod(v.nextPod())+" waits", ReasonDisruptionBudget
	case r.Result == GateError:
		f.what, why = fmt.Sprintf("%s waits: gate %s cannot be evaluated", v.pod(v.nextPod()), cut(r.Name, maxGateName)), ReasonGateError
	default:
		f.what = fmt.Sprintf("%s waits: gate %s is closed", v.pod(v.nextPod()), cut(r.Name, maxGateName))
	}
	if h := v.s.Hold; h.Reason.gate() && v.reached(h.Since.Add(v.o.ProgressDeadline)) {
		v.block(why, -1, f)
		return
	}
	v.hold(why, -1, f)
}

// maxGateName is how much of a gate's name a message has room for.
const maxGateName = 40

// 15: the StatefulSet controller asks no PodDisruptionBudget, so that replacing a healthy pod could take the last one
// that others rely on.
func budgetSpent(v *view) bool { return v.budget().Result != GateOpen }

func holdBudget(v *view) {
	v.waitForPolicy(v.budget(), append(v.gates(false), v.budget()))
}

// budget is the answer of all budgets that select the next pod. Each has to have room, also for the steps of other
// StatefulSets: nobody takes theirs out of its status as an eviction does, and the disruption controller sees a step only when
// its pod is gone. A step that it has seen counts twice then, which is slower and safe. One that is recorded and not
// written has its room already.
func (v *view) budget() GateResult {
	open := GateResult{Name: budgetGate, Result: GateOpen}
	n := v.nextPod()
	if n < 0 {
		return open
	}
	for _, b := range v.o.Policy.Budgets {
		if !v.has(b.Ordinals, n) {
			continue
		}
		var said string
		name := cut(b.Name, maxGateName)
		switch {
		case b.Problem != "":
			said = b.Problem
		case b.Stale:
			said = fmt.Sprintf("budget %s has no status of its newest generation yet", name)
		case b.Allowed > 0 && (v.confirming || int(b.Allowed) > len(b.Others)):
			continue
		case b.Allowed > 0:
			said = fmt.Sprintf("budget %s has room for %d, taken by %s", name, b.Allowed, strings.Join(b.Others, ", "))
		case b.Desired >= b.Expected:
			said = fmt.Sprintf("budget %s never allows a disruption: it wants %d of %d pods healthy", name, b.Desired, b.Expected)
		default:
			said = fmt.Sprintf("budget %s allows no disruption: %d of %d pods are healthy, it wants %d", name, b.Healthy, b.Expected, b.Desired)
		}
		return GateResult{Name: budgetGate, Result: GateClosed, Message: cut(said, MaxGateMessage)}
	}
	return open
}

// wayBack: a rollout to the stable revision never queues (I13).
func (v *view) wayBack() bool { return v.s.Rollout.Reason == ReasonRollback }

// needsApproval: the canary pods are updated, and a person decides whether the others are.
func (v *view) needsApproval() bool {
	canary := v.o.Policy.CanaryPods
	return canary > 0 && !v.wayBack() && v.s.Finished.Len() >= int(canary)
}

// 15: the canary pods are updated, and nobody has approved this revision.
func unapproved(v *view) bool { return v.needsApproval() && v.o.Approved != v.o.UpdateRevision }

func holdUnapproved(v *view) { v.hold(ReasonAwaitingApproval, -1, finding{}) }

// 15: an updated pod has not been available for long enough.
func baking(v *view) bool { return v.bakingPod() >= 0 }

// bakingPod is the updated pod that has to go on being available for longest, or -1.
func (v *view) bakingPod() int {
	last := -1
	if v.o.Policy.Bake == 0 || v.wayBack() {
		return last
	}
	for i := range v.o.Pods {
		if v.atTarget(i) && (last < 0 || v.baked(i).After(v.baked(last))) {
			last = i
		}
	}
	if last >= 0 && v.reached(v.baked(last)) {
		return -1
	}
	return last
}

// baked is when the pod has been available for the bake time. Its clock is cut to whole seconds.
func (v *view) baked(i int) time.Time {
	return v.o.Pods[i].ReadySince.Add(v.o.MinReady + v.o.Policy.Bake + objectTime)
}

func holdBaking(v *view) { v.hold(ReasonBaking, v.bakingPod(), finding{}) }

// 15: as many StatefulSets as the policy allows have a pod being replaced, or will when those that wait longer have had
// their turn. A step that is recorded and not written has its slot already.
func noSlot(v *view) bool {
	s := v.o.Policy.Slots
	return v.enforce() && s.Limit > 0 && !v.wayBack() && !v.confirming && int(s.Limit) <= len(s.Holders)+len(s.Ahead)
}

func holdSlot(v *view) { v.hold(ReasonConcurrencyLimit, v.nextPod(), finding{}) }

// explainPolicy says what the step waits for and until when, for the reasons that are the policy's; empty for others.
func (v *view) explainPolicy(why Reason, i int, f finding, until time.Time) string {
	switch why {
	case ReasonPolicyNotFound:
		return fit(fmt.Sprintf("RolloutPolicy %s is missing since %s", cut(v.o.Policy.Name, maxGateName), v.clock(v.heldSince(why))),
			f.detail, " "+reasons[why].next)
	case ReasonGateClosed, ReasonGateError, ReasonDisruptionBudget:
		since := v.o.Now
		if h := v.s.Hold; h.Reason.gate() {
			since = h.Since
		}
		return fit(fmt.Sprintf("%s since %s", f.what, v.clock(since)), f.detail, v.blockedAt(until)+" "+reasons[why].next)
	case ReasonAwaitingApproval:
		revision := v.o.UpdateRevision
		return whatFits(fmt.Sprintf("%d of %d pods run %s; it needs approval.", v.s.Finished.Len(), len(v.o.Pods), revision),
			fmt.Sprintf(` Approve: kubectl patch rp %s -n %s --type=merge -p '{"spec":{"approvedRevision":"%s"}}'`, v.o.Name, v.o.Namespace, revision),
			" Approve: set spec.approvedRevision to it.")
	case ReasonBaking:
		return fit(fmt.Sprintf("Baking until %s: %s is at %s.", v.clock(v.baked(i)), v.pod(i), v.o.UpdateRevision), "",
			v.whatFollows(""))
	case ReasonConcurrencyLimit:
		return v.explainSlots(i)
	default:
		return ""
	}
}

func (v *view) explainSlots(i int) string {
	s := v.o.Policy.Slots
	names := strings.Join(s.Holders, ", ")
	if names == "" {
		names = strings.Join(s.Ahead, ", ")
	}
	return fit(fmt.Sprintf("RolloutPolicy %s allows %d at a time and %s waits for its turn since %s",
		cut(cmp.Or(v.o.Policy.Name, "default"), maxGateName), s.Limit, v.pod(i), v.clock(v.heldSince(ReasonConcurrencyLimit))),
		"before it "+names, "")
}
