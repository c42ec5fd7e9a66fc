package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"pawl.dev/pawl/api/v1alpha1"
)

func TestConditionsSayTheStateInOtherWords(t *testing.T) {
	for _, c := range []struct {
		state                       v1alpha1.State
		ready, reconciling, stalled metav1.ConditionStatus
	}{
		{v1alpha1.StateDone, "True", "False", "False"},
		{v1alpha1.StateWaiting, "False", "True", "False"},
		{v1alpha1.StateStepping, "False", "True", "False"},
		{v1alpha1.StateBlocked, "False", "False", "True"},
		{"", "False", "False", "False"},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			g := NewWithT(t)
			got := Conditions(v1alpha1.RolloutProgressStatus{State: c.state, Message: "so"}, 3, begin)
			g.Expect(got).To(HaveLen(3))
			for i, want := range []metav1.ConditionStatus{c.ready, c.reconciling, c.stalled} {
				g.Expect(got[i].Status).To(Equal(want), got[i].Type)
				g.Expect(got[i].Reason).NotTo(BeEmpty())
				g.Expect(got[i].Message == "so").To(Equal(want == "True"))
				g.Expect(got[i].ObservedGeneration).To(Equal(int64(3)))
			}
		})
	}
}

func TestTheTimeOfAConditionChangesWithItsStatusOnly(t *testing.T) {
	g := NewWithT(t)
	status := v1alpha1.RolloutProgressStatus{State: v1alpha1.StateStepping, Reason: "Starting"}
	status.Conditions = Conditions(status, 1, begin)
	status.State, status.Reason = v1alpha1.StateBlocked, "ImagePullBackOff"
	later := begin.Add(time.Minute)
	got := Conditions(status, 1, later)
	g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionReady).LastTransitionTime.Time).To(Equal(begin))
	g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionReady).Reason).To(Equal("ImagePullBackOff"))
	g.Expect(meta.FindStatusCondition(got, v1alpha1.ConditionStalled).LastTransitionTime.Time).To(Equal(later))
	g.Expect(meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled).Status).To(BeEquivalentTo("False"), "the argument is left alone")
}
