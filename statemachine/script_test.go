package statemachine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the stories under testdata: each tells what was observed and shows what was decided. Rewrite the
// expectations with: go test ./statemachine -run Scripts -rewrite
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			out, err := s.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// script is a StatefulSet db in namespace default as the commands leave it, and the log so far.
type script struct {
	o     Observation
	state State
	log   []Event
	uids  int
}

var epoch = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

func newScript() *script {
	s := &script{state: State{}}
	s.o = Observation{
		Now: epoch, Name: "db", Namespace: "default", UID: "u1", Created: epoch.Add(-time.Hour), Mode: ModeEnforce,
		Generation: 1, ObservedGeneration: 1, Strategy: rollingUpdate, Partition: Parked,
		TemplateDigest: "A", TemplateRevision: "A", CurrentRevision: "A", UpdateRevision: "A",
		StallGrace: 30 * time.Second, ProgressDeadline: 10 * time.Minute, MayRestore: true,
	}
	s.scale(3)
	for i := range s.o.Pods {
		s.setPod(i, "A", "ready")
	}
	s.o.Now = s.o.Now.Add(time.Hour)
	return s
}

func (s *script) scale(n int) {
	for len(s.o.Pods) < n {
		s.o.Pods = append(s.o.Pods, Pod{})
	}
	s.o.Pods = s.o.Pods[:n]
	s.o.Replicas, s.o.UpdatedReplicas = int32(n), int32(n)
}

func (s *script) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "set":
		return "", s.set(d.CmdArgs)
	case "template":
		return "", s.template(d.CmdArgs)
	case "pod":
		return "", s.pod(d.CmdArgs)
	case "policy":
		return "", s.policy(d.CmdArgs)
	case "gate":
		return "", s.gate(d.CmdArgs)
	case "budget":
		return "", s.budget(d.CmdArgs)
	case "log":
		return "", s.loseLog(d.CmdArgs[0].Key)
	case "wait":
		dur, err := time.ParseDuration(d.CmdArgs[0].Key)
		s.o.Now = s.o.Now.Add(dur)
		return "", err
	case "decide":
		mode := ""
		if len(d.CmdArgs) > 0 {
			mode = d.CmdArgs[0].Key
		}
		return s.decide(mode)
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
}

// set changes facts of the StatefulSet: key=value or a bare flag.
func (s *script) set(args []datadriven.CmdArg) error {
	for _, a := range args {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		n, _ := strconv.Atoi(v)
		switch a.Key {
		case "p":
			s.o.Partition = int32(n)
			if v == "parked" {
				s.o.Partition = Parked
			}
			s.touch()
		case "replicas":
			s.scale(n)
			s.touch()
		case "start":
			s.o.Start = int32(n)
			s.touch()
		case "cur":
			s.o.CurrentRevision = v
		case "upd":
			s.o.UpdateRevision = v
		case "updated":
			s.o.UpdatedReplicas = int32(n)
		case "uid":
			s.o.UID, s.o.Created = v, s.o.Now
		case "gen":
			s.o.Generation = int64(n)
		case "digest":
			s.o.TemplateDigest, s.o.TemplateRevision = v, v
		case "observed":
			s.o.ObservedGeneration = int64(n)
		case "mode":
			s.o.Mode = Mode(v)
		case "strategy":
			s.o.Strategy = v
			if v != rollingUpdate {
				s.o.Partition = 0 // the API server drops the block
			}
			s.touch()
		case "parallel":
			s.o.Parallel = true
		case "paused":
			s.o.Paused = v != "false"
		case "force": // revision,partition; an empty one takes it back
			s.o.Force = Force{}
			if len(a.Vals) == 2 {
				floor, _ := strconv.Atoi(a.Vals[1])
				s.o.Force = Force{Revision: v, Partition: int32(floor), Reason: "incident 7"}
			}
		case "by":
			s.o.PausedBy, s.o.ChangedBy, s.o.Force.By, s.o.ApprovedBy = v, v, v, v
		case "approved":
			s.o.Approved = v
		case "norestore":
			s.o.MayRestore = false
		case "deleting":
			s.o.Deleting = true
		case "deadline":
			s.o.ProgressDeadline, _ = time.ParseDuration(v)
		case "grace":
			s.o.StallGrace, _ = time.ParseDuration(v)
		case "minready":
			s.o.MinReady, _ = time.ParseDuration(v)
		case "created":
			s.o.Created = s.o.Now
		case "condemned":
			s.o.Condemned = make([]Pod, n)
		default:
			return fmt.Errorf("unknown fact %q", a.Key)
		}
	}
	return nil
}

// policy changes facts of the RolloutPolicy: key=value.
func (s *script) policy(args []datadriven.CmdArg) error {
	p := &s.o.Policy
	for _, a := range args {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		n, _ := strconv.Atoi(v)
		switch a.Key {
		case "name":
			p.Name = v
		case "missing":
			p.Missing = strings.ReplaceAll(v, "_", " ")
		case "canary":
			p.CanaryPods = int32(n)
		case "bake":
			p.Bake, _ = time.ParseDuration(v)
		case "slots":
			p.Slots.Limit = int32(n)
		case "holders":
			p.Slots.Holders = others(a.Vals)
		case "ahead":
			p.Slots.Ahead = others(a.Vals)
		default:
			return fmt.Errorf("unknown fact %q", a.Key)
		}
	}
	return nil
}

// others are the names in a list; "none" is nobody.
func others(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "none" })
}

// gate sets the answer of a gate: NAME Open|Closed|Error [bypass=WhenPodDown] [message=words_and_more].
func (s *script) gate(args []datadriven.CmdArg) error {
	g := Gate{Name: args[0].Key, Verdict: Verdict(args[1].Key)}
	for _, a := range args[2:] {
		switch a.Key {
		case "bypass":
			g.Bypass = Bypass(a.Vals[0])
		case "message":
			g.Message = strings.ReplaceAll(a.Vals[0], "_", " ")
		default:
			return fmt.Errorf("unknown fact %q", a.Key)
		}
	}
	for i := range s.o.Policy.Gates {
		if s.o.Policy.Gates[i].Name == g.Name {
			s.o.Policy.Gates[i] = g
			return nil
		}
	}
	s.o.Policy.Gates = append(s.o.Policy.Gates, g)
	return nil
}

// budget sets a PodDisruptionBudget over all pods: NAME allowed healthy desired expected others, or a flag.
func (s *script) budget(args []datadriven.CmdArg) error {
	b := Budget{Name: args[0].Key, Ordinals: ordinalRange(s.o.Start, s.o.Replicas)}
	for _, a := range args[1:] {
		n := 0
		if len(a.Vals) > 0 {
			n, _ = strconv.Atoi(a.Vals[0])
		}
		switch a.Key {
		case "allowed":
			b.Allowed = int32(n)
		case "healthy":
			b.Healthy = int32(n)
		case "desired":
			b.Desired = int32(n)
		case "expected":
			b.Expected = int32(n)
		case "stale":
			b.Stale = true
		case "others":
			b.Others = a.Vals
		case "of":
			b.Ordinals = OrdinalsOf(int32(n))
		case "problem":
			b.Problem = strings.ReplaceAll(a.Vals[0], "_", " ")
		default:
			return fmt.Errorf("unknown fact %q", a.Key)
		}
	}
	for i := range s.o.Policy.Budgets {
		if s.o.Policy.Budgets[i].Name == b.Name {
			s.o.Policy.Budgets[i] = b
			return nil
		}
	}
	s.o.Policy.Budgets = append(s.o.Policy.Budgets, b)
	return nil
}

// touch is an edit of spec that the StatefulSet controller has seen.
func (s *script) touch() {
	s.o.Generation++
	s.o.ObservedGeneration = s.o.Generation
}

// loseLog is the RolloutProgress deleted: its records are "gone" as well, or "left".
func (s *script) loseLog(records string) error {
	switch records {
	case "gone":
		s.state = State{}
	case "left":
		s.state = s.state.fromRecords()
	default:
		return fmt.Errorf("records are gone or left, not %q", records)
	}
	s.log = nil
	return nil
}

// fromRecords is what the newest RolloutRecord still knows.
func (s State) fromRecords() State {
	return State{Name: New, UID: s.UID, StableRevision: s.StableRevision, Rollout: Rollout{Number: s.Rollout.Number}}
}

// template is an edit of spec.template; "behind" leaves the status as it was, "caught-up" lets it follow.
func (s *script) template(args []datadriven.CmdArg) error {
	rev := args[0].Key
	s.o.TemplateDigest, s.o.TemplateRevision = rev, rev
	s.o.Generation++
	if len(args) > 1 && args[1].Key == "behind" {
		s.o.BehindSince = s.o.Now
		return nil
	}
	s.o.ObservedGeneration, s.o.UpdateRevision = s.o.Generation, rev
	return nil
}

func (s *script) pod(args []datadriven.CmdArg) error {
	i, err := strconv.Atoi(args[0].Key)
	if err != nil || i < 0 || i >= len(s.o.Pods) {
		return fmt.Errorf("no pod %q", args[0].Key)
	}
	rev, state := "", ""
	for _, a := range args[1:] {
		switch a.Key {
		case "A", "B", "C":
			rev = a.Key
		default:
			state = a.Key
		}
	}
	return s.setPod(i, rev, state)
}

// setPod puts a pod into a state. A revision makes it a new pod; without one it is the pod that is there.
func (s *script) setPod(i int, rev, state string) error {
	p := &s.o.Pods[i]
	now := s.o.Now
	if rev != "" {
		s.uids++
		*p = Pod{
			Present: true, Name: fmt.Sprintf("db-%d", i), UID: fmt.Sprintf("p%d", s.uids), Ordinal: int32(i), Revision: rev,
			Created: now, StartTime: now, ReadySince: now, Phase: "Pending", Node: "n1",
			Containers: []Container{{Name: "mysqld", Image: "mysql:" + rev}},
		}
	}
	ready := func(ok bool) {
		if p.Ready != ok {
			p.Ready, p.ReadySince = ok, now
		}
		if ok && p.StartTime.Equal(now) { // it takes a moment to become Ready
			p.StartTime = now.Add(-time.Minute)
		}
	}
	c := &Container{}
	if len(p.Containers) > 0 {
		c = &p.Containers[0]
	}
	if state != "terminating" && state != "noprobe" && state != "lost" && state != "bound" {
		ready(state == "ready")
		if state != "crash" {
			c.Waiting, c.Terminated, c.RunningSince = "", nil, time.Time{}
		}
		c.Ready = state == "ready"
	}
	switch state {
	case "ready", "unready":
		p.Phase = "Running"
		c.RunningSince = now
	case "starting":
		c.Waiting = "ContainerCreating"
	case "pull":
		p.Phase = "Pending"
		c.Waiting, c.WaitingMessage = "ErrImagePull", `failed to pull image "mysql:x": not found`
	case "backoff":
		c.Waiting, c.WaitingMessage = "ImagePullBackOff", "Back-off pulling image: not found"
	case "crash": // one more exit
		p.Phase = "Running"
		if c.Terminated != nil {
			c.Restarts++
			c.Last = c.Terminated
		}
		c.RunningSince = time.Time{}
		c.Terminated = &Exit{Code: 1, Reason: "Error", StartedAt: now, FinishedAt: now}
	case "restarted": // it came up again after an exit
		p.Phase = "Running"
		c.Restarts++
		c.Last = &Exit{Code: 137, Reason: "Error", StartedAt: now, FinishedAt: now}
		c.RunningSince, c.Ready = now, true
		p.Ready, p.ReadySince = true, now
	case "silent":
		p.NodeNotReady, p.NodeSince = true, now
	case "back": // its node
		p.NodeNotReady, p.NodeSince = false, now
	case "unschedulable":
		p.Node, p.ScheduledReason, p.ScheduledMessage = "", "Unschedulable", "0/3 nodes are available"
	case "noprobe":
		p.Unprobed = true
	case "lost", "bound": // its claim
		p.Claims = []Claim{{Name: fmt.Sprintf("data-db-%d", i), Phase: map[string]string{"lost": claimLost, "bound": "Bound"}[state]}}
	case "terminating":
		p.Terminating, p.DeletionTime = true, now.Add(30*time.Second)
	case "failed":
		p.Phase = "Failed"
	case "absent":
		*p = Pod{}
	case "taken": // its name, by a pod that is not of this StatefulSet
		*p = Pod{TakenBy: "ReplicaSet other"}
	case "refused": // its creation, once more
		if p.Told.Reason == "" {
			p.Told = Told{Reason: "FailedCreate", Message: `pods "db" is forbidden: denied`, First: now}
		}
		p.Told.Last = now
	default:
		return fmt.Errorf("unknown state %q", state)
	}
	return nil
}

// decide prints the decision. Without an argument it is stored and carried out; "crash" stores it only.
func (s *script) decide(mode string) (string, error) {
	d := Decide(s.state, s.o)
	if d.Bug != nil {
		return "", d.Bug
	}
	var b strings.Builder
	for _, e := range d.Events {
		b.WriteString(describe(e) + "\n")
	}
	switch in := d.Intent; in.Kind {
	case SetPartition:
		fmt.Fprintf(&b, "do SetPartition %s\n", partitionText(in.Partition))
	case ReplacePod:
		fmt.Fprintf(&b, "do ReplacePod %s\n", in.Pod.Name)
	case RestoreRevision:
		fmt.Fprintf(&b, "do RestoreRevision %s\n", in.Revision)
	case NoIntent:
	}
	s.state = d.State
	s.log = append(s.log, d.Events...)
	if mode != "crash" {
		s.carryOut(d.Intent)
	}
	fmt.Fprintf(&b, "= %s %s", d.State.Name, d.State.Reason)
	if d.State.Pod != "" {
		fmt.Fprintf(&b, " %s", d.State.Pod)
	}
	fmt.Fprintf(&b, " %d/%d", d.State.Finished.Len(), d.State.Replicas)
	if d.Rule != "" {
		fmt.Fprintf(&b, " (%s)", d.Rule)
	}
	if !d.WakeAt.IsZero() {
		fmt.Fprintf(&b, " wake +%s", d.WakeAt.Sub(s.o.Now))
	}
	again := Decide(s.state, s.o)
	if len(again.Events) > 0 && mode != "crash" && d.Intent.Kind == NoIntent {
		fmt.Fprintf(&b, "\nNOT QUIET: %s", describe(again.Events[0]))
	}
	return b.String(), nil
}

func (s *script) carryOut(in Intent) {
	switch in.Kind {
	case SetPartition:
		s.o.Partition = in.Partition
		s.touch()
	case ReplacePod:
		for i := range s.o.Pods {
			if p := &s.o.Pods[i]; p.UID == in.Pod.UID {
				p.Terminating, p.DeletionTime = true, s.o.Now.Add(30*time.Second)
			}
		}
	case RestoreRevision:
		s.o.CurrentRevision = in.Revision
	case NoIntent:
	}
}

func describe(e Event) string {
	parts := []string{string(e.Type)}
	if e.Reason != "" {
		parts = append(parts, string(e.Reason))
	}
	if e.Ordinals != "" {
		parts = append(parts, "{"+string(e.Ordinals)+"}")
	}
	if e.Partition != nil {
		parts = append(parts, "P "+partitionText(*e.PreviousPartition)+">"+partitionText(*e.Partition))
	}
	for _, g := range e.Gates {
		parts = append(parts, g.Name+"="+string(g.Result))
	}
	if e.Actor != "" {
		parts = append(parts, "by "+e.Actor)
	}
	return strings.Join(parts, " ") + " | " + e.Message
}

func partitionText(p int32) string {
	if p == Parked {
		return "parked"
	}
	return strconv.Itoa(int(p))
}
