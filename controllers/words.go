package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=list,roleName=pawl-read-events

// Some causes are in Kubernetes Events alone: a volume that cannot be mounted, a creation that is refused. Events are
// many and expire, so they are not watched. They are read of the pods that are late, now and then, and what was read is
// kept for as long as the pod is late.

const (
	firstAsk   = 5 * time.Second // an ordinary start is over by then, or says itself what it waits for
	nextAsk    = 30 * time.Second
	longestAsk = 10 * time.Minute
	crowdedAsk = 15 * time.Second // when too many ask at once
	askTimeout = 5 * time.Second
	mostAsked  = 5 // pods of one StatefulSet, the lowest first
	askQPS     = 5 // of all StatefulSets together
	askBurst   = 20
)

// words are the Events of what is late in one StatefulSet.
type words struct {
	late  string    // which pods are
	since time.Time // when these began to be late
	asked time.Time
	said  map[types.UID][]corev1.Event // by the object that they are about
}

// due is when to read next: ever more seldom.
func (w *words) due() time.Time {
	if first := w.since.Add(firstAsk); w.asked.Before(first) {
		return first
	}
	return w.asked.Add(min(max(w.asked.Sub(w.since), nextAsk), longestAsk))
}

// ask reads the Events of what is late, if it is time. It returns when to ask next; zero if nothing is late. What cannot
// be read is done without: it is no reason not to go on.
func (r *Reconciler) ask(
	ctx context.Context, f facts, o statemachine.Observation, state statemachine.State, t *trace,
) time.Time {
	pods, self := statemachine.Unexplained(o)
	if state.Name == statemachine.Done { // pods that fall over later are nobody's rollout
		pods, self = nil, o.Generation != o.ObservedGeneration
	}
	if !r.ReadEvents || len(pods) == 0 && !self {
		t.words = words{}
		return time.Time{}
	}
	if o.TemplateDigest != state.TemplateDigest { // a park must not wait for words
		return f.now.Add(firstAsk)
	}
	begun := state.Rollout.StartedAt
	if state.Step.StartedAt.After(begun) {
		begun = state.Step.StartedAt
	}
	if late := fmt.Sprint(pods, self); late != t.words.late || begun.After(t.words.since) { // it is about something else now
		t.words.late, t.words.since = late, f.now
	}
	if due := t.words.due(); f.now.Before(due) {
		return due
	}
	if !r.asking.TryAccept() {
		return f.now.Add(crowdedAsk)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t.words.asked = f.now
	said := map[types.UID][]corev1.Event{}
	for _, uid := range concerned(f, o, pods) {
		var list corev1.EventList
		err := r.Live.List(ctx, &list, client.InNamespace(o.Namespace), client.MatchingFields{"involvedObject.uid": string(uid)}, client.Limit(500))
		if err != nil {
			_, remedy := Diagnose(err)
			log.FromContext(ctx).V(1).Info("cannot list Events, goes on without", logRemedy, remedy, "error", err.Error())
			return t.words.due()
		}
		if said[uid] = list.Items; len(list.Items) == 0 {
			said[uid] = t.words.said[uid] // they expired; what they said is still the newest
		}
	}
	t.words.said = said
	return t.words.due()
}

// concerned are the uids of the StatefulSet, of the pods that are late, and of their claims.
func concerned(f facts, o statemachine.Observation, late []int) []types.UID {
	uids := []types.UID{f.statefulSet.UID}
	for _, i := range late[:min(len(late), mostAsked)] {
		p := o.Pods[i]
		if p.Present {
			uids = append(uids, types.UID(p.UID))
		}
		for _, c := range p.Claims {
			if claim, there := f.claims[c.Name]; there && c.Phase == string(corev1.ClaimPending) {
				uids = append(uids, claim.UID)
			}
		}
	}
	return uids
}

// told is the newest of the Events that are about something, if it says what is in the way: a warning, or the begin of
// a pull that has not ended.
func told(events []corev1.Event, about func(corev1.Event) bool) statemachine.Told {
	var newest corev1.Event
	for _, e := range events {
		if !about(e) {
			continue
		}
		// Some writers cut times to seconds.
		order := lastSeen(e).Truncate(time.Second).Compare(lastSeen(newest).Truncate(time.Second))
		if order > 0 || order == 0 && lastWord(e) >= lastWord(newest) {
			newest = e
		}
	}
	if newest.Type != corev1.EventTypeWarning && newest.Reason != "Pulling" {
		return statemachine.Told{}
	}
	first := newest.FirstTimestamp.Time
	if first.IsZero() {
		first = newest.EventTime.Time
	}
	return statemachine.Told{
		Reason: newest.Reason, Message: newest.Message, First: instant(first), Last: instant(lastSeen(newest)),
	}
}

// lastSeen is when an Event was last repeated; which field says so depends on who wrote it.
func lastSeen(e corev1.Event) time.Time {
	last := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time, e.LastTimestamp.Time} {
		if t.After(last) {
			last = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}

// lastWord ranks Events of one second: a warning counts for more than what was normal before it, and that it worked
// after all for more than the warning.
func lastWord(e corev1.Event) int {
	switch {
	case strings.HasPrefix(e.Reason, "Successful"):
		return 2
	case e.Type == corev1.EventTypeWarning:
		return 1
	default:
		return 0
	}
}

func anything(corev1.Event) bool { return true }

// telling passes the Events of a pod that say what goes on. Warnings such as DNSConfigForming come all the time.
func telling(e corev1.Event) bool {
	return e.Type != corev1.EventTypeWarning || strings.HasPrefix(e.Reason, "Failed") || e.Reason == "NetworkNotReady"
}

// ofPod passes the Events of a StatefulSet that are about the creation of one of its pods, or of a claim of that pod.
func ofPod(name string) func(corev1.Event) bool {
	return func(e corev1.Event) bool {
		switch e.Reason {
		case "SuccessfulCreate": // of a claim is none of the pod
			return strings.Contains(e.Message, "create Pod "+name+" ")
		case "FailedCreate":
			return strings.Contains(e.Message, "Pod "+name+" ") || strings.Contains(e.Message, `"`+name+`"`)
		default:
			return false
		}
	}
}

// kept are the reasons that the StatefulSet controller gives for leaving things as they are. The other Events of a
// StatefulSet, Pawl's own among them, tell what others do.
func kept(e corev1.Event) bool {
	switch e.Reason {
	case "FailedCreate", "FailedUpdate", "FailedDelete", "SuccessfulCreate", "SuccessfulUpdate", "SuccessfulDelete":
		return true
	default:
		return false
	}
}

// listen adds to an observation what was read in Events.
func (f facts) listen(o *statemachine.Observation) {
	o.Told = told(f.said[f.statefulSet.UID], kept)
	for i := range o.Pods {
		o.Pods[i].Told = f.toldOf(&o.Pods[i])
	}
}

// toldOf is what Events say of one pod: of the creation of one that is absent, of the claims of one that waits for
// them, or else of the pod itself.
func (f facts) toldOf(p *statemachine.Pod) statemachine.Told {
	if !p.Present {
		return f.refusalOf(p)
	}
	for _, c := range p.Claims {
		if p.Node != "" || c.Phase != string(corev1.ClaimPending) {
			continue
		}
		if said := told(f.said[f.claims[c.Name].UID], anything); said.Reason != "" {
			return said
		}
	}
	return told(f.said[types.UID(p.UID)], telling)
}

// refusalOf is what Events say of the creation of an absent pod, since it was last seen: the StatefulSet controller does
// not report each success, so an earlier refusal says nothing of now.
func (f facts) refusalOf(p *statemachine.Pod) statemachine.Told {
	since := f.present[p.Name].Truncate(time.Second)
	said := told(f.said[f.statefulSet.UID], ofPod(p.Name))
	if said.Last.Before(since) {
		return statemachine.Told{}
	}
	if said.First.Before(since) {
		said.First = instant(since)
	}
	return said
}

// notePresent remembers when each pod was last seen.
func (t *trace) notePresent(o statemachine.Observation) {
	present := map[string]time.Time{}
	for i := range o.Pods {
		p := &o.Pods[i]
		if present[p.Name] = t.present[p.Name]; p.Present {
			present[p.Name] = o.Now
		}
	}
	t.present = present
}
