package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
)

// Reasons of a RolloutProgress that no rollout stands behind.
const (
	reasonNotManaged          = "NotManaged"          // the StatefulSet has no label pawl.dev/mode
	reasonStatefulSetNotFound = "StatefulSetNotFound" // there is none of this name
	reasonUnknownMode         = "UnknownMode"         // the label has a value that means nothing
	reasonLogDamaged          = "LogDamaged"          // status does not hold what Pawl wrote
)

// stranded says why a RolloutProgress has no rollout to speak of; it is never an opt-in.
func stranded(s sight) (reason, message string) {
	if s.set == nil {
		return reasonStatefulSetNotFound, fmt.Sprintf(
			"There is no StatefulSet %s in namespace %s. Create it with the label %s, or delete this object.",
			s.key.Name, s.key.Namespace, v1alpha1.ModeLabel)
	}
	return reasonNotManaged, fmt.Sprintf(
		"StatefulSet %s is not handed to Pawl. Run: kubectl label sts %s -n %s %s=%s",
		s.key.Name, s.key.Name, s.key.Namespace, v1alpha1.ModeLabel, v1alpha1.ModeEnforce)
}

// damaged says what to do about a log that does not add up.
func damaged(s sight, err error) (reason, message string) {
	const most = 300
	what := err.Error()
	return reasonLogDamaged, fmt.Sprintf(
		"No step is taken: %s. Start a new log from the newest RolloutRecord: kubectl delete rp %s -n %s",
		strings.ToValidUTF8(what[:min(len(what), most)], ""), s.key.Name, s.key.Namespace)
}

// halted are the conditions of a RolloutProgress that Pawl does not go on with. Ready is False and says why; Stalled
// only when help is needed, and then it says so instead.
func halted(status *v1alpha1.RolloutProgressStatus, generation int64, stalled bool, reason, message string) {
	set := func(kind string, is bool, message string) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: generation,
		}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, c)
	}
	ready, stall := message, ""
	if stalled {
		ready, stall = "", message
	}
	set(v1alpha1.ConditionReady, false, ready)
	set(v1alpha1.ConditionReconciling, false, "")
	set(v1alpha1.ConditionStalled, stalled, stall)
	status.ObservedGeneration = &generation
}
