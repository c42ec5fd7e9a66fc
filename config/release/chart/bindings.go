package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const made = "# Made by make generate of config/rbac/role.yaml, which controller-gen makes of the markers in controllers/ and cmd/pawl.\n"

// role is a Role or ClusterRole of the manager.
type role struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Rules []struct {
		APIGroups []string `json:"apiGroups"`
		Resources []string `json:"resources"`
		Verbs     []string `json:"verbs"`
	} `json:"rules"`
}

// needed is the role that Pawl cannot do without.
const needed = "pawl"

// clusterScoped are the resources outside of namespaces that are not Pawl's own.
var clusterScoped = []string{"nodes", "namespaces", "persistentvolumes", "tokenreviews", "subjectaccessreviews"}

// roles are those of config/rbac/role.yaml.
func roles(config string) ([]role, error) {
	text, err := os.ReadFile(filepath.Join(config, "rbac/role.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the roles: %w", err)
	}
	var all []role
	for _, document := range documents(text) {
		var r role
		if err := yaml.Unmarshal(document, &r); err != nil {
			return nil, fmt.Errorf("read the roles: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// documents are those of a YAML file that are not empty.
func documents(text []byte) [][]byte {
	return slices.DeleteFunc(bytes.Split(append([]byte("\n"), text...), []byte("\n---\n")), func(d []byte) bool {
		return len(bytes.TrimSpace(d)) == 0
	})
}

// own are the resources of config/crd that are in no namespace.
func own(config string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(config, "crd/pawl.dev_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find the custom resources: %w", err)
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a custom resource: %w", err)
		}
		var crd struct {
			Spec struct {
				Scope string                  `json:"scope"`
				Names struct{ Plural string } `json:"names"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if crd.Spec.Scope == "Cluster" {
			found = append(found, crd.Spec.Names.Plural)
		}
	}
	return found, nil
}

// clusterWide reports whether a ClusterRole is about what is in no namespace, so that it can only be bound everywhere. It
// has to be one or the other.
func (r role) clusterWide(scoped []string) (bool, error) {
	var outside, inside []string
	for _, rule := range r.Rules {
		for _, resource := range rule.Resources {
			kind, _, _ := strings.Cut(resource, "/")
			if slices.Contains(scoped, kind) {
				outside = append(outside, resource)
			} else {
				inside = append(inside, resource)
			}
		}
	}
	if len(outside) > 0 && len(inside) > 0 {
		return false, fmt.Errorf("ClusterRole %s: %v are in no namespace, but %v are: give the former a role of their own (roleName= in the marker)",
			r.Metadata.Name, outside, inside)
	}
	return len(outside) > 0, nil
}

// changes reports whether a role that is about what is in no namespace lets something be changed there; to ask the API
// server for a review changes nothing. Such a role is not for a Pawl that looks after some namespaces only.
func (r role) changes() bool {
	for _, rule := range r.Rules {
		if slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.HasSuffix(resource, "reviews") }) {
			continue
		}
		if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }) {
			return true
		}
	}
	return false
}

// bindings binds every role, and for the overlay of some namespaces those that can be in these only.
func bindings(config string) (map[string]string, error) {
	all, err := roles(config)
	if err != nil {
		return nil, err
	}
	scoped, err := own(config)
	if err != nil {
		return nil, err
	}
	scoped = append(scoped, clusterScoped...)
	var everywhere, there, instead []string
	for _, r := range all {
		if r.Metadata.Namespace != "" {
			everywhere = append(everywhere, binding("RoleBinding", "Role", r.Metadata.Name, r.Metadata.Namespace))
			continue
		}
		everywhere = append(everywhere, binding("ClusterRoleBinding", "ClusterRole", r.Metadata.Name, ""))
		wide, err := r.clusterWide(scoped)
		if err != nil {
			return nil, err
		}
		if !wide {
			there = append(there, binding("RoleBinding", "ClusterRole", r.Metadata.Name, "databases"))
		}
		if !wide || r.changes() {
			instead = append(instead, fmt.Sprintf("$patch: delete\napiVersion: %s\nkind: ClusterRoleBinding\nmetadata:\n  name: %s\n", rbac, r.Metadata.Name))
		}
	}
	return map[string]string{
		"rbac/role_binding.yaml":                         made + strings.Join(everywhere, "---\n"),
		"overlays/namespaced/bindings/role_binding.yaml": made + strings.Join(there, "---\n"),
		"overlays/namespaced/instead.yaml":               made + strings.Join(instead, "---\n"),
	}, nil
}

const rbac = "rbac.authorization.k8s.io/v1"

func binding(kind, of, name, namespace string) string {
	where := ""
	if namespace != "" {
		where = "  namespace: " + namespace + "\n"
	}
	return fmt.Sprintf(`apiVersion: %[1]s
kind: %[2]s
metadata:
  name: %[4]s
%[5]s  labels:
    app.kubernetes.io/name: pawl
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: %[3]s
  name: %[4]s
subjects:
- kind: ServiceAccount
  name: pawl
  namespace: pawl-system
`, rbac, kind, of, name, where)
}
