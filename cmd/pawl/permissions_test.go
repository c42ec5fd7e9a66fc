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
	var role rbacv1.ClusterRole
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" && o.GetName() == "pawl" {
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role)).To(Succeed())
		}
	}
	for _, p := range permissions {
		resource := p.resource
		if p.sub != "" {
			resource += "/" + p.sub
		}
		granted := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, p.group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, p.verb)
		})
		g.Expect(granted).To(BeTrue(), p.String())
	}
}
