package statemachine

import (
	"slices"
	"time"
)

// three are the ordinals of a StatefulSet of three.
var three = []int8{0, 1, 2}

// settings are the worlds that the checker goes through, each under both pod management policies. Every one has three
// pods and three revisions, of which B does not work, or all but one do; a move of a sort is possible as often as the
// budget says.
func settings(parallel bool) []*setting {
	all := slices.Concat(templatesAndWriters(), peopleAndPolicies(), troubles())
	for _, s := range all {
		s.replicas, s.parallel = 3, parallel
	}
	return all
}

// templatesAndWriters are about pods that fail, templates, replicas, and others who write.
func templatesAndWriters() []*setting {
	return []*setting{
		{
			name: "pods fail", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), each(actExit, three...), each(actKill, three...),
				each(actHeal, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "templates change", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 3},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actExit, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "a probe that never passes", admission: true, behaves: map[string]behaviour{"B": staysUnready},
			budget: budget{faults: 1, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "two bad templates", admission: true, behaves: map[string]behaviour{"B": cannotPull, "C": cannotPull},
			budget: budget{faults: 1, templates: 3},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "no admission, another writer", behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actPartition, 0, 2, 3), each(actKill, 0, 2),
				[]action{{act: actPawlDies}}),
		},
		{
			name: "contested", behaves: map[string]behaviour{}, contested: true,
			budget: budget{faults: 3, templates: 1},
			moves:  slices.Concat(each(actTemplate, 1), each(actPartition, 0, 3)),
		},
		{
			name: "scale to nothing", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 1, scales: 2},
			moves:  slices.Concat(each(actTemplate, 1, 2), each(actScale, 0, 2), each(actKill, 0, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "scale", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 1, scales: 2},
			moves:  slices.Concat(each(actTemplate, 1, 2), each(actScale, 2, 4), each(actKill, 0, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "scale, no admission", behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 1, scales: 1},
			moves:  slices.Concat(each(actTemplate, 1, 2), each(actScale, 1, 2, 4), []action{{act: actPawlDies}}),
		},
		{
			name: "created", admission: true, behaves: map[string]behaviour{"B": cannotPull}, begin: (*world).beginAnew,
			budget: budget{faults: 1, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actExit, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
	}
}

// peopleAndPolicies are about the first sight of a StatefulSet, and what people and policies ask for.
func peopleAndPolicies() []*setting {
	return []*setting{
		{
			name: "created broken, no admission", behaves: map[string]behaviour{"A": cannotPull}, begin: (*world).beginAnew,
			budget: budget{faults: 1, templates: 1},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "first seen at partition 0", behaves: map[string]behaviour{"B": cannotPull},
			begin:  func(w *world) { w.set.partition, w.foreign = 0, true },
			budget: budget{faults: 1, templates: 1},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "created again", admission: true, behaves: map[string]behaviour{"C": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves:  slices.Concat(each(actRecreate, 0, 1, 2), each(actTemplate, 0, 2), each(actKill, three...), []action{{act: actForget}, {act: actPawlDies}}),
		},
		{
			name: "created again, no admission", behaves: map[string]behaviour{"C": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves:  slices.Concat(each(actRecreate, 0, 1), each(actTemplate, 0, 2), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "gates", admission: true, behaves: map[string]behaviour{"B": cannotPull}, policy: Policy{Gates: []Gate{{}, {}}},
			budget: budget{faults: 1, templates: 2, flips: 1},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actGate, 0, 1, 2), each(actGateUp, 0, 1, 2), each(actExit, three...),
				each(actKill, 0, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "budget and slot", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			policy: Policy{Budgets: []Budget{{}}, Slots: Slots{Limit: 1}},
			budget: budget{faults: 1, templates: 2, flips: 2},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actBudget, 0, 1), each(actSlot, 0, 1), each(actExit, 0, 2),
				each(actKill, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "the log is lost", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actLoseLog, 0, 1), each(actKill, 0, 2), []action{{act: actExit, n: 0}, {act: actPawlDies}}),
		},
		{
			name: "canary and bake", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			policy: Policy{CanaryPods: 1, Bake: time.Minute},
			budget: budget{faults: 1, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), []action{{act: actApprove}, {act: actPawlDies}}),
		},
		{
			name: "observe and hand back", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 1, orders: 2},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actMode, 0, 1, 2), each(actPartition, 0), each(actKill, 0, 2),
				[]action{{act: actPawlDies}}),
		},
		{
			name: "pause and force", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 1, orders: 2},
			moves: slices.Concat(each(actTemplate, 1, 2), each(actPause, 0, 1), each(actForce, 0, 1), each(actExit, three...),
				[]action{{act: actPawlDies}}),
		},
		{
			name: "force and a way back", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 1, templates: 2, orders: 1},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actForce, 0, 1, 2), each(actKill, 0, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "old caches", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actKill, 0, 2), each(actUnready, 1),
				[]action{{act: actFreezeSet}, {act: actFreezePods}, {act: actPawlDies}}),
		},
		{
			name: "minReadySeconds, no probe, ordinals from 1", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			start: 1, minReady: 10 * time.Second, unprobed: true,
			budget: budget{faults: 1, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, 1, 2, 3), each(actKill, 1, 2, 3), []action{{act: actPawlDies}}),
		},
	}
}

// troubles are about what goes wrong beside the template.
func troubles() []*setting {
	return []*setting{
		{
			name: "stuck, silent, evicted", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actStick, three...), each(actSilent, 0, 2), each(actBack, 0, 2),
				each(actEvict, three...), each(actUnstick, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "two templates, a silent node", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 2},
			moves: slices.Concat(each(actTemplate, 1, 2), each(actKill, 0, 1), each(actStick, 1),
				[]action{{act: actExit, n: 1}, {act: actSilent, n: 0}, {act: actBack, n: 0}}),
		},
		{
			name: "lost claims", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves: slices.Concat(each(actTemplate, 0, 1, 2), each(actLose, three...), each(actFind, three...), each(actKill, three...),
				[]action{{act: actPawlDies}}),
		},
		{
			name: "pods are refused", admission: true, behaves: map[string]behaviour{"B": mayNotBeCreated},
			budget: budget{faults: 1, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actExit, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "two at once", admission: true, behaves: map[string]behaviour{"B": cannotPull}, maxUnavailable: 2,
			budget: budget{faults: 1, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), each(actKill, three...), []action{{act: actPawlDies}}),
		},
		{
			name: "slow", admission: true, behaves: map[string]behaviour{"B": cannotPull}, slow: true,
			budget: budget{faults: 1, templates: 1},
			moves:  slices.Concat(each(actTemplate, 1, 2), each(actUnready, three...), each(actKill, 0), []action{{act: actPawlDies}}),
		},
		{
			name: "the controller is down", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 1},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actKill, three...), []action{{act: actSleep}, {act: actPawlDies}}),
		},
		{
			name: "two faults, three revisions", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actKill, 0, 2), []action{{act: actExit, n: 0}, {act: actHeal, n: 0}, {act: actPawlDies}}),
		},
		{
			name: "two dead", admission: true, behaves: map[string]behaviour{"B": cannotPull}, begin: (*world).beginTwoDead,
			budget: budget{faults: 2, templates: 1},
			moves:  slices.Concat(each(actTemplate, 0, 2), each(actKill, 0, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "the last step", admission: true, behaves: map[string]behaviour{"B": cannotPull}, begin: (*world).beginLastStep,
			budget: budget{faults: 2, templates: 1},
			moves:  slices.Concat(each(actTemplate, 0, 1), each(actUnready, three...), each(actKill, 0, 2), []action{{act: actPawlDies}}),
		},
		{
			name: "two managers", admission: true, behaves: map[string]behaviour{"B": cannotPull},
			budget: budget{faults: 2, templates: 2},
			moves:  slices.Concat(each(actTemplate, 0, 1, 2), each(actUnready, three...), []action{{act: actReplaced}}),
		},
	}
}

// beginAnew is a StatefulSet that was just created.
func (w *world) beginAnew() {
	w.pods = [maxOrdinal]body{}
	w.set.created, w.set.observed, w.set.cur, w.set.upd, w.set.updated = w.now, 0, "", "", 0
	if !w.admission {
		w.set.partition, w.foreign = 0, true
	}
}

// beginTwoDead is in the middle of a rollout to B that someone let go on: two pods cannot pull its image.
func (w *world) beginTwoDead() {
	w.set.template, w.set.upd, w.set.updated, w.set.generation, w.set.observed = "B", "B", 2, 2, 2
	for i := int32(1); i < 3; i++ {
		w.create(i, "B")
	}
	if !w.admission {
		w.set.partition, w.foreign = 1, true
	}
}

// beginLastStep is near the end of a rollout to C: one pod is left.
func (w *world) beginLastStep() {
	w.set.template, w.set.upd, w.set.updated, w.set.generation, w.set.observed, w.set.partition = "C", "C", 2, 2, 2, 1
	for i := int32(1); i < 3; i++ {
		w.create(i, "C")
		w.become(i, podReady)
	}
}
