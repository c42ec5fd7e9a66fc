package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
)

// Conditions says a status once more in the words of kstatus: Done is Ready, Waiting and Stepping are Reconciling,
// Blocked is Stalled. The two others are False and carry no message, as three copies of one message fill a screen. The
// time of a condition changes with its status only. Conditions of other types are kept.
func Conditions(status v1alpha1.RolloutProgressStatus, generation int64, now time.Time) []metav1.Condition {
	current := map[v1alpha1.State]string{
		v1alpha1.StateDone:     v1alpha1.ConditionReady,
		v1alpha1.StateWaiting:  v1alpha1.ConditionReconciling,
		v1alpha1.StateStepping: v1alpha1.ConditionReconciling,
		v1alpha1.StateBlocked:  v1alpha1.ConditionStalled,
	}[status.State]
	reason := status.Reason
	if reason == "" {
		reason = string(status.State)
	}
	if reason == "" {
		reason = "Unknown" // a condition must have one
	}
	conditions := status.DeepCopy().Conditions
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		c := metav1.Condition{
			Type: name, Status: metav1.ConditionFalse, Reason: reason,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		}
		if name == current {
			c.Status, c.Message = metav1.ConditionTrue, status.Message
		}
		meta.SetStatusCondition(&conditions, c)
	}
	return conditions
}
