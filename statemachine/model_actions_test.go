package statemachine

import "time"

// act is a sort of thing that can happen.
type act uint8

const (
	actLook  act = iota // Pawl observes, decides and records
	actWrite            // Pawl carries out what it recorded
	actControl
	actStatus
	actUp
	actGone
	actThaw
	actWake
	actLate
	actLeap
	fairActs // those before happen of themselves, sooner or later

	actPawlDies
	actReplaced
	actSleep
	actUnready
	actExit
	actHeal
	actCure
	actEvict
	actKill
	actStick
	actUnstick
	actSilent
	actBack
	actLose
	actFind
	actTemplate
	actRecreate
	actForget
	actPartition
	actScale
	actGate
	actGateUp
	actMode
	actPause
	actForce
	actApprove
	actLoseLog
	actBudget
	actSlot
	actFreezeSet
	actFreezePods
)

// action is one thing that happens, to one pod or with one value.
type action struct {
	act  act
	n    int8
	free bool // it counts against no budget: a person does what Pawl says
}

var revisions = [...]string{"A", "B", "C"}

var modes = [...]Mode{ModeEnforce, ModeObserve, ModeOff}

var verdicts = [...]Verdict{GateOpen, GateClosed, GateError}

// deed is what an action does to a world; it reports whether anything changed, and pays for it from a budget.
type deed struct {
	name string
	do   func(w *world, n int32) bool
	pays func(*budget) *int8
	arg  func(n int8) string
}

func faults(b *budget) *int8 { return &b.faults }
func orders(b *budget) *int8 { return &b.orders }

func ofPod(n int8) string      { return podName(int32(n)) }
func ofNumber(n int8) string   { return partitionText(int32(n)) }
func ofRevision(n int8) string { return revisions[n] }

var deeds map[act]deed

func init() {
	deeds = map[act]deed{
		actLook:    {name: "pawl looks", do: func(w *world, _ int32) bool { return w.looks() }},
		actWrite:   {name: "pawl writes", do: func(w *world, _ int32) bool { return w.acts() }},
		actControl: {name: "controller looks at the pods", do: func(w *world, _ int32) bool { return !w.asleep && w.controllerPods() }},
		actStatus:  {name: "controller writes the status", do: func(w *world, _ int32) bool { return !w.asleep && w.controllerStatus() }},
		actWake:    {name: "controller is back", do: func(w *world, _ int32) bool { return w.wakes() }},
		actLate:    {name: "the earlier pawl writes", do: func(w *world, _ int32) bool { return w.actsLate() }},
		actUp:      {name: "goes on", do: (*world).comesUp, arg: ofPod},
		actGone:    {name: "is gone", do: (*world).gone, arg: ofPod},
		actThaw:    {name: "pawl is back, its caches are new", do: func(w *world, _ int32) bool { return w.thaws() }},
		actLeap:    {name: "a minute passes", do: func(w *world, _ int32) bool { return w.leaps() }},

		actPawlDies:   {name: "pawl dies", do: func(w *world, _ int32) bool { return w.dies() }, pays: faults},
		actReplaced:   {name: "pawl stands still, another takes over", do: func(w *world, _ int32) bool { return w.isReplaced() }, pays: faults},
		actSleep:      {name: "controller is down", do: func(w *world, _ int32) bool { return w.sleeps() }, pays: faults},
		actUnready:    {name: "is unready", do: (*world).getsUnready, pays: faults, arg: ofPod},
		actExit:       {name: "exits", do: (*world).exits, pays: faults, arg: ofPod},
		actHeal:       {name: "is healed", do: (*world).heals, arg: ofPod},
		actCure:       {name: "gets what it needs", do: (*world).isCured, arg: ofPod},
		actEvict:      {name: "is evicted", do: (*world).evicted, pays: faults, arg: ofPod},
		actKill:       {name: "is deleted by someone", do: (*world).killed, pays: faults, arg: ofPod},
		actStick:      {name: "is held by a finalizer", do: (*world).sticks, pays: faults, arg: ofPod},
		actUnstick:    {name: "is let go", do: (*world).unsticks, arg: ofPod},
		actSilent:     {name: "is on a silent node", do: (*world).fallsSilent, pays: faults, arg: ofPod},
		actBack:       {name: "has its node back", do: (*world).comesBack, arg: ofPod},
		actLose:       {name: "has its claim lost", do: (*world).loses, pays: faults, arg: ofPod},
		actFind:       {name: "has its claim back", do: (*world).finds, arg: ofPod},
		actTemplate:   {name: "template", do: (*world).setTemplate, pays: func(b *budget) *int8 { return &b.templates }, arg: ofRevision},
		actRecreate:   {name: "created again at", do: (*world).recreate, pays: faults, arg: ofRevision},
		actForget:     {name: "controller overwrites currentRevision", do: func(w *world, _ int32) bool { return w.forgets() }, pays: faults},
		actPartition:  {name: "someone writes partition", do: (*world).setPartition, pays: faults, arg: ofNumber},
		actScale:      {name: "scale to", do: (*world).scale, pays: func(b *budget) *int8 { return &b.scales }, arg: ofNumber},
		actGate:       {name: "gate always", do: (*world).setAlways, pays: flips, arg: func(n int8) string { return string(verdicts[n]) }},
		actGateUp:     {name: "gate up", do: (*world).setWhenDown, pays: flips, arg: func(n int8) string { return string(verdicts[n]) }},
		actMode:       {name: "mode", do: (*world).setMode, pays: orders, arg: func(n int8) string { return string(modes[n]) }},
		actPause:      {name: "pause", do: (*world).pause, pays: orders, arg: ofNumber},
		actForce:      {name: "force to the target, down to", do: (*world).orderForce, pays: orders, arg: ofNumber},
		actApprove:    {name: "approve", do: func(w *world, _ int32) bool { return w.approve() }},
		actLoseLog:    {name: "the log is lost, its records are", do: (*world).losesLog, pays: faults, arg: func(n int8) string { return recordsAre[n] }},
		actBudget:     {name: "budget allows", do: (*world).setBudget, pays: flips, arg: ofNumber},
		actSlot:       {name: "another has the slot", do: (*world).setSlot, pays: flips, arg: ofNumber},
		actFreezeSet:  {name: "the cache of StatefulSets stands still", do: func(w *world, _ int32) bool { return w.freezesSet() }, pays: faults},
		actFreezePods: {name: "the cache of pods stands still", do: func(w *world, _ int32) bool { return w.freezesPods() }, pays: faults},
	}
}

func flips(b *budget) *int8 { return &b.flips }

func (a action) String() string {
	d := deeds[a.act]
	switch {
	case d.arg == nil:
		return d.name
	case a.act == actUp || a.act == actGone || a.act >= actUnready && a.act <= actFind:
		return d.arg(a.n) + " " + d.name
	default:
		return d.name + " " + d.arg(a.n)
	}
}

// fairly are the actions that happen of themselves.
func (s *setting) fairly() []action {
	all := []action{{act: actLook}, {act: actWrite}, {act: actControl}, {act: actStatus}, {act: actThaw}, {act: actWake}, {act: actLate}}
	for i := range int8(maxOrdinal) {
		all = append(all, action{act: actUp, n: i}, action{act: actGone, n: i})
	}
	return append(all, action{act: actLeap})
}

// do makes of the world what the action makes of it, and reports whether that was anything.
func (w *world) do(a action) bool {
	d := &deedOf[a.act]
	pays := d.pays != nil && !a.free
	if pays && *d.pays(&w.left) == 0 || !d.do(w, int32(a.n)) {
		return false
	}
	if pays {
		*d.pays(&w.left)--
	}
	return true
}

// deedOf is deeds by number.
var deedOf [actFreezePods + 1]deed

func init() {
	for a, d := range deeds {
		deedOf[a] = d
	}
}

// leaps lets time pass. Whoever is quick has nothing left to do now: Pawl, the controller, pods that end or start; unless
// they are away, held, or slow in this setting. If Pawl has something to do then, it must have asked to be woken (I9).
func (w *world) leaps() bool {
	if w.doing.kind != NoIntent || !w.slow && w.busy() {
		return false
	}
	if w.away {
		w.now = w.now.Add(leap)
		return true
	}
	o := w.observe()
	switch {
	case w.diary.same && w.diary.looked == busy:
		return false
	case !w.diary.same || w.diary.looked == unseen:
		if d := w.decide(w.state, o); len(d.Events) > 0 || d.Intent.Kind != NoIntent {
			return false
		}
	}
	o.Now = o.Now.Add(time.Millisecond) // a clock that begins now has no alarm yet
	alarm := w.decide(w.state, o).WakeAt
	w.now = w.now.Add(leap)
	if woken := !alarm.IsZero() && !alarm.After(w.now); !woken {
		w.checkAsleep()
	}
	return true
}

// checkAsleep: without an alarm the passing of time alone gives Pawl nothing to do, but to tell what it waits for.
func (w *world) checkAsleep() {
	d := w.decide(w.state, w.observe())
	if d.Intent.Kind != NoIntent {
		w.diary.violate("I9: nobody wakes Pawl for %s", intentText(d.Intent))
	}
	for _, e := range d.Events {
		if e.Type != Held && e.Type != Released {
			w.diary.violate("I9: nobody wakes Pawl for %s", e.Type)
		}
	}
}

// busy reports whether somebody who is quick has something to do.
func (w *world) busy() bool {
	for i := range w.pods {
		p := &w.pods[i]
		if p.terminating && !p.stuck && !p.silent || p.kind == podStarting && !p.terminating && w.behaves[p.rev] != cannotPull && !w.lost[i] && !p.silent {
			return true
		}
	}
	if w.asleep {
		return false
	}
	if w.diary.spare == nil {
		s := *w.setting
		s.diary = &diary{}
		w.diary.spare = &world{setting: &s}
	}
	t := w.diary.spare
	aside := t.setting // what happens there is not told
	*t = *w
	t.setting = aside
	return t.controllerPods() || t.controllerStatus()
}

// sleeps: the controller does nothing until it wakes.
func (w *world) sleeps() bool {
	was := w.asleep
	w.asleep = true
	return !was
}

func (w *world) wakes() bool {
	was := w.asleep
	w.asleep = false
	return was
}

// dies ends Pawl, between record and act or at rest. Its next start finds caches that are new.
func (w *world) dies() bool {
	if w.away {
		return false
	}
	w.doing = intent{}
	w.thaws()
	w.away = true
	return true
}

func (w *world) thaws() bool {
	if !w.oldSet && !w.oldPods && !w.away {
		return false
	}
	w.oldSet, w.oldPods, w.away = false, false, false
	w.seenSet, w.seenPods = set{}, [maxOrdinal]body{}
	return true
}

func (w *world) freezesSet() bool {
	if w.oldSet || w.oldPods {
		return false
	}
	w.oldSet, w.seenSet = true, w.set
	return true
}

func (w *world) freezesPods() bool {
	if w.oldSet || w.oldPods {
		return false
	}
	w.oldPods, w.seenPods = true, w.pods
	return true
}

// lives: a pod that something can happen to.
func (w *world) lives(i int32) bool { return w.pods[i].kind != podAbsent && !w.pods[i].terminating }

func (w *world) getsUnready(i int32) bool {
	if !w.lives(i) || w.pods[i].kind != podReady {
		return false
	}
	w.become(i, podUnready)
	return true
}

func (w *world) exits(i int32) bool {
	if p := w.pods[i]; !w.lives(i) || p.kind != podReady && p.kind != podUnready || p.restarted {
		return false
	}
	w.become(i, podExited)
	return true
}

// heals: a container that ended runs again.
func (w *world) heals(i int32) bool { return w.pods[i].kind == podExited && w.isCured(i) }

// isCured: a person cares for what the pod needs to run.
func (w *world) isCured(i int32) bool {
	if k := w.pods[i].kind; !w.lives(i) || k != podExited && k != podPulling && k != podUnready {
		return false
	}
	w.become(i, podReady)
	return true
}

func (w *world) evicted(i int32) bool {
	if !w.lives(i) || w.pods[i].kind != podReady {
		return false
	}
	w.become(i, podFailed)
	return true
}

func (w *world) killed(i int32) bool {
	if !w.lives(i) {
		return false
	}
	w.kill(i)
	return true
}

func (w *world) sticks(i int32) bool {
	if w.pods[i].kind == podAbsent || w.pods[i].stuck || !w.pods[i].terminating {
		return false
	}
	w.pods[i].stuck = true
	w.podChanged(i)
	return true
}

func (w *world) unsticks(i int32) bool {
	was := w.pods[i].stuck
	w.pods[i].stuck = false
	return was
}

func (w *world) fallsSilent(i int32) bool {
	if p := &w.pods[i]; p.kind == podAbsent || p.silent {
		return false
	}
	w.pods[i].silent, w.pods[i].silentSince = true, w.now
	return true
}

func (w *world) comesBack(i int32) bool {
	p := &w.pods[i]
	was := p.silent
	p.silent = false
	if was {
		p.silentSince = w.now
	}
	return was
}

func (w *world) loses(i int32) bool {
	was := w.lost[i]
	w.lost[i] = true
	return !was
}

func (w *world) finds(i int32) bool {
	was := w.lost[i]
	w.lost[i] = false
	return was
}

func (w *world) setTemplate(n int32) bool {
	rev := revisions[n]
	if rev == w.set.template {
		return false
	}
	if w.admission && w.set.mode == ModeEnforce {
		w.set.partition = Parked
	}
	w.foreign = w.foreign || !w.admission
	w.set.template = rev
	w.edited()
	return true
}

// recreate deletes the StatefulSet with orphaned pods, which the next one of its name adopts. What the model leaves out: a
// pod that is ending meanwhile is not adopted, and has the name until it is gone.
func (w *world) recreate(n int32) bool {
	for i := range w.pods {
		if w.pods[i].terminating {
			return false
		}
	}
	w.set = set{
		uid: w.set.uid + 1, created: w.now, mode: w.set.mode, generation: 1, template: revisions[n], replicas: w.set.replicas,
	}
	if w.admission && w.set.mode == ModeEnforce {
		w.set.partition = Parked
	}
	w.foreign = w.foreign || !w.admission
	w.setChanged()
	for i := range w.pods {
		w.pods[i].older = w.pods[i].kind != podAbsent
	}
	return true
}

// forgets is the StatefulSet controller writing an older status again.
func (w *world) forgets() bool {
	if w.set.cur == w.set.upd || w.set.upd == "" {
		return false
	}
	w.set.cur = w.set.upd
	w.setChanged()
	return true
}

func (w *world) setPartition(n int32) bool {
	if w.admission && w.set.mode == ModeEnforce || n == w.set.partition {
		return false // it puts the partition back
	}
	w.set.partition, w.foreign = n, true
	w.edited()
	return true
}

func (w *world) scale(n int32) bool {
	if n == w.set.replicas {
		return false
	}
	w.set.replicas = n
	w.edited()
	return true
}

func (w *world) setAlways(n int32) bool {
	was := w.always
	w.always = verdicts[n]
	return was != w.always
}

func (w *world) setWhenDown(n int32) bool {
	was := w.whenDown
	w.whenDown = verdicts[n]
	return was != w.whenDown
}

func (w *world) setMode(n int32) bool {
	was := w.set.mode
	w.set.mode = modes[n]
	if was == w.set.mode {
		return false
	}
	if w.admission && w.set.mode == ModeEnforce {
		w.set.partition = Parked
		w.set.generation++
	}
	w.foreign = true
	w.setChanged()
	return true
}

func (w *world) pause(n int32) bool {
	was := w.paused
	w.paused = n != 0
	return was != w.paused
}

func (w *world) orderForce(floor int32) bool {
	was := w.force
	w.force, w.foreign = Force{Revision: w.set.template, Partition: floor, Reason: "incident 7"}, true
	return was != w.force
}

func (w *world) approve() bool {
	was := w.approved
	w.approved = w.set.template
	return was != w.approved
}

var recordsAre = [...]string{"gone", "left"}

// losesLog is someone deleting the RolloutProgress, with its records or without.
func (w *world) losesLog(records int32) bool {
	if w.doing.kind != NoIntent || w.state.Name == "" || w.state.Name == New || records == 1 && w.state.StableRevision == "" {
		return false // of a StatefulSet that never finished a rollout there is no record
	}
	if w.state = w.state.fromRecords(); records == 0 {
		w.state, w.sawReady = State{}, false // "no Done in any record of this name": nobody knows any more
	}
	return true
}

func (w *world) setBudget(allowed int32) bool {
	was := w.spent
	w.spent = allowed == 0
	return was != w.spent
}

func (w *world) setSlot(taken int32) bool {
	was := w.slotTaken
	w.slotTaken = taken != 0
	return was != w.slotTaken
}

func (a action) fair() bool { return a.act < fairActs }

// each is one action with several values.
func each(a act, values ...int8) []action {
	all := make([]action, len(values))
	for i, n := range values {
		all[i] = action{act: a, n: n}
	}
	return all
}
