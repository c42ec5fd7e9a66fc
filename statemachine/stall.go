package statemachine

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

const (
	// loopWindow is how short a run has to be for its end to count as one of a loop.
	loopWindow = 10 * time.Minute
	// firstRestart is how long the kubelet may take for the first restart of a container, which has no back-off.
	firstRestart = 15 * time.Second
	// longestBackOff is longer than the kubelet's longest pause between restarts (5 minutes).
	longestBackOff = 6 * time.Minute
)

// finding is what is wrong with a pod. The zero finding means that nothing speaks against it yet.
type finding struct {
	reason Reason
	what   string       // a phrase that follows the pod's name
	detail string       // Kubernetes' own words
	since  time.Time    // the newest object time that proves it; zero if there is none
	quiet  bool         // the ordinary course of a start: to be told only once it is late
	gates  []GateResult // what the policy said, if that is what is wrong
}

// examine says what is wrong with a pod that is not healthy: the root cause before its effects.
func examine(p *Pod, now time.Time) finding {
	for _, look := range []func(*Pod, time.Time) finding{
		nodeSilent, missing, terminating, ended, claims, unscheduled, containers, unready,
	} {
		if f := look(p, now); f.reason != "" {
			return f
		}
	}
	return finding{}
}

// nodeSilent comes first: when a node goes silent its pods' statuses are old, and their deletion cannot finish.
func nodeSilent(p *Pod, _ time.Time) finding {
	if !p.Present || !p.NodeNotReady {
		return finding{}
	}
	what := "is on node %s, which is not Ready"
	if p.NodeGone {
		what = "is on node %s, which does not exist"
	}
	return finding{reason: ReasonNodeNotReady, what: fmt.Sprintf(what, p.Node), since: p.NodeSince}
}

func missing(p *Pod, _ time.Time) finding {
	refused := refusal(p)
	switch {
	case p.Present:
		return finding{}
	case p.TakenBy != "":
		return finding{reason: ReasonNameTaken, what: "cannot be created", detail: "its name is that of " + p.TakenBy}
	case refused != "":
		return finding{reason: refused, what: "cannot be created", detail: refusedFor(p.Told.Message), since: p.Told.First}
	default:
		return finding{reason: ReasonPodMissing, what: "does not exist", detail: refusedFor(p.Told.Message), quiet: p.Told.Reason == ""}
	}
}

// terminating counts from deletionTimestamp, which already includes the grace period.
func terminating(p *Pod, now time.Time) finding {
	if !p.Terminating {
		return finding{}
	}
	since := p.DeletionTime
	if p.NodeSince.After(since) {
		since = p.NodeSince.Add(flapWindow) // a node that was silent has to catch up
	}
	f := finding{reason: ReasonStuckTerminating, what: "is terminating", since: since, quiet: true}
	if now.After(since) {
		f.what, f.quiet = "should have ended", false
		if len(p.Finalizers) > 0 {
			f.what = fmt.Sprintf("is held by finalizer %s", p.Finalizers[0])
		}
	}
	return f
}

func hasEnded(p *Pod) bool { return p.Phase == "Failed" || p.Phase == "Succeeded" }

func ended(p *Pod, _ time.Time) finding {
	if !hasEnded(p) {
		return finding{}
	}
	if p.Reason == string(ReasonEvicted) {
		return finding{reason: ReasonEvicted, what: "was evicted", detail: p.Message}
	}
	detail := p.Reason // OutOfcpu, NodeAffinity …: the kubelet did not take it
	if p.Message != "" {
		detail += ": " + p.Message
	}
	return finding{reason: ReasonPodTerminated, what: "ended with phase " + p.Phase, detail: strings.TrimPrefix(detail, ": ")}
}

func unscheduled(p *Pod, _ time.Time) finding {
	switch {
	case p.Node != "":
		return finding{}
	case p.ScheduledReason == string(ReasonSchedulingGated):
		return finding{reason: ReasonSchedulingGated, what: "is held by a scheduling gate", detail: p.ScheduledMessage}
	case p.ScheduledReason != "":
		return finding{reason: ReasonUnschedulable, what: "fits on no node", detail: p.ScheduledMessage}
	default:
		return finding{reason: ReasonNotScheduled, what: "was not looked at by a scheduler", detail: p.Told.Message, quiet: true}
	}
}

// containers is the first container that cannot go on: they are in the order in which the kubelet starts them, so
// that the first is the cause and the later ones wait for it.
func containers(p *Pod, now time.Time) finding {
	var soft finding
	for i := range p.Containers {
		f := container(p, &p.Containers[i], now)
		if f.reason.class().hard() {
			return f
		}
		if soft.reason == "" || soft.quiet && f.reason != "" && !f.quiet {
			soft = f
		}
	}
	return soft
}

func container(p *Pod, c *Container, now time.Time) finding {
	if f := waiting(p, c); f.reason != "" {
		return f
	}
	if f := crashing(p, c, now); f.reason != "" {
		return f
	}
	if c.Init && !c.Sidecar && !c.RunningSince.IsZero() {
		return finding{reason: ReasonInitNotFinished, what: fmt.Sprintf("is still running init container %s", c.Name), since: c.RunningSince}
	}
	return finding{}
}

// waitingReasons are the kubelet's tokens with what they say of the pod. PodInitializing is the effect of another
// container, never a stall.
var waitingReasons = map[Reason]string{
	ReasonInvalidImageName: "has an invalid image name %q", ReasonErrImageNeverPull: "may not pull image %q",
	ReasonErrImagePull: "cannot pull image %q", ReasonImagePullBackOff: "cannot pull image %q",
	ReasonImageInspectError: "cannot read image %q", ReasonRegistryUnavailable: "cannot reach the registry of image %q",
	ReasonSignatureValidation:   "has a bad signature on image %q",
	ReasonCreateContainerConfig: "cannot be configured", ReasonCreateContainer: "cannot be created",
	ReasonRunContainerError: "cannot start", ReasonStartError: "cannot start", ReasonPostStartHookError: "fails in its postStart hook",
}

func waiting(p *Pod, c *Container) finding {
	token, _, _ := strings.Cut(c.Waiting, ":") // older kubelets put a whole sentence here
	token = strings.TrimRightFunc(strings.TrimSpace(token), func(r rune) bool { return !unicode.IsLetter(r) })
	reason := Reason(token)
	switch reason {
	case "", "PodInitializing", ReasonCrashLoopBackOff:
		return finding{}
	case "ContainerCreating":
		return creating(p, c)
	}
	what, known := waitingReasons[reason]
	if !known {
		return finding{reason: ReasonUnknown, what: fmt.Sprintf("waits with %s%s", cut(token, 64), in(c)), detail: c.WaitingMessage}
	}
	if strings.Contains(what, "%q") {
		what = fmt.Sprintf(what, cut(c.Image, 64))
	}
	return finding{reason: reason, what: what + in(c), detail: whyOf(c.WaitingMessage, reason.class() == classPull)}
}

// creating: ContainerCreating says nothing; what keeps the kubelet is in Events alone.
func creating(p *Pod, c *Container) finding {
	switch p.Told.Reason {
	case "":
		return finding{reason: ReasonVolumeNotReady, what: "waits for volumes or network" + in(c), quiet: true}
	case "Pulling":
		return finding{reason: ReasonNotReady, what: "is still pulling an image", detail: p.Told.Message, since: p.Told.Last}
	default:
		return finding{reason: ReasonVolumeNotReady, what: "waits for volumes or network" + in(c), detail: volumeFault(p.Told.Message), since: p.Told.First}
	}
}

// volumeFault leaves out by which of its operations the kubelet failed (MountVolume.SetUp): which volume and why come after
// it, and a message is short.
func volumeFault(message string) string {
	if operation, rest, found := strings.Cut(message, " failed for volume "); found && !strings.Contains(operation, " ") {
		return "volume " + rest
	}
	return message
}

func unready(p *Pod, now time.Time) finding {
	if gate := unsetGate(p); gate != "" {
		return finding{reason: ReasonReadinessGate, what: "waits for readiness gate " + gate, since: p.ReadySince}
	}
	f := finding{reason: ReasonNotReady, what: "is not ready", since: later(p.ReadySince, p.NodeSince)}
	for i := range p.Containers {
		c := &p.Containers[i]
		f.since = later(f.since, c.RunningSince)
		f.quiet = f.quiet || !c.Init && c.RunningSince.IsZero() && c.Terminated == nil // still to be started
	}
	if p.NodeSince.After(p.ReadySince) && now.Before(p.NodeSince.Add(flapWindow)) {
		f.quiet = true // its node is only just back
	}
	if p.Ready {
		return finding{reason: ReasonNotReady, what: "is ready, but not for long enough,", since: p.ReadySince, quiet: true}
	}
	for i := range p.Containers {
		if c := &p.Containers[i]; !c.Ready && (!c.Init || c.Sidecar) {
			f.what += in(c)
			break
		}
	}
	return f
}

// unsetGate is the readiness gate that keeps a pod from being Ready whose containers are. The kubelet takes a moment to
// see that a gate was set.
func unsetGate(p *Pod) string {
	switch {
	case p.Ready || !allReady(p):
		return ""
	case len(p.UnsetGates) > 0:
		return p.UnsetGates[0]
	case p.ReadyReason == "ReadinessGatesNotReady":
		return "that was set just now"
	default:
		return ""
	}
}

func allReady(p *Pod) bool {
	for i := range p.Containers {
		if c := &p.Containers[i]; !c.Ready && (!c.Init || c.Sidecar) {
			return false
		}
	}
	return len(p.Containers) > 0
}

func in(c *Container) string {
	if c.Init {
		return fmt.Sprintf(" (init container %s)", c.Name)
	}
	return fmt.Sprintf(" (container %s)", c.Name)
}

// whyOf is the end of a kubelet's message, which says why: its last clauses, as many as a person will read. Of a failed
// pull only the very last: those before it repeat the image name.
func whyOf(message string, pull bool) string {
	const enough = 80
	message, _, _ = strings.Cut(message, " (pod: ") // the kubelet names the pod once more
	clauses := strings.Split(strings.TrimSuffix(message, ": unknown"), ": ")
	why := clauses[len(clauses)-1]
	for _, clause := range slices.Backward(clauses[:len(clauses)-1]) {
		if pull || len(why)+len(clause) > enough {
			break
		}
		why = clause + ": " + why
	}
	return why
}
