package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// act is a write by which Pawl changes what it looks after: "partition 3>2", "delete UID", "restore REVISION".
type act struct {
	what string
	at   time.Time
}

// promise is an act that the log says is about to be done.
type promise struct {
	act
	doubtful bool // the log alone cannot tell whether it came to it: others were at work
}

// keptBy: nothing is done before it is recorded (I6).
func (p promise) keptBy(a act) bool { return a.what == p.what && !a.at.Before(p.at) }

// again: a try to restore lasts a second. What the StatefulSet controller overwrites in it is set back again without another
// record, as one that was not written would be (I7).
func (p promise) again(first, a act) bool {
	const oneTry = time.Second
	return strings.HasPrefix(p.what, "restore ") && p.keptBy(a) && a.at.Sub(first.at) < oneTry
}

// discrepancy holds what was done against what was promised, one to one and in order. It says what the first difference is;
// nothing if there is none.
func discrepancy(promised []promise, done []act) string {
	reached := map[int]bool{0: true} // how much of what was done may belong to the promises so far
	furthest := func() int { return slices.Max(slices.Collect(maps.Keys(reached))) }
	for i, p := range promised {
		next := map[int]bool{}
		for n := range reached {
			next[n] = next[n] || p.doubtful
			for k := n; k < len(done) && p.keptBy(done[k]) && (k == n || p.again(done[n], done[k])); k++ {
				next[k+1] = true
			}
		}
		maps.DeleteFunc(next, func(_ int, possible bool) bool { return !possible })
		if len(next) == 0 {
			return fmt.Sprintf("record %d of %v promises %q; %d acts belong to those before it, of %v", i+1, promised, p.what, furthest(), done)
		}
		reached = next
	}
	if !reached[len(done)] {
		return fmt.Sprintf("%q was done without a record of its own: %d acts have one, of %v, recorded are %v", done[furthest()].what, furthest(), done, promised)
	}
	return ""
}

func (a act) String() string { return a.at.Format("05.000") + " " + a.what }

// String marks what is doubtful.
func (p promise) String() string {
	if p.doubtful {
		return p.act.String() + "?"
	}
	return p.act.String()
}

// promises are the acts that a log records. A write of the partition that the next record shows not to have happened is none;
// doubted says so of the others.
func promises(log []pawlv1alpha1.Transition, doubted func(pawlv1alpha1.Transition) bool) []promise {
	var all []promise
	for i, t := range log {
		p := promise{act: act{at: t.Time.Time}}
		switch {
		case t.Type == "PodReplaced":
			p.what, p.doubtful = "delete "+t.PodUID, doubted(t) || overtaken(t, log[i+1:])
		case t.Type == "RevisionRestored":
			p.what, p.doubtful = "restore "+t.Revision, doubted(t) || overtaken(t, log[i+1:])
		case aboutPartition(t) && *t.Partition != *t.PreviousPartition && t.Type != "PartitionOverridden": // which tells of someone else's write
			p.what = fmt.Sprintf("partition %d>%d", *t.PreviousPartition, *t.Partition)
			if n := slices.IndexFunc(log[i+1:], aboutPartition); n >= 0 {
				next := log[i+1+n]
				p.doubtful = neverWritten(t, next)
				if p.doubtful && !setBack(t, next) {
					continue
				}
			}
			p.doubtful = p.doubtful || goneBefore(t, log[i+1:]) || editedTwice(t, log[i+1:]) && doubted(t)
		default:
			continue
		}
		all = append(all, p)
	}
	return all
}

func aboutPartition(t pawlv1alpha1.Transition) bool {
	return t.Partition != nil && t.PreviousPartition != nil
}

// saw is the partition as it was when that was recorded.
func saw(t pawlv1alpha1.Transition) int32 {
	if t.Type == "PartitionOverridden" {
		return *t.Partition
	}
	return *t.PreviousPartition
}

// setBack: the next record saw the partition as it was before, but after two edits or more: either none was Pawl's, or
// someone set the partition back after Pawl. Only who watched can tell.
func setBack(t, next pawlv1alpha1.Transition) bool {
	return saw(next) == *t.PreviousPartition && next.Generation > t.Generation+1
}

// editedTwice: the next record saw a partition that Pawl did not write, or one that the admission policy writes too, after two
// edits or more: one of them is Pawl's or none.
func editedTwice(t pawlv1alpha1.Transition, then []pawlv1alpha1.Transition) bool {
	n := slices.IndexFunc(then, aboutPartition)
	return n >= 0 && then[n].Generation > t.Generation+1 && (saw(then[n]) != *t.Partition || *t.Partition == parked)
}

// overtaken: the next that Pawl saw, and soon, was another template. It came to its write or not: one that the API answers
// slowly, or not at all, takes seconds.
func overtaken(t pawlv1alpha1.Transition, then []pawlv1alpha1.Transition) bool {
	const soon = 30 * time.Second
	if len(then) > 1 && then[0].Type == "Parked" { // before the rollout, where admission did not
		then = then[1:]
	}
	return len(then) > 0 && then[0].Type == "RolloutStarted" && then[0].Generation > t.Generation && then[0].Time.Sub(t.Time.Time) < soon
}

// goneBefore: the StatefulSet was deleted, and no edit was seen after the record. Pawl came to its write or not.
func goneBefore(t pawlv1alpha1.Transition, then []pawlv1alpha1.Transition) bool {
	return len(then) > 0 && then[0].Type == "Abandoned" && then[0].Reason == "Deleted" && then[0].Generation == t.Generation
}

// neverWritten: the next record saw the partition as it was before, or something else after a single edit, which then
// was not Pawl's: someone was faster, and the write was refused. The partition of another StatefulSet proves nothing.
func neverWritten(t, next pawlv1alpha1.Transition) bool {
	if next.Type == "Adopted" && next.Reason == "Recreated" {
		return false
	}
	if saw(next) == *t.PreviousPartition {
		return true
	}
	if t.Type == "RolloutCompleted" && next.Type == "RolloutStarted" && *t.Partition == parked && next.Generation == t.Generation+1 {
		return true // the one edit in between is the new template, which the admission policy parked
	}
	return saw(next) != *t.Partition && next.Generation <= t.Generation+1
}

// doubted: under Parallel the StatefulSet controller may be there first and delete the pod itself, a status that was
// written meanwhile refuses the restore, and a person's edit the partition. The audit log says so. Or the restore did not get
// there, because the manager was killed: it is tried within a second, or recorded anew.
func doubted(of string, requests []request, keptBack []time.Time) func(pawlv1alpha1.Transition) bool {
	const meanwhile = 10 * time.Second
	return func(t pawlv1alpha1.Transition) bool {
		if t.Type == "RevisionRestored" && slices.ContainsFunc(keptBack, func(at time.Time) bool { return !at.Before(t.Time.Time) && at.Sub(t.Time.Time) < meanwhile }) {
			return true
		}
		return slices.ContainsFunc(requests, func(r request) bool {
			switch {
			case r.At.Sub(t.Time.Time).Abs() > meanwhile:
				return false
			case t.Type == "PodReplaced":
				return r.write() == "delete pods" && r.ObjectRef.Name == t.Pod && !r.byPawl() && !r.refused()
			case aboutPartition(t):
				return r.edits() && r.ObjectRef.Name == of && !r.byPawl() && !r.refused()
			default:
				return r.change().Status.CurrentRevision == t.Revision && r.byPawl() && r.refused()
			}
		})
	}
}

// watched is a namespace of which everything was seen from some time on.
type watched struct {
	*cluster
	*observer
	namespace string
	log       func(of string) []pawlv1alpha1.Transition
	excused   map[string]bool
	keptBack  []time.Time // restores that did not get to the API server
	from      time.Time
}

// watched is the namespace of the story, from its beginning.
func (s *story) watched() watched {
	return watched{cluster: lab, observer: s.observer, namespace: s.namespace, log: s.observer.stored, excused: s.excused, keptBack: s.via.keptBack()}
}

// byManagers are the requests of every account that a manager may run as that came through.
func (w watched) byManagers(g Gomega) []request {
	return slices.DeleteFunc(w.requests(g), func(r request) bool { return !r.byPawl() || r.refused() || r.At.Time.Before(w.from) })
}

func (w watched) requests(g Gomega) []request {
	all, err := w.audit.in(w.namespace, w.lab.AuditLog)
	g.Expect(err).NotTo(HaveOccurred())
	return all
}

// acts are what the managers did with a StatefulSet by the audit log of the API server. It has no partition before
// a write: seen are the writes of the partition as the observer saw them, "3>2", and they have to be the same ones.
func (w watched) acts(g Gomega, of string, seen []string) []act {
	var done []act
	for _, r := range w.byManagers(g) {
		if r.setName() != of {
			continue
		}
		a, c := act{at: r.At.Time}, r.change()
		switch {
		case r.write() == "delete pods":
			a.what = "delete " + r.preconditions().UID
		case c.Status.CurrentRevision != "":
			a.what = "restore " + c.Status.CurrentRevision
		case c.Spec.UpdateStrategy.RollingUpdate.Partition != nil:
			to := fmt.Sprintf(">%d", *c.Spec.UpdateStrategy.RollingUpdate.Partition)
			g.Expect(seen).NotTo(BeEmpty(), "the partition was written, %s, and nobody saw it", to)
			g.Expect(seen[0]).To(HaveSuffix(to), "the partition as Pawl wrote it by the audit log, and as it was seen")
			a.what, seen = "partition "+seen[0], seen[1:]
		default:
			continue
		}
		done = append(done, a)
	}
	g.Expect(seen).To(BeEmpty(), "partitions seen that Pawl did not write by the audit log")
	return done
}

// actsAreRecorded: whatever Pawl did by the audit log of the API server, which knows who wrote, is in the log as it was stored,
// one to one and in order, for every StatefulSet; a pod by its uid, a partition by both values, a restore by the revision. It
// returns how many acts there were.
func (w watched) actsAreRecorded(g Gomega) (acts int) {
	names := w.names()
	for _, r := range w.byManagers(g) {
		g.Expect(r.known()).To(BeTrue(), "Pawl wrote in a form that is matched with nothing: %+v %s", r, r.RequestObject)
		if r.act() {
			g.Expect(names).To(ContainElement(r.setName()), "what it did is about no StatefulSet that was seen: %+v", r)
		}
	}
	for _, of := range names {
		var done []act
		g.Eventually(func(g Gomega) { // the log is written first, the last write may be still to come
			done = w.acts(g, of, w.judgementOf(of, w.excused).byPawl)
			log := slices.DeleteFunc(slices.Clone(w.log(of)), func(t pawlv1alpha1.Transition) bool { return t.Time.Time.Before(w.from) })
			g.Expect(discrepancy(promises(log, doubted(of, w.requests(g), w.keptBack)), done)).To(BeEmpty())
		}, 10*time.Second, 200*time.Millisecond).Should(Succeed(), "StatefulSet %s", of)
		acts += len(done)
	}
	return acts
}

// act reports whether a request changes what Pawl looks after.
func (r request) act() bool {
	return r.ObjectRef.Resource == "statefulsets" || r.ObjectRef.Resource == "pods"
}

// edits reports whether a request changes the specification of a StatefulSet.
func (r request) edits() bool {
	return r.write() == "patch statefulsets" || r.write() == "update statefulsets"
}

// setName is the StatefulSet that a request is about.
func (r request) setName() string {
	if r.ObjectRef.Resource == "pods" {
		return setOf(r.ObjectRef.Name)
	}
	return r.ObjectRef.Name
}

// preconditions of a deletion.
func (r request) preconditions() (p struct{ UID, ResourceVersion string }) {
	var options struct {
		Preconditions *struct{ UID, ResourceVersion string } `json:"preconditions"`
	}
	if json.Unmarshal(r.RequestObject, &options) == nil && options.Preconditions != nil {
		p = *options.Preconditions
	}
	return p
}
