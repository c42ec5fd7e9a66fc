package controllers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// play is one observation for every line, one at every moment that Pawl asked for, and one every half minute. The file
// ends at its last line, or later where a test wants to see what becomes of it.
func play(name string, minReady time.Duration, end, cut float64) (*replay, error) {
	lines, err := readLines[line](filepath.Join(recordings, name+".jsonl"))
	if err != nil {
		return nil, err
	}
	if before, _, continued := strings.Cut(name, "--"); continued { // it says only what changed since
		first, err := readLines[line](filepath.Join(recordings, before+".jsonl"))
		if err != nil {
			return nil, err
		}
		lines = append(first, lines...)
	}
	if cut > 0 {
		lines = slices.DeleteFunc(lines, func(l line) bool { return l.T > cut })
	}
	return playLines(name, lines, minReady, end)
}

func playLines(name string, lines []line, minReady time.Duration, end float64) (*replay, error) {
	r, err := newReplay(name)
	if err != nil {
		return nil, err
	}
	r.addNode("node-1", true)
	r.set().Spec.MinReadySeconds = int32(minReady.Seconds())
	revisions := map[string]bool{}
	for _, l := range lines {
		if l.Pod == "db-2" && strings.HasPrefix(name, "mariadb-") {
			if revisions[l.Revision] = true; r.old == "" {
				r.old = l.Revision
			}
		}
	}
	if len(revisions) < 2 {
		r.old = ""
	}
	r.steps()
	r.log, r.intents, r.samples, r.only = nil, nil, nil, 2
	for _, l := range lines {
		r.pass(l.T)
		if err := r.take(l); err != nil {
			return nil, err
		}
		if l.Event != "SNAPSHOT" {
			r.hear(l.T)
			r.look()
		}
	}
	r.pass(max(end, lines[len(lines)-1].T))
	return r, nil
}

// turn is a change of the template that a recording shows only by what came of it.
type turn struct {
	at       float64
	revision string
}

// playNative plays a rollout that Kubernetes did by itself, with all of its pods, to Pawl in mode Observe.
func playNative(name string, turns []turn, end float64) (*replay, error) {
	lines, err := readLines[line](filepath.Join(recordings, name+".jsonl"))
	if err != nil {
		return nil, err
	}
	r, err := newReplay(name)
	if err != nil {
		return nil, err
	}
	r.native = lines[0].Revision
	r.addNode("node-1", true)
	r.set().Labels[v1alpha1.ModeLabel] = "Observe"
	*r.set().Spec.UpdateStrategy.RollingUpdate.Partition = 0
	r.edited()
	fresh := lines[0].Event == "ADDED"
	for i := range 3 {
		r.remove(i)
	}
	if fresh {
		r.set().CreationTimestamp = metav1.NewTime(epoch)
	}
	r.state, r.log, r.intents, r.samples = statemachine.State{}, nil, nil, nil
	for len(lines) > 0 && (lines[0].Event == "SNAPSHOT" || lines[0].Event == "LIST") { // what was there before Pawl came
		if err := r.take(lines[0]); err != nil {
			return nil, err
		}
		r.facts.now, lines = at(lines[0].T), lines[1:]
	}
	r.count()
	r.look()
	for _, l := range lines {
		if len(turns) > 0 && turns[0].at <= l.T {
			r.pass(turns[0].at)
			r.template(turns[0].revision)
			r.count()
			r.look()
			turns = turns[1:]
		}
		r.pass(l.T)
		if err := r.take(l); err != nil {
			return nil, err
		}
		r.count()
		r.hear(l.T)
		r.look()
	}
	r.pass(end)
	return r, nil
}

// count is the status of the StatefulSet as its controller derives it from the pods.
func (r *replay) count() {
	st := &r.set().Status
	st.Replicas, st.UpdatedReplicas, st.ReadyReplicas = int32(len(r.facts.pods)), 0, 0
	for _, p := range r.facts.pods {
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == st.UpdateRevision {
			st.UpdatedReplicas++
		}
		if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			st.ReadyReplicas++
		}
	}
	if st.UpdatedReplicas == 3 && st.ReadyReplicas == 3 {
		st.CurrentRevision = st.UpdateRevision
	}
}

// pass lets time pass until t, with an observation at each moment that Pawl asked for and every half minute.
func (r *replay) pass(t float64) {
	for {
		wake := r.look()
		next := r.facts.now.Add(30 * time.Second)
		if !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		if next.After(at(t)) {
			break
		}
		r.facts.now = next
		r.hear(next.Sub(epoch).Seconds())
	}
	r.facts.now = at(t)
	r.hear(t)
}

// TestRecordings shows what Pawl says of each recording. Rewrite: go test ./controllers -run TestRecordings -rewrite
func TestRecordings(t *testing.T) {
	datadriven.RunTest(t, "testdata/recordings.txt", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		name, minReady, end, turns := d.CmdArgs[0].Key, time.Duration(0), 0.0, []turn(nil)
		for _, a := range d.CmdArgs[1:] {
			switch a.Key {
			case "r1", "r2":
				dur, _ := time.ParseDuration(a.Vals[0])
				turns = append(turns, turn{dur.Seconds(), a.Key})
			case "min-ready":
				minReady, _ = time.ParseDuration(a.Vals[0])
			case "until":
				dur, _ := time.ParseDuration(a.Vals[0])
				end = dur.Seconds()
			}
		}
		native := d.Cmd == "native"
		var r *replay
		var err error
		if native {
			r, err = playNative(name, turns, end)
		} else {
			r, err = play(name, minReady, end, 0)
		}
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if native && len(r.intents) > 0 {
			r.fault("writes in mode Observe: %v", r.intents)
		}
		var b strings.Builder
		for _, e := range r.log {
			fmt.Fprintf(&b, "%8.2f %s | %s\n", e.Time.Sub(epoch).Seconds(), short(e), e.Message)
		}
		for _, f := range r.faults {
			b.WriteString("FAULT " + f + "\n")
		}
		fmt.Fprintf(&b, "= %s %s %s", r.state.Name, r.state.Reason, r.state.Pod)
		return b.String()
	})
}

// expectation is what Pawl owes on a recording. Times are seconds since its begin; zero is never.
type expectation struct {
	recording      string
	minReady       time.Duration
	until          float64
	cut            float64 // lines after this are left out: there the node goes away
	sight          float64 // the reason is shown from here on, at the latest
	blocked        [2]float64
	clears         float64 // the step is complete from here on, at the latest; not before
	reasons        string
	class          string // in the message
	events         int
	neverCompletes bool
}

const ten = 10 * time.Second

var owed = []expectation{
	{recording: "image-not-found", sight: 4.1, blocked: [2]float64{34.1, 35.1}, reasons: "ErrImagePull ImagePullBackOff", class: "container db", events: 2, neverCompletes: true},
	{recording: "image-not-found", minReady: ten, sight: 4.1, blocked: [2]float64{34.1, 35.1}, reasons: "ErrImagePull ImagePullBackOff", class: "container db", events: 2, neverCompletes: true},
	// Without a readiness probe it is believed after 10 s.
	{recording: "image-late", until: 400, sight: 5.1, blocked: [2]float64{35.1, 36.1}, clears: 363, reasons: "ErrImagePull ImagePullBackOff", class: "container db", events: 4},
	{recording: "image-late", minReady: ten, until: 400, sight: 5.1, blocked: [2]float64{35.1, 36.1}, clears: 363, reasons: "ErrImagePull ImagePullBackOff", class: "container db", events: 4},
	{recording: "invalid-image-name", sight: 3.82, blocked: [2]float64{3.8, 4.8}, reasons: "InvalidImageName", class: "container db", events: 1, neverCompletes: true},
	{recording: "exit-1-at-once", sight: 6.4, blocked: [2]float64{36.4, 43.5}, reasons: "CrashLoopBackOff RestartLoop", class: "container db", events: 3, neverCompletes: true},
	{recording: "exit-1-at-once", minReady: ten, sight: 6.4, blocked: [2]float64{36.4, 43.5}, reasons: "CrashLoopBackOff RestartLoop", class: "container db", events: 3, neverCompletes: true},
	{recording: "crashloop-entrypoint-error", sight: 2.3, blocked: [2]float64{32.2, 39.3}, reasons: "CrashLoopBackOff RestartLoop", class: "container db", events: 2, neverCompletes: true},
	{recording: "exit-after-20s", sight: 25.83, blocked: [2]float64{55.8, 131.3}, reasons: "CrashLoopBackOff RestartLoop", class: "container db", events: 4},
	{recording: "exit-after-20s", minReady: ten, sight: 25.83, blocked: [2]float64{55.8, 131.3}, reasons: "CrashLoopBackOff RestartLoop", class: "container db", events: 4},
	{recording: "flapping-ready", minReady: ten, cut: 740, blocked: [2]float64{600, 601}, reasons: "NotReady", class: "container db", events: 4},
	{recording: "init-failing", sight: 7.6, blocked: [2]float64{37.5, 44.6}, reasons: "CrashLoopBackOff RestartLoop", class: "init container prep", events: 3, neverCompletes: true},
	{recording: "sidecar-never-ready", until: 620, blocked: [2]float64{600, 601}, reasons: "NotReady", class: "init container proxy", events: 2, neverCompletes: true},
	{recording: "configmap-env-missing", until: 400, sight: 5.3, blocked: [2]float64{35.2, 36.2}, clears: 347.7, reasons: "CreateContainerConfigError", class: "container db", events: 4},
	{recording: "hostpath-missing", until: 620, blocked: [2]float64{600, 601}, reasons: "VolumeNotReady", class: "hostPath type check failed", events: 2, neverCompletes: true},
	{recording: "readiness-gate-unset", until: 400, clears: 333.7, reasons: "ReadinessGate", class: "shop.example/in-rotation", events: 3},
	{recording: "mariadb-crashloop-kill9", until: 300, sight: 0.7, blocked: [2]float64{30.7, 41.5}, reasons: "CrashLoopBackOff RestartLoop", class: "container db", events: 4},
	{recording: "mariadb-node-notready", until: 100, reasons: "NodeNotReady", class: "node-1", events: 2},
	{recording: "node-lost", until: 950, reasons: "NodeNotReady", class: "node-1", events: 6},
	{recording: "slow-termination", until: 1000, reasons: "Starting NodeNotReady", class: "node-1", events: 8},
}

func TestWhatIsOwedOnRecordings(t *testing.T) {
	for _, want := range owed {
		t.Run(fmt.Sprintf("%s/%s", want.recording, want.minReady), func(t *testing.T) {
			g := NewWithT(t)
			r, err := play(want.recording, want.minReady, want.until, want.cut)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.faults).To(BeEmpty())
			var diary strings.Builder
			said := false
			var blocked, completed float64
			for _, e := range r.log {
				fmt.Fprintf(&diary, "%8.2f %s | %s\n", e.Time.Sub(epoch).Seconds(), short(e), e.Message)
				switch e.Type {
				case statemachine.Held, statemachine.BlockedEvent:
					g.Expect(strings.Fields(want.reasons)).To(ContainElement(string(e.Reason)), diary.String())
					said = said || strings.Contains(e.Message, want.class)
				case statemachine.StepCompleted:
					completed = e.Time.Sub(epoch).Seconds()
				default:
				}
				if e.Type == statemachine.BlockedEvent && blocked == 0 {
					blocked = e.Time.Sub(epoch).Seconds()
				}
			}
			all := diary.String()
			g.Expect(said).To(BeTrue(), "no message says %q:\n%s", want.class, all)
			g.Expect(len(r.log)).To(BeNumerically("<=", want.events), all)
			if want.blocked[0] == 0 {
				g.Expect(blocked).To(BeZero(), all)
			} else {
				g.Expect(blocked).To(And(BeNumerically(">=", want.blocked[0]-0.05), BeNumerically("<=", want.blocked[1])), all)
			}
			switch {
			case want.neverCompletes:
				g.Expect(completed).To(BeZero(), all)
			case want.clears > 0:
				g.Expect(completed).To(BeNumerically("~", want.clears, 1.1), all)
			}
			for _, s := range r.samples {
				now := s.at.Seconds()
				if want.sight > 0 && now >= want.sight && (want.clears == 0 || now < want.clears-15) && !s.healthy {
					g.Expect(strings.Fields(want.reasons)).To(ContainElement(string(s.reason)), "at %v:\n%s", now, all)
				}
				if blocked > 0 && now >= blocked && (completed == 0 || now < completed) {
					g.Expect(s.state).To(Equal(statemachine.Blocked), "a sample that looks well does not end it, at %v:\n%s", now, all)
				}
			}
		})
	}
}
