package statemachine

import (
	"fmt"
	"slices"
	"time"
)

// world is a StatefulSet with its controller, its pods and Pawl, in plain moves that a property test draws. It follows
// the StatefulSet controller of Kubernetes 1.37 with maxUnavailable 1.
type world struct {
	now                time.Time
	parallel           bool
	replicas           int32
	partition          int32
	template           string
	uid                int
	created            time.Time // the StatefulSet
	generation         int64
	observed           int64
	cur, upd           string
	updated            int32
	rv                 int
	pods               map[int32]*Pod
	uids               int
	paused             bool
	force              Force
	bad                map[string]bool // revisions whose pods cannot pull their image
	refused            map[string]bool // revisions whose pods may not be created
	told               map[int32]Told  // what an Event says of a pod that was refused
	lost               map[int32]bool  // whose claim has lost its volume
	state              State
	log                []Event
	pending            Intent // recorded, not yet carried out
	pendingRV          int
	pendingObservation Observation
	trace              []string
	violations         []string
	admission          bool // the admission policy is in force: templates park, nobody else writes the partition
	foreign            bool // someone else moved the partition, or the controller moved before Pawl could: the order is not Pawl's doing
}

func newWorld(parallel bool, replicas int32, bad map[string]bool) *world {
	w := &world{
		now: epoch, parallel: parallel, replicas: replicas, partition: Parked, template: "A", generation: 1, observed: 1,
		created: epoch, cur: "A", upd: "A", updated: replicas, pods: map[int32]*Pod{}, bad: bad,
		refused: map[string]bool{}, told: map[int32]Told{}, lost: map[int32]bool{},
	}
	for i := range replicas {
		w.create(i, "A")
		w.ready(i)
	}
	w.now = w.now.Add(time.Hour)
	return w
}

func (w *world) tell(format string, args ...any) {
	w.trace = append(w.trace, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *world) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *world) create(i int32, rev string) {
	w.uids++
	delete(w.told, i)
	w.pods[i] = &Pod{
		Present: true, Name: fmt.Sprintf("db-%d", i), UID: fmt.Sprintf("p%d", w.uids), Ordinal: i, Revision: rev, Created: w.now,
		StartTime: w.now, ReadySince: w.now, Phase: "Pending", Node: "n1", Containers: []Container{{Name: "mysqld", Waiting: "ContainerCreating"}},
	}
	if w.bad[rev] {
		w.pods[i].Containers[0].Waiting = "ErrImagePull"
	}
}

func (w *world) ready(i int32) bool {
	p := w.pods[i]
	if p == nil || p.Terminating || p.Ready || p.Phase == "Pending" && (w.bad[p.Revision] || w.lost[i]) {
		return false
	}
	p.Phase, p.Ready, p.ReadySince = "Running", true, w.now
	c := &p.Containers[0]
	if c.Terminated != nil {
		c.Restarts, c.Last = c.Restarts+1, c.Terminated
	}
	c.Waiting, c.Terminated, c.RunningSince, c.Ready = "", nil, w.now, true
	return true
}

// fail lets a running pod fall over: its container exits, or its probe fails.
func (w *world) fail(i int32, exit bool) bool {
	p := w.pods[i]
	if p == nil || p.Terminating || !p.Ready {
		return false
	}
	p.Ready, p.ReadySince = false, w.now
	c := &p.Containers[0]
	c.Ready = false
	if exit {
		c.Terminated = &Exit{Code: 1, Reason: "Error", StartedAt: c.RunningSince, FinishedAt: w.now}
		c.RunningSince = time.Time{}
	}
	return true
}

func (w *world) edit() {
	w.generation++
	w.rv++
}

func (w *world) setTemplate(rev string) {
	w.tell("template %s", rev)
	if rev != w.template && w.admission {
		w.partition = Parked
	}
	w.foreign = w.foreign || !w.admission
	w.template = rev
	w.edit()
}

// recreate deletes the StatefulSet with orphaned pods, which the next one of its name adopts.
func (w *world) recreate(rev string) {
	w.now = w.now.Add(time.Second)
	w.uid++
	w.created, w.template, w.generation, w.observed, w.cur, w.upd, w.updated = w.now, rev, 1, 0, "", "", 0
	w.partition = 0
	if w.admission {
		w.partition = Parked
	}
	w.foreign = w.foreign || !w.admission
	w.rv++
	w.tell("created again at %s", rev)
}

// forgets is the StatefulSet controller writing an older status again.
func (w *world) forgets() {
	if w.cur != w.upd {
		w.tell("controller overwrites currentRevision %s with %s", w.cur, w.upd)
		w.cur = w.upd
		w.rv++
	}
}

func (w *world) available(i int32) bool {
	p := w.pods[i]
	return p != nil && !p.Terminating && p.Ready
}

// kill starts the end of a pod.
func (w *world) kill(i int32, who string) {
	w.tell("%s deletes db-%d (%s)", who, i, w.pods[i].Revision)
	p := w.pods[i]
	p.Terminating, p.DeletionTime = true, w.now.Add(time.Second)
}

// controllerUpdates is the order check (I1, I2) for a deletion by the StatefulSet controller that Pawl released.
func (w *world) controllerUpdates(i int32) {
	if w.available(i) && !w.foreign {
		for j := range w.replicas {
			switch {
			case j != i && !w.available(j):
				w.violate("I2: db-%d is available and is replaced while db-%d is down", i, j)
			case j > i && w.pods[j].Revision != w.template:
				w.violate("I1: db-%d is replaced before db-%d", i, j)
			}
		}
	}
	w.kill(i, "controller")
}

// controllerPods is one sync of the StatefulSet controller over the pods.
func (w *world) controllerPods() {
	for i := range w.replicas {
		if w.pods[i] == nil {
			rev := w.template
			if i < w.partition && w.cur != "" {
				rev = w.cur
			}
			if w.refused[rev] {
				w.refuse(i)
				return // with an error
			}
			w.create(i, rev)
			w.tell("controller creates db-%d at %s", i, rev)
			if !w.parallel {
				return
			}
		} else if !w.parallel && !w.available(i) {
			return
		}
	}
	if !w.controllerScalesDown() {
		return
	}
	w.controllerRolls()
}

// refuse is the API server not letting a pod be created, and an Event that says so, again and again.
func (w *world) refuse(i int32) {
	said, again := w.told[i]
	if !again {
		said = Told{Reason: "FailedCreate", Message: `pods "db" is forbidden: denied`, First: w.now}
		w.tell("db-%d is refused", i)
	}
	said.Last = w.now
	w.told[i] = said
}

func (w *world) controllerScalesDown() bool {
	for i := int32(len(w.pods)) + 8; i >= w.replicas; i-- {
		switch p := w.pods[i]; {
		case p == nil:
			continue
		case !p.Terminating:
			w.kill(i, "controller")
		}
		if !w.parallel {
			return false
		}
	}
	return true
}

func (w *world) controllerRolls() {
	budget := 1
	for i := range w.replicas {
		if !w.available(i) {
			budget--
		}
	}
	outdated := func(i int32) bool {
		p := w.pods[i]
		return i >= w.partition && p != nil && !p.Terminating && p.Revision != w.template
	}
	if w.parallel {
		for i := w.replicas - 1; i >= 0; i-- {
			if outdated(i) && !w.available(i) {
				w.controllerUpdates(i)
			}
		}
	}
	for i := w.replicas - 1; i >= 0 && budget > 0; i-- {
		if outdated(i) {
			w.controllerUpdates(i)
			budget--
		}
	}
}

// controllerStatus is the StatefulSet controller writing status.
func (w *world) controllerStatus() {
	var ready, updated, all int32
	for _, p := range w.pods {
		all++
		if p.Ready {
			ready++
		}
		if !p.Terminating && p.Revision == w.template {
			updated++
		}
	}
	cur := w.cur
	if cur == "" {
		cur = w.template
	}
	if updated == w.replicas && ready == w.replicas && all == w.replicas {
		cur = w.template
	}
	if w.observed != w.generation || w.cur != cur || w.upd != w.template || w.updated != updated {
		w.observed, w.cur, w.upd, w.updated = w.generation, cur, w.template, updated
		w.rv++
	}
}

// gone lets terminating pods end.
func (w *world) gone() {
	for i, p := range w.pods {
		if p.Terminating {
			delete(w.pods, i)
		}
	}
}

func (w *world) observe() Observation {
	o := Observation{
		Now: w.now, Name: "db", Namespace: "default", UID: fmt.Sprintf("u%d", w.uid), ResourceVersion: fmt.Sprint(w.rv), Created: w.created, Mode: ModeEnforce,
		Generation: w.generation, ObservedGeneration: w.observed, Strategy: rollingUpdate, Parallel: w.parallel,
		Partition: w.partition, Replicas: w.replicas, TemplateDigest: w.template, TemplateRevision: w.template,
		CurrentRevision: w.cur, UpdateRevision: w.upd, UpdatedReplicas: w.updated, Paused: w.paused, Force: w.force, MayRestore: true,
		StallGrace: 30 * time.Second, ProgressDeadline: 10 * time.Minute, Pods: make([]Pod, w.replicas),
	}
	for i := range o.Pods {
		o.Pods[i] = Pod{Name: fmt.Sprintf("db-%d", i), Ordinal: int32(i), Told: w.told[int32(i)]}
	}
	for i, p := range w.pods {
		seen := *p
		seen.Claims = []Claim{{Name: "data-" + p.Name, Phase: "Bound"}}
		if w.lost[i] {
			seen.Claims[0].Phase = claimLost
		}
		seen.Containers = append([]Container(nil), p.Containers...)
		if i < w.replicas {
			o.Pods[i] = seen
		} else {
			o.Condemned = append(o.Condemned, seen)
		}
	}
	return o
}

// decide observes, decides and records; the intent waits to be carried out.
func (w *world) decide() Decision {
	o := w.observe()
	d := Decide(w.state, o)
	w.checkDecision(o, d)
	for _, e := range d.Events {
		w.tell("  pawl: %s", describe(e))
	}
	w.state, w.log = d.State, append(w.log, d.Events...)
	w.pending, w.pendingRV, w.pendingObservation = d.Intent, w.rv, o
	return d
}

// act carries the intent out, with the guards of the API server.
func (w *world) act() {
	in := w.pending
	w.pending = Intent{}
	switch in.Kind {
	case SetPartition:
		if w.rv != w.pendingRV {
			return // 409 Conflict
		}
		w.tell("  pawl writes partition %s", partitionText(in.Partition))
		w.partition = in.Partition
		w.edit()
	case ReplacePod:
		if p := w.pods[in.Pod.Ordinal]; p != nil && p.UID == in.Pod.UID && !p.Terminating {
			w.kill(in.Pod.Ordinal, "pawl")
		}
	case RestoreRevision:
		if w.rv != w.pendingRV {
			return // 409 Conflict
		}
		w.tell("  pawl restores currentRevision %s", in.Revision)
		w.cur = in.Revision
		w.rv++
	case NoIntent:
	}
}

// checkDecision holds every decision against the invariants.
func (w *world) checkDecision(o Observation, d Decision) {
	if d.Bug != nil {
		w.violate("illegal event: %v", d.Bug)
		return
	}
	if folded, err := Fold(w.state, d.Events); err != nil || len(d.Events) > 0 && folded != d.State {
		w.violate("I6: the state is not the fold of the events: %v", err)
	}
	w.checkIntent(o, d)
	if again := Decide(d.State, o); len(again.Events) > 0 {
		w.violate("I7: the same observation twice: %s after %d events", describe(again.Events[0]), len(d.Events))
	}
	old := o
	old.Generation--
	if late := Decide(d.State, old); d.State.Generation == o.Generation && (len(late.Events) > 0 || late.Intent.Kind != NoIntent) {
		w.violate("I8: a stale read was acted upon")
	}
}

func (w *world) checkIntent(o Observation, d Decision) {
	switch in := d.Intent; in.Kind {
	case SetPartition:
		if d.State.Partition != in.Partition && d.State.Step.Partition != in.Partition {
			w.violate("I6: partition %d is written without a record", in.Partition)
		}
		if in.Partition == o.Partition {
			w.violate("I9: a write that changes nothing")
		}
		if by := w.partitionBy(d.Events); in.Partition > o.Partition && (by == StepStarted || by == StepSkipped) {
			w.violate("I11: the partition rises from %d to %d by %s", o.Partition, in.Partition, by)
		}
	case ReplacePod:
		if d.State.Replace.UID != in.Pod.UID {
			w.violate("I6: %s is deleted without a record", in.Pod.Name)
		}
		if in.Pod.Revision == o.UpdateRevision || in.Pod.Ready && in.Pod.Phase == "Running" && o.Now.Sub(in.Pod.ReadySince) > flapWindow {
			w.violate("I3: %s is not dead or not off target", in.Pod.Name)
		}
	case RestoreRevision:
		if in.Revision == o.CurrentRevision {
			w.violate("I9: a restore that changes nothing")
		}
		if d.State.Restores == 0 {
			w.violate("I6: currentRevision is restored without a record")
		}
	case NoIntent:
	}
	w.checkStep(o, d)
}

// partitionBy is the type of the newest record of the partition.
func (w *world) partitionBy(events []Event) EventType {
	for _, e := range slices.Backward(append(slices.Clone(w.log), events...)) {
		if e.Partition != nil {
			return e.Type
		}
	}
	return ""
}

// checkStep: an ordinary step is taken only when every pod is healthy (I4) and all released ones are finished (I2).
func (w *world) checkStep(o Observation, d Decision) {
	for _, e := range d.Events {
		if e.Type != StepStarted || e.Reason != "" {
			continue
		}
		for i := range o.Pods {
			p := &o.Pods[i]
			if older := p.Present && p.Created.Before(o.Created); older && p.Revision != o.UpdateRevision &&
				o.CurrentRevision == o.UpdateRevision && d.State.Restores < maxRestores && i == 0 {
				w.violate("I5: a step, and db-%d at %s would return at %s", i, p.Revision, o.UpdateRevision)
			}
		}
		if e.Ordinals.Len() != 1 || *e.Partition != first(e.Ordinals) {
			w.violate("I2: a step releases %q to partition %d", e.Ordinals, *e.Partition)
		}
		if p := &o.Pods[first(e.Ordinals)]; claimIn(p, claimLost) != "" && p.Revision != o.UpdateRevision {
			w.violate("I2: a step, and %s would not come back: its claim is lost", p.Name)
		}
		for i := range o.Pods {
			p := &o.Pods[i]
			if !p.Present || p.Terminating || !p.Ready {
				w.violate("I4: a step while db-%d is not ready", i)
			}
			if i > int(first(e.Ordinals)) && p.Revision != o.UpdateRevision {
				w.violate("I1: db-%d is stepped before db-%d", first(e.Ordinals), i)
			}
		}
	}
}
