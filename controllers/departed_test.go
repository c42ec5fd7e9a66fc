package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// Whatever a deleted RolloutProgress held, in the middle of a rollout or between two: the pages that are made of it are
// those that the ledger would have made, and nothing is left over.
func TestWhatIsLeftOfALogIsSealed(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "db"}
	now := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	for name, deleted := range map[string]bool{"the log alone is deleted": false, "the StatefulSet is deleted": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			log, err := ledger.Load(key.Name, v1alpha1.RolloutProgressStatus{}, nil)
			g.Expect(err).NotTo(HaveOccurred())
			set := statefulSetOfThree()
			set.Labels = map[string]string{v1alpha1.ModeLabel: string(v1alpha1.ModeEnforce)}
			log, err = log.Append(statemachine.Decide(log.State(), observe(facts{now: now, statefulSet: set, digest: "1"})).Events)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(log.State().Rollout.Open()).To(BeTrue())
			if deleted {
				log, err = log.Append(statemachine.Decide(log.State(), gone(key, log.State(), now)).Events)
				g.Expect(err).NotTo(HaveOccurred())
			}
			var pages []v1alpha1.Page
			for more := log.Remainder(); len(more) > 0; more = log.Remainder() {
				log, err = log.Sealed(more[0])
				g.Expect(err).NotTo(HaveOccurred())
				pages = append(pages, more[0])
			}
			g.Expect(log.SealedThrough()).To(Equal(log.Sequence()))
			g.Expect(ledger.Verify(key.Name, v1alpha1.RolloutProgressStatus{}, pages)).To(Succeed())
			again, err := ledger.Load(key.Name, v1alpha1.RolloutProgressStatus{}, pages)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Sequence()).To(Equal(log.Sequence()), "the next log goes on from there")
		})
	}
}
