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
	rules := map[string][]rbacv1.PolicyRule{}   // by kind and name
	granted := map[string][]rbacv1.PolicyRule{} // by namespace; empty is everywhere
	for _, o := range objects {
		switch kind := o.GetKind(); kind {
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole // a Role has the same rules
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role)).To(Succeed())
			rules[kind+" "+o.GetName()] = role.Rules
		case "ClusterRoleBinding", "RoleBinding": // they come after the roles
			var binding rbacv1.ClusterRoleBinding
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding)).To(Succeed())
			g.Expect(binding.Subjects).To(HaveExactElements(HaveField("Name", account)), binding.Name)
			granted[o.GetNamespace()] = append(granted[o.GetNamespace()], rules[binding.RoleRef.Kind+" "+binding.RoleRef.Name]...)
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

// Whoever keeps all records need not grant their deletion.
func TestDeletionIsAskedForToDelete(t *testing.T) {
	g := NewWithT(t)
	deletes := func(days int) bool {
		return slices.ContainsFunc(wanted(options{retentionDays: days}), func(p permission) bool { return p.verb == "delete" && p.resource == "rolloutrecords" })
	}
	g.Expect(deletes(90)).To(BeTrue())
	g.Expect(deletes(0)).To(BeFalse())
}
