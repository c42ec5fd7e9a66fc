package statemachine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// The phases of a claim that matter. An empty phase is that of a claim that does not exist.
const (
	claimLost    = "Lost"
	claimPending = "Pending"
)

// claims is what is wrong with the claims of a pod that does not run. One that runs has its volumes mounted and may work
// for weeks without its claim: calling it dead would kill a pod that cannot come back.
func claims(p *Pod, _ time.Time) finding {
	if p.Phase == "Running" {
		return finding{}
	}
	if lost := claimIn(p, claimLost); lost != "" {
		return finding{reason: ReasonPVCLost, what: fmt.Sprintf("cannot mount claim %s, which has lost its volume,", lost)}
	}
	said := strings.ToLower(p.ScheduledMessage)
	missing, pending := claimIn(p, ""), claimIn(p, claimPending)
	notBound := finding{
		reason: ReasonPVCPending, what: fmt.Sprintf("needs claim %s, which is not bound,", pending),
		detail: cmp.Or(p.Told.Message, p.ScheduledMessage),
	}
	switch {
	case p.Node != "":
		return finding{}
	case pending != "" && p.Told.Reason == "ProvisioningFailed": // the scheduler waits for it and says nothing
		return notBound
	case p.ScheduledReason != string(ReasonUnschedulable):
		return finding{}
	case missing != "":
		return finding{reason: ReasonPVCMissing, what: fmt.Sprintf("needs claim %s, which does not exist,", missing)}
	case p.Claims == nil && strings.Contains(said, "persistentvolumeclaim") && strings.Contains(said, "not found"):
		return finding{reason: ReasonPVCMissing, what: "needs a claim that does not exist", detail: p.ScheduledMessage}
	case !saysVolumes(said), p.Claims != nil && pending == "":
		return finding{} // a claim that waits for its pod is an effect
	case pending != "":
		return notBound
	default:
		return finding{reason: ReasonPVCPending, what: "needs a claim that is not bound", detail: p.ScheduledMessage}
	}
}

// saysVolumes reports whether the scheduler names volumes as what keeps the pod off every node.
func saysVolumes(said string) bool {
	return strings.Contains(said, "unbound immediate") || strings.Contains(said, "volumes to bind") ||
		strings.Contains(said, "binding volumes")
}

// claimIn is the first claim of the pod in this phase, or none.
func claimIn(p *Pod, phase string) string {
	for _, c := range p.Claims {
		if c.Phase == phase {
			return c.Name
		}
	}
	return ""
}

// 15: every pod is healthy, but the next one would not come back.
func claimOfNextLost(v *view) bool {
	n := v.nextPod()
	return n >= 0 && v.off(n) && claimIn(&v.o.Pods[n], claimLost) != ""
}

func blockClaim(v *view) {
	n := v.nextPod()
	v.block(ReasonPVCLost, n, finding{
		reason: ReasonPVCLost,
		what:   fmt.Sprintf("runs, but would not come back: claim %s has lost its volume,", claimIn(&v.o.Pods[n], claimLost)),
	})
}

// lostClaims names the claims that later steps will stop at.
func (v *view) lostClaims() string {
	for i := range v.o.Pods {
		if lost := claimIn(&v.o.Pods[i], claimLost); lost != "" {
			return fmt.Sprintf(" Claim %s is Lost.", lost)
		}
	}
	return ""
}
