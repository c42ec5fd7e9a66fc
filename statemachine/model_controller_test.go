package statemachine

// The StatefulSet controller of Kubernetes 1.37, as far as revisions and the partition go: updateStatefulSet in
// pkg/controller/statefulset/stateful_set_control.go. A sync looks at the pods and then writes the status; the model
// makes two moves of it, because the status may come late.

// available reports whether the StatefulSet controller calls the pod available.
func (w *world) available(i int32) bool {
	p := &w.pods[i]
	return p.kind == podReady && !p.terminating && !p.silent && w.now.Sub(p.since) >= w.minReady
}

// controllerPods is one sync over the pods: create what is missing, scale down, replace what is outdated. Under
// OrderedReady it stops at the first pod that is not available. It reports whether it did anything.
func (w *world) controllerPods() bool {
	did := false
	for i := w.start; i < w.start+w.set.replicas; i++ {
		switch p := &w.pods[i]; {
		case p.kind == podFailed:
			if !p.terminating {
				w.kill(i)
				did = true
			}
			if !w.parallel {
				return did
			}
		case p.kind == podAbsent:
			if !w.creates(i) {
				return did || w.refuse(i) // an error ends the sync
			}
			did = true
			if !w.parallel {
				return did
			}
		case !w.parallel && !w.available(i):
			return did
		}
	}
	if scaled, goesOn := w.scalesDown(); !goesOn {
		return did || scaled
	} else if scaled {
		did = true
	}
	return w.replaces() || did
}

// creates creates a pod: at the current revision below the partition, at the newest above it.
func (w *world) creates(i int32) bool {
	rev := w.set.template
	if i-w.start < w.set.partition && w.set.cur != "" {
		rev = w.set.cur
	}
	if w.behaves[rev] == mayNotBeCreated {
		return false
	}
	w.create(i, rev)
	return true
}

// refuse is the API server not letting a pod be created, and an Event that says so, again and again.
func (w *world) refuse(i int32) bool {
	said := w.told[i]
	if said.Reason == "" {
		said = Told{Reason: "FailedCreate", Message: `pods "db" is forbidden: denied`, First: w.now}
	}
	said.Last = w.now
	changed := said.First != w.told[i].First
	w.told[i] = said
	return changed
}

// scalesDown ends pods that are out of range, under OrderedReady one at a time, the highest first. It reports whether it
// did anything, and whether the sync goes on.
func (w *world) scalesDown() (did, goesOn bool) {
	lowestUnavailable := int32(-1)
	for i := range int32(maxOrdinal) {
		if !w.wants(i) && w.pods[i].kind != podAbsent && !w.available(i) {
			lowestUnavailable = i
			break
		}
	}
	for i := int32(maxOrdinal) - 1; i >= 0; i-- {
		p := &w.pods[i]
		if w.wants(i) || p.kind == podAbsent {
			continue
		}
		if p.terminating {
			if !w.parallel {
				return did, false
			}
			continue
		}
		if !w.parallel && !w.available(i) && i != lowestUnavailable {
			return did, false
		}
		w.kill(i)
		did = true
		if !w.parallel {
			return true, false
		}
	}
	return did, true
}

// replaces deletes released pods that are outdated, as far as maxUnavailable allows. Under Parallel those that are
// unavailable anyway cost nothing.
func (w *world) replaces() bool {
	room, did := w.maxUnavailable, false
	for i := w.start; i < w.start+w.set.replicas; i++ {
		if !w.available(i) {
			room--
		}
	}
	last := w.start + w.set.replicas - 1
	outdated := func(i int32) bool {
		p := &w.pods[i]
		return i-w.start >= w.set.partition && !p.terminating && p.rev != w.set.template
	}
	if w.parallel {
		for i := last; i >= w.start; i-- {
			if outdated(i) && !w.available(i) {
				w.updates(i)
				did = true
			}
		}
	}
	for i := last; i >= w.start && room > 0; i-- {
		if outdated(i) && (!w.parallel || w.available(i)) {
			w.updates(i)
			did = true
			room--
		}
	}
	return did
}

func (w *world) updates(i int32) {
	w.checkUpdated(i)
	w.kill(i)
	w.updating[i] = true
}

// controllerStatus is the controller writing the status, and promoting the revision once all pods run it.
func (w *world) controllerStatus() bool {
	var readyPods, updated, all int32
	for i := range w.pods {
		p := &w.pods[i]
		if p.kind == podAbsent {
			continue
		}
		all++
		if p.kind == podReady && !p.silent {
			readyPods++
		}
		if !p.terminating && p.rev == w.set.template {
			updated++
		}
	}
	was, s := w.set, &w.set
	s.observed, s.upd, s.updated = s.generation, s.template, updated
	if s.cur == "" || updated == s.replicas && readyPods == s.replicas && all == s.replicas {
		s.cur = s.template
	}
	if *s == was {
		return false
	}
	w.setChanged()
	return true
}
