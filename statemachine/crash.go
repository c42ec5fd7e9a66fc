package statemachine

import (
	"fmt"
	"time"
)

// crashing judges by restarts and lastState: waiting CrashLoopBackOff is often published for a moment only, and
// between two exits a container may be Ready.
func crashing(p *Pod, c *Container, now time.Time) finding {
	exit := c.Terminated
	if exit == nil {
		exit = c.Last
	}
	if c.Init && !c.Sidecar && c.Terminated != nil && c.Terminated.Code == 0 {
		return finding{} // it did what it had to
	}
	if exit != nil && lostExit(exit) && c.Waiting != string(ReasonCrashLoopBackOff) {
		return finding{}
	}
	switch {
	case exit == nil && c.Waiting == string(ReasonCrashLoopBackOff):
		exit = &Exit{}
	case exit == nil:
		return finding{}
	case c.Terminated != nil && stays(p, c, now):
		return finding{reason: ReasonContainerTerminated, what: fmt.Sprintf("has an ended container %s, exit code %d,", c.Name, exit.Code), since: exit.FinishedAt}
	case c.Terminated == nil && c.Waiting != string(ReasonCrashLoopBackOff) && !loops(p, c, exit, now):
		return finding{}
	}
	f := finding{reason: ReasonCrashLoopBackOff, detail: exit.Message, since: exit.FinishedAt}
	if c.Restarts >= 2 && c.Waiting == "" { // the kubelet's own word is better, where it is published
		f.reason = ReasonRestartLoop
	}
	if r := Reason(exit.Reason); r.class() == classCrash {
		f.reason = r
	}
	f.what = fmt.Sprintf("keeps exiting%s, exit code %d, restarts: %d,", in(c), exit.Code, c.Restarts)
	if c.Restarts == 0 {
		f.what = fmt.Sprintf("exited%s, exit code %d,", in(c), exit.Code)
	}
	// The run that ended was itself a restart, and too short to have been a recovery.
	if c.Restarts > 0 && exit.StartedAt.After(p.Created) && exit.FinishedAt.Sub(exit.StartedAt) < flapWindow {
		f.since = exit.StartedAt
	}
	return f
}

// lostExit: nobody saw how the container ended, because its node went down or its sandbox was lost. That is no crash.
func lostExit(exit *Exit) bool {
	return exit.Reason == "Unknown" || exit.Reason == "ContainerStatusUnknown"
}

// stays reports whether a container that ended will not be restarted.
func stays(p *Pod, c *Container, now time.Time) bool {
	rest := longestBackOff
	if c.Restarts == 0 {
		rest = firstRestart
	}
	return now.Sub(later(c.Terminated.FinishedAt, p.NodeSince)) > rest // the kubelet may only just be back
}

// loops reports whether a container that runs now belongs to a loop: it has just been restarted, and the run before
// was short and a restart too. A restart in the life of an old pod is not a loop. One that was never up for long and is
// not ready has more time to end again: a startup probe kills it after minutes only.
func loops(p *Pod, c *Container, last *Exit, now time.Time) bool {
	window := flapWindow
	if !c.Ready && last.FinishedAt.Sub(p.Created) < time.Duration(c.Restarts)*loopWindow {
		window = loopWindow
	}
	return c.Restarts >= 2 && now.Sub(last.FinishedAt) < window && last.FinishedAt.Sub(last.StartedAt) < loopWindow
}
