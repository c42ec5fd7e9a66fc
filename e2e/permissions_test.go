package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uses are how often Pawl's own account was allowed something, and how often it was refused for lack of a right.
type uses struct{ allowed, refused int }

// use counts a request by what RBAC asks about it, in its namespace and in all.
func (a *audit) use(r request) {
	o := r.ObjectRef
	resource := o.Resource
	if o.Subresource != "" {
		resource += "/" + o.Subresource
	}
	for _, where := range []string{"", o.Namespace} {
		if where == "" && o.Namespace == pawlNamespace {
			continue // what it may do at home it need not everywhere
		}
		key := permission{where, o.APIGroup, resource, r.Verb}.String()
		count := a.used[key]
		if r.Annotations["authorization.k8s.io/decision"] == "forbid" {
			count.refused++
		} else {
			count.allowed++
		}
		a.used[key] = count
		if o.Namespace == "" {
			return
		}
	}
}

// permission is one verb of one rule.
type permission struct{ namespace, group, resource, verb string }

func (p permission) String() string {
	what := p.verb + " " + p.resource
	if p.group != "" {
		what += "." + p.group
	}
	if p.namespace != "" {
		what += " in " + p.namespace
	}
	return what
}

// granted are the permissions that config/rbac gives to Pawl, with the role that each is in.
func (c *cluster) granted(ctx context.Context) (map[string]string, error) {
	var clusterRoles rbacv1.ClusterRoleBindingList
	var roles rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&clusterRoles, &roles} {
		if err := c.admin.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list who may do what: %w", err)
		}
	}
	ofPawl := func(subjects []rbacv1.Subject) bool {
		return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: pawlAccount, Namespace: pawlNamespace})
	}
	found := map[string]string{}
	add := func(namespace, role string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						found[permission{namespace, group, resource, verb}.String()] = role
					}
				}
			}
		}
	}
	for _, b := range clusterRoles.Items {
		role := &rbacv1.ClusterRole{}
		if !ofPawl(b.Subjects) {
			continue
		}
		if err := c.admin.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, role); err != nil {
			return nil, fmt.Errorf("read a role: %w", err)
		}
		add("", role.Name, role.Rules)
	}
	for _, b := range roles.Items {
		role := &rbacv1.Role{}
		if !ofPawl(b.Subjects) {
			continue
		}
		if err := c.admin.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, role); err != nil {
			return nil, fmt.Errorf("read a role: %w", err)
		}
		add(b.Namespace, "Role "+role.Name, role.Rules)
	}
	return found, nil
}

// seldom are the rights that a run may do without, and when each is used all the same.
var seldom = map[string]string{
	"patch events.events.k8s.io":       "an Event repeats within minutes",
	"patch events in pawl-system":      "likewise",
	"list statefulsets.apps":           listed,
	"list nodes":                       listed,
	"list persistentvolumeclaims":      listed,
	"list rolloutprogresses.pawl.dev":  listed,
	"list rolloutpolicies.pawl.dev":    listed,
	"list poddisruptionbudgets.policy": listed,
}

// ownerOfStory is the resource whose reading a story allows and withdraws.
const ownerOfStory = "configmaps"

// listed: what is watched is read by the watch itself, where the API server can.
const listed = "the API server cannot stream the list"

// reportPermissions compares what config/rbac grants with what the stories used, by the audit log of the API server: a
// table in bin/permissions.txt. Of all stories, a verb that is granted and was never used is one too many, but for those that
// are used seldom, and one that was refused is missing.
func reportPermissions(ctx context.Context, chosen string) error {
	if _, err := lab.audit.in("", lab.lab.AuditLog); err != nil {
		return err
	}
	granted, err := lab.granted(ctx)
	if err != nil {
		return err
	}
	lab.audit.mu.Lock()
	defer lab.audit.mu.Unlock()
	var lines, faults []string
	for what, role := range granted {
		n := lab.audit.used[what].allowed
		lines = append(lines, fmt.Sprintf("%-27s %-52s %8d", role, what, n))
		if n == 0 && seldom[what] == "" {
			faults = append(faults, "granted and never used: "+what+" ("+role+")")
		}
	}
	for what, n := range lab.audit.used {
		if n.refused > 0 && !strings.HasPrefix(what, "list "+ownerOfStory) {
			faults = append(faults, fmt.Sprintf("refused and needed: %s, %d times", what, n.refused))
		}
	}
	slices.Sort(lines)
	slices.Sort(faults)
	table := fmt.Sprintf("%-27s %-52s %8s\n%s\n", "ROLE", "MAY", "REQUESTS", strings.Join(lines, "\n"))
	if err := os.WriteFile(filepath.Join(lab.bin, "permissions.txt"), []byte(table), 0o600); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if chosen != "" && chosen != "." {
		return nil // some stories only: they need not use everything
	}
	fmt.Print(table)
	if len(faults) > 0 {
		return fmt.Errorf("what config/rbac grants is not what Pawl needs:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}
