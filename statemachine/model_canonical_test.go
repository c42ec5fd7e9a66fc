package statemachine

import (
	"slices"
	"time"
)

// past is longer than any span but the ten minutes of contested and of loops: what is as old as that stays so.
const past = 2 * leap

// canonical makes worlds equal that go on alike: it takes out sequence, absolute time and uids, and what only people
// read. Times become ages; those past every span that they are held against become equal, as far as nothing asks which
// of them was first.
func (w *world) canonical() {
	a := w.ages()
	w.state.forget(w, &a)
	w.renumber()
	w.set.clamp(&a, w.state.Name)
	w.seenSet.clamp(&a, w.state.Name)
	for i := range w.pods {
		w.pods[i].clamp(&a)
		w.seenPods[i].clamp(&a)
		a.order(&w.told[i].First)
		a.order(&w.told[i].Last)
	}
	w.now = epoch
}

// ages is how old things are, and the order of the old ones of which somebody asks which was first.
type ages struct {
	now time.Time
	old [32]time.Duration
	n   int
}

func (w *world) ages() ages {
	a := ages{now: w.now}
	a.note(w.state.floor())
	a.note(w.state.Replace.At)
	for i := range w.told {
		a.note(w.told[i].First)
		a.note(w.told[i].Last)
	}
	if w.tells() {
		a.note(w.state.Step.StartedAt)
	}
	for _, pods := range [][maxOrdinal]body{w.pods, w.seenPods} {
		for i := range pods {
			if t := pods[i].ordered(); t != nil {
				a.note(*t)
			}
			a.note(pods[i].deletion)
		}
		if !w.oldPods {
			break
		}
	}
	slices.Sort(a.old[:a.n])
	return a
}

// tells reports whether an Event tells of a pod; it may be of a try before the step.
func (w *world) tells() bool {
	return slices.ContainsFunc(w.told[:], func(t Told) bool { return t.Reason != "" })
}

// note takes a time into the order.
func (a *ages) note(t time.Time) {
	age := a.now.Sub(t)
	if t.IsZero() || age < past || slices.Contains(a.old[:a.n], age) {
		return
	}
	a.old[a.n] = age
	a.n++
}

// order makes a time an age that keeps its place among those that were noted.
func (a *ages) order(t *time.Time) {
	if t.IsZero() {
		return
	}
	age := a.now.Sub(*t)
	if i := slices.Index(a.old[:a.n], age); i >= 0 {
		age = past + time.Duration(i)*leap
	} else if age > past {
		age = past
	}
	*t = epoch.Add(-age)
}

// clamp makes a time an age of at most most.
func (a *ages) clamp(t *time.Time, most time.Duration) {
	if t.IsZero() {
		return
	}
	*t = epoch.Add(-min(a.now.Sub(*t), most))
}

// ordered is the time since when the pod is not Ready, of which somebody asks if it is older than the rollout or the
// pod's replacement; nil if it is Ready.
func (p *body) ordered() *time.Time {
	switch {
	case p.kind == podAbsent, p.kind == podReady && !p.silent:
		return nil
	case p.kind == podReady:
		return &p.silentSince // the condition of a silent pod is taken back
	default:
		return &p.since
	}
}

func (p *body) clamp(a *ages) {
	ordered := p.ordered()
	for _, t := range []*time.Time{&p.since, &p.silentSince} {
		if t == ordered {
			a.order(t)
		} else {
			a.clamp(t, past)
		}
	}
	a.order(&p.deletion)
	if p.kind == podAbsent {
		*p = body{}
	}
}

func (s *set) clamp(a *ages, at StateName) {
	if at == "" || at == New {
		a.clamp(&s.created, past)
	} else if !s.created.IsZero() {
		s.created = epoch.Add(-time.Hour) // pods know whether they are older
	}
}

// floor is the newest progress.
func (s *State) floor() time.Time { return later(s.Rollout.StartedAt, s.LastCompleted) }

// forget takes out of a state what the decision does not read, and makes the rest comparable. A time that it forgets to
// treat makes every world another one, so that the search does not end.
func (s *State) forget(w *world, a *ages) {
	s.Message, s.Pod, s.Since = "", "", time.Time{}
	if s.Reason != ReasonUnmanaged {
		s.Reason = ""
	}
	s.Rollout.Number = min(s.Rollout.Number, 1)
	s.Rollout.FromRevision, s.Rollout.StartedBy, s.Rollout.Cause = "", "", ""
	s.Rollout.Steps, s.Rollout.BlockedSeconds = 0, 0
	if !s.Rollout.FinishedAt.IsZero() {
		s.Rollout.FinishedAt = epoch
	}
	if !s.LastCompleted.IsZero() && !s.Rollout.StartedAt.IsZero() {
		s.Rollout.StartedAt = s.floor()
	}
	a.order(&s.Rollout.StartedAt)
	a.order(&s.LastCompleted)
	a.order(&s.Replace.At)
	if w.tells() {
		a.order(&s.Step.StartedAt)
	} else {
		a.clamp(&s.Step.StartedAt, past)
	}
	a.clamp(&s.Hold.Changed, past)
	a.clamp(&s.Hold.Since, past)
	if !s.Hold.Reason.gate() {
		s.Hold.Since = time.Time{}
	}
	for _, t := range []*time.Time{&s.Clock.Named, &s.Clock.Since, &s.Clock.Any} {
		a.clamp(t, past)
	}
	a.clamp(&s.Block.Changed, leap)
	s.Block.Since = time.Time{}
	a.clamp(&s.LastEvent, leap)
	a.clamp(&s.RestoredAt, leap)
	for i := range s.Overrides {
		if w.contested {
			a.clamp(&s.Overrides[i], contestedWindow+leap)
		} else {
			a.clamp(&s.Overrides[i], 0)
		}
	}
}

// renumber makes uids and generations small.
func (w *world) renumber() {
	s := &w.state
	if s.UID != "" {
		s.UID = setUID(b32(s.UID == setUID(w.set.uid)))
		if s.UID != setUID(1) { // those of another one mean nothing
			s.Generation, s.PartitionAt = 0, 0
		}
	}
	if w.oldSet {
		w.seenSet.uid = 1 - min(w.set.uid-w.seenSet.uid, 1)
	}
	w.set.uid = 1
	w.renumberPods()
	const newest, most = 9, 4
	g := w.set.generation
	back := func(n *int64) {
		if *n != 0 {
			*n = newest - min(g-*n, most)
		}
	}
	back(&s.Generation)
	back(&s.PartitionAt)
	back(&w.set.observed)
	back(&w.seenSet.generation)
	back(&w.seenSet.observed)
	back(&w.set.generation)
}

// renumberPods: a pod is known by its ordinal; one of another uid is another one.
func (w *world) renumberPods() {
	replaced := w.state.Replace.UID
	if replaced != "" {
		w.state.Replace.UID = podUID(0)
	}
	for i := range w.pods {
		p, n := &w.pods[i], int32(i)+1
		if q := &w.seenPods[i]; w.oldPods && q.kind != podAbsent {
			switch {
			case q.uid == p.uid:
				q.uid = n
			case podUID(q.uid) == replaced:
				q.uid = 100 + n
				w.state.Replace.UID = podUID(q.uid)
			default:
				q.uid = 50 + n
			}
		}
		if p.kind == podAbsent {
			continue
		}
		if podUID(p.uid) == replaced {
			w.state.Replace.UID = podUID(n)
		}
		for _, in := range []*intent{&w.doing, &w.late} {
			if in.kind == ReplacePod && in.uid == p.uid {
				in.uid = n
			}
		}
		p.uid = n
	}
	w.uids = 200
}

func b32(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
