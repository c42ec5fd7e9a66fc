package statemachine

import (
	"fmt"
	"time"
)

// The model: a StatefulSet with its controller, its pods, the people around it and Pawl. One world serves the property
// tests, which walk through it at random, and the model checker, which goes everywhere. It is a plain comparable value:
// what a move makes of it depends on nothing else.

const (
	maxOrdinal = 5 // ordinals 0 to 4
	// leap is how time passes: a minute and a bit, past the grace, the flap window and all shorter spans; two leaps are
	// past the progress deadline.
	leap          = 61 * time.Second
	modelGrace    = 30 * time.Second
	modelDeadline = 100 * time.Second
	podGrace      = 30 * time.Second
)

// behaviour is what the pods of a revision do.
type behaviour uint8

const (
	startsWell      behaviour = iota // they become Ready
	cannotPull                       // their image
	staysUnready                     // they run and never become Ready
	mayNotBeCreated                  // something refuses them
)

// kind is how a pod is.
type kind uint8

const (
	podAbsent   kind = iota
	podStarting      // Pending, for a moment
	podPulling       // Pending, its image cannot be pulled
	podReady
	podUnready // Running, its probe fails
	podExited  // Running, its container has ended
	podFailed  // phase Failed: the StatefulSet controller deletes it
)

// body is a pod.
type body struct {
	kind        kind
	terminating bool
	stuck       bool // terminating, and something holds it
	silent      bool // on a node that is not Ready
	ever        bool // it was Ready once
	older       bool // than its StatefulSet
	restarted   bool // its container was, once
	uid         int32
	rev         string
	since       time.Time // the Ready condition
	deletion    time.Time // deletionTimestamp
	silentSince time.Time
}

// set is the StatefulSet as the API server has it.
type set struct {
	uid                  int32
	created              time.Time
	mode                 Mode
	generation, observed int64
	template             string
	cur, upd             string
	updated              int32
	partition            int32
	replicas             int32
}

// setting is what does not change while a world runs.
type setting struct {
	name           string
	parallel       bool
	admission      bool // templates park, nobody else writes the partition
	replicas       int32
	start          int32
	maxUnavailable int
	minReady       time.Duration
	unprobed       bool
	noRestore      bool
	policy         Policy               // gates, budgets and slots are those of the world
	behaves        map[string]behaviour // of revisions that are not good
	begin          func(*world)         // from a settled StatefulSet at A
	moves          []action             // that may be made, beside those of controller, pods and Pawl
	budget         budget               // how often
	decide         func(State, Observation) Decision
	actsFirst      bool // a broken Pawl: it writes, and records then
	slow           bool // time passes also while somebody is busy
	contested      bool // three foreign writes are possible: their times matter
	diary          *diary
}

// budget is how many moves of a sort are left.
type budget struct{ faults, templates, scales, orders, flips int8 }

// intent is what Pawl has recorded and not done yet.
type intent struct {
	kind      IntentKind
	partition int32
	ordinal   int32
	uid       int32
	revision  string
}

type world struct {
	*setting
	left budget
	now  time.Time
	set  set
	pods [maxOrdinal]body
	uids int32
	lost [maxOrdinal]bool // claims that have lost their volume
	told [maxOrdinal]Told // what an Event says of a pod that was refused

	paused    bool
	force     Force
	approved  string
	spent     bool    // the PodDisruptionBudget allows nothing
	slotTaken bool    // another StatefulSet has the only slot of the policy
	always    Verdict // of the gate that is always asked
	whenDown  Verdict // of the gate that is bypassed for a pod that is down

	// Caches that stand still, and what they show.
	oldSet, oldPods bool
	seenSet         set
	seenPods        [maxOrdinal]body
	asleep          bool // the StatefulSet controller
	away            bool // Pawl does not look: it is down, or waits until its cache shows what it wrote

	state State
	doing intent
	late  intent // of another manager, which stood still before it acted, and was replaced

	// What the invariants need to know of the past.
	foreign  bool             // someone else moved the partition, or the controller moved before Pawl could: the order is not Pawl's doing
	updating [maxOrdinal]bool // the controller is replacing it
	lowering bool             // the newest record of the partition is of a step
	sawReady bool             // Pawl saw a pod that was Ready
}

// diary is what happened in a world. It is told, not compared.
type diary struct {
	keeps      bool // the log, not only violations
	log        []Event
	violations []string
	same       bool   // one action after the other is tried from one world
	looked     sight  // what came of it when Pawl looked at that
	spare      *world // in which something is tried; worlds are large
}

// sight is whether Pawl had anything to do.
type sight int8

const (
	unseen sight = iota
	idle
	busy
)

func (d *diary) violate(format string, args ...any) {
	d.violations = append(d.violations, fmt.Sprintf(format, args...))
}

func newWorld(s *setting) world {
	if s.maxUnavailable == 0 {
		s.maxUnavailable = 1
	}
	if s.decide == nil {
		s.decide = Decide
	}
	if s.diary == nil {
		s.diary = &diary{}
	}
	w := world{setting: s, left: s.budget, now: epoch, always: GateOpen, whenDown: GateOpen, state: State{}}
	w.set = set{
		uid: 1, created: epoch, mode: ModeEnforce, generation: 1, observed: 1, template: "A", cur: "A", upd: "A",
		updated: s.replicas, partition: Parked, replicas: s.replicas,
	}
	for i := s.start; i < s.start+s.replicas; i++ {
		w.create(i, "A")
		w.become(i, podReady)
	}
	w.now = w.now.Add(time.Hour)
	if s.begin != nil {
		s.begin(&w)
	}
	return w
}

// inRange yields the ordinals that the StatefulSet wants.
func (w *world) wants(i int32) bool { return i >= w.start && i < w.start+w.set.replicas }

func (w *world) create(i int32, rev string) {
	w.uids++
	k := podStarting
	if w.behaves[rev] == cannotPull {
		k = podPulling
	}
	w.pods[i] = body{kind: k, uid: w.uids, rev: rev, since: w.now}
	w.told[i] = Told{}
	w.updating[i] = false
	w.podChanged(i)
}

// become is a pod that goes on living in another way.
func (w *world) become(i int32, k kind) {
	p := &w.pods[i]
	if (k == podReady) != (p.kind == podReady) {
		p.since = w.now
	}
	if k == podReady {
		p.ever = true
		p.restarted = p.restarted || p.kind == podExited
	}
	p.kind = k
	w.podChanged(i)
}

// podChanged: a deletion that is guarded by what the pod was comes to nothing.
func (w *world) podChanged(i int32) {
	for _, in := range []*intent{&w.doing, &w.late} {
		if in.kind == ReplacePod && in.ordinal == i {
			*in = intent{}
		}
	}
}

// setChanged: a write that is guarded by what the StatefulSet was comes to nothing.
func (w *world) setChanged() {
	for _, in := range []*intent{&w.doing, &w.late} {
		if in.kind == SetPartition || in.kind == RestoreRevision {
			*in = intent{}
		}
	}
}

func (w *world) edited() {
	w.set.generation++
	w.setChanged()
}

// kill begins the end of a pod.
func (w *world) kill(i int32) {
	p := &w.pods[i]
	p.terminating, p.deletion = true, w.now.Add(podGrace)
	w.podChanged(i)
}

func (w *world) gone(i int32) bool {
	if p := w.pods[i]; p.kind == podAbsent || !p.terminating || p.stuck {
		return false
	}
	w.pods[i] = body{}
	w.podChanged(i)
	return true
}

// comesUp is the next thing that happens to a pod by itself.
func (w *world) comesUp(i int32) bool {
	p := &w.pods[i]
	if p.terminating || p.silent || w.lost[i] && p.kind != podUnready {
		return false
	}
	switch does := w.behaves[p.rev]; {
	case p.kind == podStarting && does == staysUnready:
		w.become(i, podUnready)
	case (p.kind == podStarting || p.kind == podUnready) && does == startsWell:
		w.become(i, podReady)
	default:
		return false
	}
	return true
}

func podName(i int32) string { return podNames[i] }

var podNames = [maxOrdinal]string{"db-0", "db-1", "db-2", "db-3", "db-4"}
