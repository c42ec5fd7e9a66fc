package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"pawl.dev/pawl/statemachine"
)

func moved(kind statemachine.EventType, from, to int32) statemachine.Event {
	return statemachine.Event{Type: kind, PreviousPartition: &from, Partition: &to, Pod: "db-2", PodUID: "u2", Message: "Why."}
}

func TestEachStepIsOneNotice(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for p := int32(3); p > 0; p-- {
		from := p
		if p == 3 {
			from = statemachine.Parked
		}
		notices := noticesOf(moved(statemachine.StepStarted, from, p-1), from, 3, "db-b")
		g.Expect(notices).To(HaveLen(1))
		g.Expect(notices[0].reason).To(Equal("PartitionUpdate"))
		g.Expect(seen[notices[0].action]).To(BeFalse(), "the recorder would merge it with another step")
		seen[notices[0].action] = true
	}
	n := noticesOf(moved(statemachine.StepStarted, statemachine.Parked, 2), statemachine.Parked, 3, "db-b")[0]
	g.Expect(n).To(Equal(notice{
		kind: corev1.EventTypeNormal, reason: "PartitionUpdate", action: "Step2", pod: "db-2", podUID: "u2",
		note: "Updated partition from 3 to 2 for revision db-b: Why.",
	}))
}

func TestAParkedPartitionThatNobodySeesMoveIsToldAsWhatItIs(t *testing.T) {
	n := noticesOf(moved(statemachine.PartitionParked, 3, statemachine.Parked), 3, 3, "db-b")
	NewWithT(t).Expect(n).To(HaveLen(1))
	NewWithT(t).Expect(n[0].reason).To(Equal("Parked"))
}

func TestARecordedPartitionIsToldOnce(t *testing.T) {
	n := noticesOf(moved(statemachine.RolloutStarted, 0, statemachine.Parked), statemachine.Parked, 3, "db-b")
	NewWithT(t).Expect(n).To(HaveLen(1))
	NewWithT(t).Expect(n[0].reason).To(Equal("RolloutStarted"))
}

func TestAForeignWriteIsNotOurs(t *testing.T) {
	g := NewWithT(t)
	n := noticesOf(moved(statemachine.PartitionOverridden, 2, 0), 2, 3, "db-b")
	g.Expect(n).To(HaveLen(1))
	g.Expect(n[0].kind).To(Equal(corev1.EventTypeWarning))
	g.Expect(n[0].reason).To(Equal("PartitionOverridden"))
}

func TestWhatNeedsHelpIsAWarningAndNamesTheRevision(t *testing.T) {
	g := NewWithT(t)
	for _, kind := range []statemachine.EventType{statemachine.BlockedEvent, statemachine.PodRegressed} {
		n := noticesOf(statemachine.Event{Type: kind, Reason: "ErrImagePull", Ordinals: "2", Message: "Why."}, 0, 3, "db-b")[0]
		g.Expect(n.kind).To(Equal(corev1.EventTypeWarning))
		g.Expect(n.action).To(Equal("RolloutErrImagePull-2"))
		g.Expect(n.note).To(Equal("ErrImagePull: Why. (revision db-b)"))
	}
}
