package e2e

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/watch"
)

// chronicle is what the observer saw, a line each: for whoever wants to know what led to a fault.
func (o *observer) chronicle() string {
	var b strings.Builder
	last := map[string]string{}
	for _, s := range o.history() {
		who, what := s.line()
		if last[who] == what {
			continue
		}
		last[who] = what
		fmt.Fprintf(&b, "%d %s: %s\n", s.version, who, what)
	}
	return b.String()
}

func (s sighting) line() (who, what string) {
	switch {
	case s.set != nil:
		st := s.set.Status
		return "sts " + s.set.Name, fmt.Sprintf("%s generation %d of %d, partition %d by %s, %s to %s, %d updated of %d", s.what, st.ObservedGeneration,
			s.set.Generation, partition(s.set), writer(s.set), st.CurrentRevision, st.UpdateRevision, st.UpdatedReplicas, *s.set.Spec.Replicas)
	case s.what == watch.Deleted:
		return s.pod.Name, "gone"
	default:
		return s.pod.Name, fmt.Sprintf("%s %s ready=%t ending=%t", s.pod.UID[:4], revision(s.pod), ready(s.pod), ending(s.pod))
	}
}

// history is the log, a line each.
func (s *story) history() string {
	var b strings.Builder
	for _, t := range s.events() {
		fmt.Fprintf(&b, "%d %s generation %d %s %s %s %s", t.Sequence, t.Time.Format("15:04:05.000"), t.Generation, t.Type, t.Reason, t.Ordinals, t.Message)
		if t.Partition != nil {
			fmt.Fprintf(&b, " partition %d>%d", *t.PreviousPartition, *t.Partition)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
