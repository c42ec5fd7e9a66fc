package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// object is one that kustomize made.
type object map[string]any

func (o object) text(path ...string) string {
	at := map[string]any(o)
	for _, key := range path[:len(path)-1] {
		at, _ = at[key].(map[string]any)
	}
	text, _ := at[path[len(path)-1]].(string)
	return text
}

func (o object) kind() string { return o.text("kind") }
func (o object) name() string { return o.text("metadata", "name") }

// build is what kubectl apply -k would apply.
func build(folder string) ([]object, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	var objects []object
	for _, r := range built.Resources() {
		o, err := r.Map()
		if err != nil {
			return nil, fmt.Errorf("read what was built: %w", err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// templates are the templates of the chart, by the kinds in them, and the names of the roles in its schema.
func templates(config string) (map[string]string, error) {
	objects, err := build(filepath.Join(config, "default"))
	if err != nil {
		return nil, err
	}
	optional, binds, err := scopes(config)
	if err != nil {
		return nil, err
	}
	schema, err := withRoles(filepath.Join(config, "chart/values.schema.json"), optional)
	if err != nil {
		return nil, err
	}
	files := map[string]string{"chart/values.schema.json": schema}
	for _, o := range objects {
		file, text, err := template(o, optional, binds)
		if err != nil {
			return nil, err
		}
		if file == "" {
			continue
		}
		file = "chart/templates/" + file
		if files[file] == "" {
			files[file] = "{{- /* Made by make generate of config/default. */}}\n"
		}
		files[file] += text
	}
	return files, nil
}

// How a ClusterRole is bound where the values name namespaces.
const (
	inEach     = iota // in each of them
	everywhere        // in the whole cluster all the same: it is about what is in no namespace
	nowhere           // not at all: it would change what is in no namespace
)

// scopes are the roles that Pawl can do without, and how each role is bound where there are namespaces in the values.
func scopes(config string) (optional []string, binds map[string]int, err error) {
	scoped, err := own(config)
	if err != nil {
		return nil, nil, err
	}
	all, err := roles(config)
	if err != nil {
		return nil, nil, err
	}
	binds = map[string]int{}
	for _, r := range all {
		wide, err := r.clusterWide(append(scoped, clusterScoped...))
		switch {
		case err != nil:
			return nil, nil, err
		case wide && r.changes():
			binds[r.Metadata.Name] = nowhere
		case wide:
			binds[r.Metadata.Name] = everywhere
		}
		if r.Metadata.Name != needed {
			optional = append(optional, r.Metadata.Name)
		}
	}
	return optional, binds, nil
}

// template is an object with the holes of the chart, and the file that it belongs in; in none if the chart is without it:
// Helm makes the namespace, or finds it there.
func template(o object, optional []string, binds map[string]int) (file, text string, err error) {
	if o.kind() == "Namespace" {
		return "", "", nil
	}
	marshalled, err := yaml.Marshal(o)
	if err != nil {
		return "", "", fmt.Errorf("write %s %s: %w", o.kind(), o.name(), err)
	}
	text = "---\n" + strings.ReplaceAll(string(marshalled), "{{", `{{ "{{" }}`)
	switch kind := o.kind(); {
	case kind == "CustomResourceDefinition":
		return "crds.yaml", only(".Values.crds.install", kept(text)), nil
	case strings.HasPrefix(kind, "Mutating"), strings.HasPrefix(kind, "Validating"):
		return "admission.yaml", only(".Values.admission", text), nil
	case slices.Contains(optional, o.name()):
		switch {
		case kind != "ClusterRoleBinding":
		case binds[o.name()] == inEach:
			text = inNamespaces(text)
		case binds[o.name()] == nowhere:
			text = only("not .Values.namespaces", text)
		}
		return "rbac.yaml", only(fmt.Sprintf("not (has %q .Values.withhold)", o.name()), text), nil
	case kind == "ClusterRoleBinding":
		return "rbac.yaml", inNamespaces(text), nil
	case kind == "Deployment":
		text, err = deployment(text)
		return "deployment.yaml", text, err
	case kind == "PodDisruptionBudget":
		return "deployment.yaml", only("gt (int .Values.replicas) 1", text), nil
	default:
		return "rbac.yaml", text, nil
	}
}

func only(condition, text string) string {
	return "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
}

// kept has Helm leave a custom resource where it is when Pawl is uninstalled: with it the history would go.
func kept(text string) string {
	return strings.Replace(text, "  annotations:\n",
		"  annotations:\n    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n", 1)
}

// inNamespaces binds a ClusterRole in some namespaces only, if there are any in the values.
func inNamespaces(text string) string {
	there := strings.Replace(text, "kind: ClusterRoleBinding", "kind: RoleBinding", 1)
	there = strings.Replace(there, "\nroleRef:", "\n  namespace: {{ . }}\nroleRef:", 1)
	return "{{- range .Values.namespaces }}\n" + there + "{{- else }}\n" + text + "{{- end }}\n"
}

// holes are what a value may change in the Deployment: a line of it, and what it becomes.
var holes = [][2]string{
	{"  replicas: 2\n", "  replicas: {{ .Values.replicas }}\n"},
	{
		"        image: pawl:latest\n",
		"        image: {{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag }}{{ end }}\n" +
			"        {{- with .Values.image.pullPolicy }}\n        imagePullPolicy: {{ . }}\n        {{- end }}\n",
	},
	{
		"        - manager\n",
		"        - manager\n        {{- range .Values.namespaces }}\n        - --namespace={{ . }}\n        {{- end }}\n" +
			"        {{- range .Values.args }}\n        - {{ . | quote }}\n        {{- end }}\n",
	},
	{
		"        resources:\n          limits:\n            memory: 1Gi\n          requests:\n            cpu: 50m\n            memory: 128Mi\n",
		"        resources:\n          {{- toYaml .Values.resources | nindent 10 }}\n",
	},
	{
		"      serviceAccountName: pawl\n",
		"      serviceAccountName: pawl\n      {{- range $key, $value := .Values.pod }}\n      {{ $key }}:\n" +
			"        {{- toYaml $value | nindent 8 }}\n      {{- end }}\n",
	},
}

func deployment(text string) (string, error) {
	for _, hole := range holes {
		if strings.Count(text, hole[0]) != 1 {
			return "", fmt.Errorf("config/manager/deployment.yaml: there should be one place like this, to make a hole for a value of the chart:\n%s", hole[0])
		}
		text = strings.Replace(text, hole[0], hole[1], 1)
	}
	return text, nil
}

// withRoles is the schema of the values with the names of the roles that may be withheld.
func withRoles(file string, names []string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the schema of the values: %w", err)
	}
	quoted, err := json.Marshal(names)
	if err != nil {
		return "", fmt.Errorf("write the names of the roles: %w", err)
	}
	before, rest, found := strings.Cut(string(text), `"enum": [`+"\"pawl-")
	_, after, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return "", fmt.Errorf("%s: there is no list of roles", file)
	}
	return before + `"enum": ` + strings.ReplaceAll(string(quoted), ",", ", ") + after, nil
}
