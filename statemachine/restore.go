package statemachine

import "time"

// After a re-creation with orphaned pods the StatefulSet controller takes the new revision for the current one: a pod
// that is lost comes back new, or at a revision that nobody ran, whatever the partition. Setting status.currentRevision
// back restores the promise; the controller may overwrite it for a moment while pods come and go.
const (
	maxRestores = 5
	restoreTry  = time.Second     // how long one try may take
	restoreHold = 5 * time.Second // how long it has to hold before a step is taken
)

// 3: a pod that is older than its StatefulSet runs a revision that the status does not know.
func restorable(v *view) bool {
	if !v.enforce() || !v.o.MayRestore || v.forgotten() < 0 {
		return false
	}
	return v.s.Restores < maxRestores || !v.reached(v.s.RestoredAt.Add(restoreTry))
}

// forgotten is the lowest pod that was there before the StatefulSet and would come back at a revision that it never had;
// -1 if there is none. Pods at the target below it mean that the set is on its way back: then the target is the
// revision to return at.
func (v *view) forgotten() int {
	if v.o.CurrentRevision != v.o.UpdateRevision && v.anyPod(v.current) {
		return -1
	}
	for i := range v.o.Pods {
		switch p := &v.o.Pods[i]; {
		case !p.Present || !p.Created.Before(v.o.Created):
		case v.atTarget(i) && v.o.CurrentRevision == v.o.UpdateRevision:
			return -1
		case v.off(i) && !p.Terminating && p.Revision != "":
			return i
		}
	}
	return -1
}

func (v *view) current(i int) bool {
	return v.o.Pods[i].Present && v.o.Pods[i].Revision == v.o.CurrentRevision
}

func restore(v *view) {
	i := v.forgotten()
	if v.s.Restores == 0 || v.reached(v.s.RestoredAt.Add(restoreTry)) {
		v.emit(v.about(i, Event{Type: RevisionRestored, Revision: v.o.Pods[i].Revision}))
	}
	v.intent = Intent{Kind: RestoreRevision, Revision: v.o.Pods[i].Revision}
}

// 3: no step until it has held.
func restoredJustNow(v *view) bool {
	return v.enforce() && v.s.Restores > 0 && v.anyPod(v.off) && !v.reached(v.s.RestoredAt.Add(restoreHold))
}

func wait(*view) {}
