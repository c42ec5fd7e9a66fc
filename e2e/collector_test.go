package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// collects waits until the garbage collector knows RolloutProgress, which takes up to half a minute after the CRD was
// created. Before that it leaves the reference to a StatefulSet that goes without its dependents, and deletes them later.
func (c *cluster) collects(t *testing.T) {
	t.Helper()
	c.collecting.Do(func() {
		g, ctx := NewWithT(t), t.Context()
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
		g.Expect(c.admin.Create(ctx, owner)).To(Succeed())
		owned := &pawlv1alpha1.RolloutProgress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned"}}
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		g.Expect(c.admin.Create(ctx, owned)).To(Succeed())
		g.Expect(c.admin.Delete(ctx, owner)).To(Succeed())
		g.Eventually(func() error { return c.admin.Get(ctx, client.ObjectKeyFromObject(owned), owned) }, patience).
			Should(MatchError(ContainSubstring("not found")), "waiting for the garbage collector to know RolloutProgress")
	})
}
