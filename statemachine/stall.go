package statemachine

import (
	"fmt"
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
	what   string    // a phrase that follows the pod's name
	detail string    // Kubernetes' own words
	since  time.Time // the newest object time that proves it; zero if there is none
	quiet  bool      // the ordinary course of a start: to be told only once it is late
}

// examine says what is wrong with a pod that is not healthy: the root cause before its effects.
func examine(p *Pod, now time.Time) finding {
	for _, look := range []func(*Pod, time.Time) finding{
		nodeSilent, missing, terminating, ended, unscheduled, containers, unready,
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
	return finding{reason: ReasonNodeNotReady, what: fmt.Sprintf("is on node %s, which is not Ready", p.Node), since: p.NodeSince}
}

func missing(p *Pod, _ time.Time) finding {
	if p.Present {
		return finding{}
	}
	return finding{reason: ReasonPodMissing, what: "does not exist", quiet: true}
}

// terminating counts from deletionTimestamp, which already includes the grace period.
func terminating(p *Pod, now time.Time) finding {
	if !p.Terminating {
		return finding{}
	}
	since := later(p.DeletionTime, p.NodeSince) // a node that was silent has to catch up
	f := finding{reason: ReasonStuckTerminating, what: "is terminating", since: since, quiet: true}
	if now.After(since) {
		f.what, f.quiet = "should have ended", false
		if len(p.Finalizers) > 0 {
			f.what = fmt.Sprintf("is held by finalizer %s", p.Finalizers[0])
		}
	}
	return f
}

func ended(p *Pod, _ time.Time) finding {
	if p.Phase != "Failed" && p.Phase != "Succeeded" {
		return finding{}
	}
	if p.Reason == string(ReasonEvicted) {
		return finding{reason: ReasonEvicted, what: "was evicted", detail: p.Message}
	}
	return finding{reason: ReasonPodTerminated, what: "ended with phase " + p.Phase, detail: p.Reason, quiet: true}
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
		return finding{reason: ReasonNotScheduled, what: "was not looked at by a scheduler", quiet: true}
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
	if f := waiting(c); f.reason != "" {
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

func waiting(c *Container) finding {
	token, _, _ := strings.Cut(c.Waiting, ":") // older kubelets put a whole sentence here
	token = strings.TrimRightFunc(strings.TrimSpace(token), func(r rune) bool { return !unicode.IsLetter(r) })
	reason := Reason(token)
	switch reason {
	case "", "PodInitializing", ReasonCrashLoopBackOff:
		return finding{}
	case "ContainerCreating":
		return finding{reason: ReasonVolumeNotReady, what: "waits for volumes or network" + in(c), quiet: true}
	}
	what, known := waitingReasons[reason]
	if !known {
		return finding{reason: ReasonUnknown, what: fmt.Sprintf("waits with %s%s", cut(token, 64), in(c)), detail: c.WaitingMessage}
	}
	if strings.Contains(what, "%q") {
		what = fmt.Sprintf(what, cut(c.Image, 80))
	}
	return finding{reason: reason, what: what + in(c), detail: lastClause(c.WaitingMessage)}
}

func unready(p *Pod, _ time.Time) finding {
	if !p.Ready && allReady(p) && len(p.UnsetGates) > 0 {
		return finding{reason: ReasonReadinessGate, what: "waits for readiness gate " + p.UnsetGates[0], since: p.ReadySince}
	}
	f := finding{reason: ReasonNotReady, what: "is not ready", since: later(p.ReadySince, p.NodeSince)}
	for i := range p.Containers {
		c := &p.Containers[i]
		f.since = later(f.since, c.RunningSince)
		f.quiet = f.quiet || !c.Init && c.RunningSince.IsZero() && c.Terminated == nil // still to be started
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

// lastClause is the part of a kubelet's message that says why; what comes before repeats the image name.
func lastClause(message string) string {
	if i := strings.LastIndex(message, ": "); i >= 0 {
		return message[i+2:]
	}
	return message
}
