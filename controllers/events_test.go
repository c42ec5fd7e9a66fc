package controllers

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

func moved(kind statemachine.EventType, from, to int32) statemachine.Event {
	return statemachine.Event{Type: kind, PreviousPartition: &from, Partition: &to, Pod: "db-2", PodUID: "u2", Message: "Why."}
}

func TestEachStepIsOneNotice(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for p := int32(3); p > 0; p-- {
		was := p
		if p == 3 {
			was = statemachine.Parked
		}
		g.Expect(noticesOf(moved(statemachine.StepStarted, was, p-1), 3, "db-b")).To(BeEmpty(), "the write tells it")
		to := p - 1
		n, visible := partitionNotice(v1alpha1.Transition{Partition: &to, Pod: "db-2", PodUID: "u2", Message: "Why."}, was, 3, "db-b")
		g.Expect(visible).To(BeTrue())
		g.Expect(n.note).To(Equal(fmt.Sprintf("Updated partition from %d to %d for revision db-b: Why.", p, to)))
		g.Expect(n.reason).To(Equal("PartitionUpdate"))
		g.Expect(n.pod).To(Equal("db-2"))
		g.Expect(seen[n.action]).To(BeFalse(), "the recorder would merge it with another step")
		seen[n.action] = true
	}
}

func TestAParkedPartitionThatNobodySeesMoveIsToldAsWhatItIs(t *testing.T) {
	n := noticesOf(moved(statemachine.PartitionParked, 3, statemachine.Parked), 3, "db-b")
	NewWithT(t).Expect(n).To(HaveLen(1))
	NewWithT(t).Expect(n[0].reason).To(Equal("Parked"))
	all := statemachine.Parked
	_, visible := partitionNotice(v1alpha1.Transition{Partition: &all}, 3, 3, "db-b")
	NewWithT(t).Expect(visible).To(BeFalse())
}

func TestAForeignWriteIsNotOurs(t *testing.T) {
	g := NewWithT(t)
	n := noticesOf(moved(statemachine.PartitionOverridden, 2, 0), 3, "db-b")
	g.Expect(n).To(HaveLen(1))
	g.Expect(n[0].kind).To(Equal(corev1.EventTypeWarning))
	g.Expect(n[0].reason).To(Equal("PartitionOverridden"))
}

func TestWhatNeedsHelpIsAWarningAndNamesTheRevision(t *testing.T) {
	g := NewWithT(t)
	for _, kind := range []statemachine.EventType{statemachine.BlockedEvent, statemachine.PodRegressed} {
		n := noticesOf(statemachine.Event{Type: kind, Reason: "ErrImagePull", Ordinals: "2", Message: "Why."}, 3, "db-b")[0]
		g.Expect(n.kind).To(Equal(corev1.EventTypeWarning))
		g.Expect(n.action).To(Equal("RolloutErrImagePull-2"))
		g.Expect(n.note).To(Equal("ErrImagePull: Why. (revision db-b)"))
	}
}
