package statemachine

import "time"

// observe is what Pawl sees: caches may stand still.
func (w *world) observe() Observation {
	s, pods := &w.set, &w.pods
	if w.oldSet {
		s = &w.seenSet
	}
	if w.oldPods {
		pods = &w.seenPods
	}
	o := Observation{
		Now: w.now, Name: "db", Namespace: "default", UID: setUID(s.uid), Created: s.created, Mode: s.mode,
		Generation: s.generation, ObservedGeneration: s.observed, Strategy: rollingUpdate, Parallel: w.parallel,
		Partition: s.partition, Replicas: s.replicas, Start: w.start, MinReady: w.minReady,
		TemplateDigest: s.template, TemplateRevision: s.template, CurrentRevision: s.cur, UpdateRevision: s.upd,
		UpdatedReplicas: s.updated, Paused: w.paused, Force: w.force, Approved: w.approved, MayRestore: !w.noRestore,
		Policy: w.policy, StallGrace: modelGrace, ProgressDeadline: modelDeadline, Pods: make([]Pod, s.replicas),
	}
	if len(w.policy.Gates) > 0 {
		o.Policy.Gates = []Gate{
			{Name: "always", Bypass: BypassNever, Verdict: w.always},
			{Name: "up", Bypass: BypassWhenPodDown, Verdict: w.whenDown},
		}
	}
	w.seesOthers(&o.Policy)
	containers := make([]Container, 0, maxOrdinal)
	for i := range int32(maxOrdinal) {
		if wanted := i >= w.start && i < w.start+s.replicas; wanted {
			o.Pods[i-w.start] = w.seen(i, &pods[i], &containers)
		} else if pods[i].kind != podAbsent {
			o.Condemned = append(o.Condemned, w.seen(i, &pods[i], &containers))
		}
	}
	return o
}

// seesOthers is what others leave room for.
func (w *world) seesOthers(p *Policy) {
	if len(p.Budgets) > 0 {
		p.Budgets = []Budget{{Name: "all", Ordinals: "0-4", Allowed: b32(!w.spent), Healthy: 3, Desired: 2 + b32(w.spent), Expected: 3}}
	}
	if p.Slots.Limit > 0 && w.slotTaken {
		p.Slots.Holders = []string{"default/other"}
	}
}

func setUID(n int32) string { return [...]string{"u0", "u1", "u2", "u3"}[n&3] }

// podUID is the uid of a pod; texts are made once, a world is looked at millions of times.
func podUID(n int32) string {
	if n < int32(len(podUIDs)) {
		return podUIDs[n]
	}
	return "p" + string(OrdinalsOf(n))
}

var podUIDs = func() (texts [256]string) {
	for n := range texts {
		texts[n] = "p" + string(OrdinalsOf(int32(n)))
	}
	return texts
}()

// seen is a pod as Pawl sees it, in the shape that the scripts give to pods.
func (w *world) seen(i int32, b *body, containers *[]Container) Pod {
	p := Pod{Name: podName(i), Ordinal: i}
	if b.kind == podAbsent {
		p.Told = w.told[i]
		return p
	}
	p.Present, p.UID, p.Revision = true, podUID(b.uid), b.rev
	p.Node, p.Unprobed = "n1", w.unprobed
	p.ReadySince, p.StartTime, p.Created = b.since, b.since, b.since
	if b.ever { // it started long before
		p.StartTime, p.Created = b.since.Add(-time.Hour), b.since.Add(-time.Hour)
	}
	switch {
	case b.older:
		p.Created = earlier(p.Created, w.set.created.Add(-time.Hour))
	default:
		p.Created = later(p.Created, w.set.created)
	}
	p.Terminating, p.DeletionTime = b.terminating, b.deletion
	p.NodeNotReady, p.NodeSince = b.silent, b.silentSince
	if w.lost[i] {
		p.Claims = []Claim{{Name: "data-" + podName(i), Phase: claimLost}}
	}
	*containers = append(*containers, b.container())
	p.Containers = (*containers)[len(*containers)-1 : len(*containers) : len(*containers)]
	p.Ready = b.kind == podReady && !b.silent
	if b.kind == podReady { // the node controller takes the condition back, and the kubelet gives it anew
		p.ReadySince = later(b.since, b.silentSince)
	}
	p.Phase = [...]string{"", "Pending", "Pending", "Running", "Running", "Running", "Failed"}[b.kind]
	return p
}

func (b *body) container() Container {
	c := Container{Name: "mysqld", Image: images[b.rev], Ready: b.kind == podReady}
	if b.restarted {
		c.Restarts, c.Last = 1, &Exit{Code: 137, Reason: "Error", StartedAt: b.since, FinishedAt: b.since}
	}
	switch b.kind {
	case podStarting:
		c.Waiting = "ContainerCreating"
	case podPulling:
		c.Waiting, c.WaitingMessage = "ErrImagePull", `failed to pull image "mysql:x": not found`
	case podReady, podUnready:
		c.RunningSince = b.since
	case podExited:
		c.Terminated = &Exit{Code: 1, Reason: "Error", StartedAt: b.since, FinishedAt: b.since}
	case podAbsent, podFailed:
	}
	return c
}

var images = map[string]string{"A": "mysql:A", "B": "mysql:B", "C": "mysql:C"}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// looks is Pawl observing, deciding and recording. It reports whether that changed anything.
func (w *world) looks() bool {
	if w.doing.kind != NoIntent || w.away {
		return false
	}
	o := w.observe()
	for i := range o.Pods {
		w.sawReady = w.sawReady || o.Pods[i].Ready && o.Mode != ModeOff
	}
	got := w.decide(w.state, o)
	if len(got.Events) == 0 && got.Intent.Kind == NoIntent && got.Bug == nil {
		w.diary.looked = idle
		return false
	}
	w.diary.looked = busy
	w.checkDecision(&o, &got)
	for _, e := range got.Events {
		if e.Partition != nil {
			w.lowering = e.Type == StepStarted || e.Type == StepSkipped
		}
	}
	if w.diary.keeps {
		w.diary.log = append(w.diary.log, got.Events...)
	}
	if w.actsFirst && got.Intent.Kind != NoIntent {
		w.does(got.Intent)
		w.acts()
		return true
	}
	w.state = got.State
	w.does(got.Intent)
	return true
}

func (w *world) does(in Intent) {
	w.doing = intent{kind: in.Kind, partition: in.Partition, ordinal: in.Pod.Ordinal, revision: in.Revision}
	if in.Kind != ReplacePod {
		w.doing.ordinal = 0
		if in.Kind != NoIntent && w.oldSet && w.seenSet != w.set {
			w.doing = intent{} // 409 Conflict
		}
		return
	}
	for i := range w.pods {
		if p := &w.pods[i]; p.kind != podAbsent && podUID(p.uid) == in.Pod.UID {
			w.doing.uid = p.uid
		}
	}
	if i := w.doing.ordinal; w.doing.uid == 0 || w.oldPods && w.seenPods[i] != w.pods[i] {
		w.doing = intent{} // gone, or 409 Conflict
	}
}

// acts carries the intent out.
func (w *world) acts() bool {
	in := w.doing
	w.doing = intent{}
	w.checkWrite(in)
	return w.writes(in)
}

// actsLate is the earlier manager going on where it stood still. What it recorded may be void by now; the API server
// takes its write only if what it writes to is as it was.
func (w *world) actsLate() bool {
	in := w.late
	w.late = intent{}
	return w.writes(in)
}

func (w *world) writes(in intent) bool {
	switch in.kind {
	case SetPartition:
		w.set.partition = in.partition
		w.foreign = w.foreign && in.partition != Parked
		w.edited()
		w.away = w.oldSet
	case ReplacePod:
		w.kill(in.ordinal)
	case RestoreRevision:
		w.set.cur = in.revision
		w.setChanged()
		w.away = w.oldSet
	case NoIntent:
		return false
	}
	return true
}

// isReplaced: this manager stands still between record and act, and another one takes over.
func (w *world) isReplaced() bool {
	if w.doing.kind == NoIntent || w.late.kind != NoIntent {
		return false
	}
	w.late, w.doing = w.doing, intent{}
	return true
}
