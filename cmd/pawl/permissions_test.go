package main

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What Pawl asks for at start-up is what config/rbac grants.
func TestEveryPermissionIsGranted(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifests()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects[0].GetKind()).To(Equal("Namespace"))
	granted := map[string][]rbacv1.PolicyRule{} // by namespace; empty is everywhere
	for _, o := range objects {
		if kind := o.GetKind(); (kind == "ClusterRole" || kind == "Role") && o.GetName() == "pawl" {
			var role rbacv1.ClusterRole // a Role has the same rules
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role)).To(Succeed())
			granted[o.GetNamespace()] = role.Rules
		}
	}
	for _, p := range permissions {
		resource := p.resource
		if p.sub != "" {
			resource += "/" + p.sub
		}
		found := slices.ContainsFunc(granted[p.where], func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, p.group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, p.verb)
		})
		g.Expect(found).To(BeTrue(), p.String())
	}
}
