package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// config is the folder of the manifests.
const config = "../.."

func TestWhatIsMadeIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	for _, step := range []func(string) (map[string]string, error){bindings, templates} {
		files, err := step(config)
		g.Expect(err).NotTo(HaveOccurred())
		for path, want := range files {
			have, err := os.ReadFile(filepath.Join(config, path))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(have)).To(Equal(want), "run make generate: %s", path)
		}
	}
}

// render is what helm template does.
func render(values string, namespace string) ([]object, error) {
	chart, err := loader.LoadDir(filepath.Join(config, "chart"))
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "pawl", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for _, document := range documents([]byte(files[file])) {
			var o object
			if err := yaml.Unmarshal(document, &o); err != nil {
				return nil, err
			}
			if o != nil {
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

func rendered(t *testing.T, values string) []object {
	t.Helper()
	objects, err := render(values, "pawl-system")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return objects
}

// byName are objects by what they are, for a difference that can be read.
func byName(objects []object) map[string]object {
	named := map[string]object{}
	for _, o := range objects {
		named[o.kind()+" "+o.text("metadata", "namespace")+"/"+o.name()] = o
	}
	return named
}

// The chart is what kustomize makes of a folder, but for the namespace, which Helm makes.
func TestTheChartIsWhatKustomizeMakes(t *testing.T) {
	for folder, values := range map[string]string{
		"default":             "crds: {keep: false}",
		"overlays/namespaced": "{crds: {keep: false}, namespaces: [databases]}",
	} {
		t.Run(folder, func(t *testing.T) {
			g := NewWithT(t)
			built, err := build(filepath.Join(config, folder))
			g.Expect(err).NotTo(HaveOccurred())
			want := byName(slices.DeleteFunc(built, func(o object) bool { return o.kind() == "Namespace" }))
			have := byName(rendered(t, values))
			g.Expect(slices.Sorted(maps.Keys(have))).To(Equal(slices.Sorted(maps.Keys(want))))
			for name := range want {
				wanted, err := yaml.Marshal(want[name])
				g.Expect(err).NotTo(HaveOccurred())
				got, err := yaml.Marshal(have[name])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(got)).To(Equal(string(wanted)), name)
			}
		})
	}
}

// Custom resources stay when the release goes, unless one says otherwise.
func TestTheHistoryIsKept(t *testing.T) {
	g := NewWithT(t)
	crds := 0
	for _, o := range rendered(t, "") {
		if o.kind() == "CustomResourceDefinition" {
			crds++
			g.Expect(o.text("metadata", "annotations", "helm.sh/resource-policy")).To(Equal("keep"), o.name())
		}
	}
	g.Expect(crds).To(BeNumerically(">=", 2))
	for _, o := range rendered(t, "crds: {install: false}") {
		g.Expect(o.kind()).NotTo(Equal("CustomResourceDefinition"))
	}
}

// A role that is withheld is not there, and nothing binds it; all others are as before.
func TestEveryPowerCanBeWithheld(t *testing.T) {
	g := NewWithT(t)
	all, err := roles(config)
	g.Expect(err).NotTo(HaveOccurred())
	whole := byName(rendered(t, ""))
	for _, r := range all {
		name := r.Metadata.Name
		if name == needed {
			continue
		}
		less := byName(rendered(t, "withhold: ["+name+"]"))
		for key := range whole {
			_, there := less[key]
			g.Expect(there).To(Equal(!strings.HasSuffix(key, "/"+name)), "%s without %s", key, name)
		}
	}
	g.Expect(rendered(t, "admission: false")).NotTo(ContainElement(HaveKeyWithValue("kind", HaveSuffix("AdmissionPolicy"))))
}

func TestValuesReachTheDeployment(t *testing.T) {
	g := NewWithT(t)
	deployment := byName(rendered(t, `
image: {repository: registry.example/pawl, digest: "sha256:`+strings.Repeat("a", 64)+`", pullPolicy: Always}
replicas: 1
namespaces: [a, b]
args: ["--stall-grace=1m"]
resources: {limits: {memory: 2Gi}}
pod: {nodeSelector: {disk: ssd}, priorityClassName: system-cluster-critical, imagePullSecrets: [{name: registry}]}
`))["Deployment pawl-system/pawl"]
	text, err := yaml.Marshal(deployment)
	g.Expect(err).NotTo(HaveOccurred())
	for _, want := range []string{
		"replicas: 1\n", "image: registry.example/pawl@sha256:aaaa", "imagePullPolicy: Always\n",
		"- --namespace=a\n", "- --namespace=b\n", "- --stall-grace=1m\n", "memory: 2Gi\n",
		"nodeSelector:\n        disk: ssd\n", "priorityClassName: system-cluster-critical\n", "imagePullSecrets:\n      - name: registry\n",
	} {
		g.Expect(string(text)).To(ContainSubstring(want))
	}
	g.Expect(byName(rendered(t, "replicas: 1"))).NotTo(HaveKey("PodDisruptionBudget pawl-system/pawl"), "it would hang every drain")
}

// In some namespaces only, Pawl writes nothing outside of them but reviews, and its own lease and Events.
func TestInSomeNamespacesNothingIsWrittenElsewhere(t *testing.T) {
	g := NewWithT(t)
	objects := byName(rendered(t, "namespaces: [databases]"))
	for key, o := range objects {
		if o.kind() != "ClusterRoleBinding" {
			continue
		}
		rules, _ := objects["ClusterRole /"+o.text("roleRef", "name")]["rules"].([]any)
		g.Expect(rules).NotTo(BeEmpty(), key)
		for _, rule := range rules {
			r, _ := rule.(map[string]any)
			if slices.Contains([]string{"authentication.k8s.io", "authorization.k8s.io"}, r["apiGroups"].([]any)[0].(string)) {
				continue
			}
			g.Expect(r["verbs"]).To(HaveEach(BeElementOf("get", "list", "watch")), key)
		}
	}
}

func TestTheSchemaRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"replicas: 0":                  "minimum",
		"replicas: many":               "replicas",
		"image: {tag: 'a b'}":          "tag",
		"image: {digest: latest}":      "digest",
		"namespaces: [a/b]":            "namespaces",
		"withhold: [pawl]":             "withhold",
		"arguments: []":                "arguments",
		"args: [manager]":              "args",
		"pod: {hostNetwork: true}":     "hostNetwork",
		"crds: {keep: sometimes}":      "keep",
		"admission: {enabled: true}":   "admission",
		"image: {pullPolicy: Perhaps}": "pullPolicy",
	} {
		_, err := render(values, "pawl-system")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), values)
	}
}

func TestAnotherNamespaceIsRefused(t *testing.T) {
	_, err := render("", "default")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--namespace pawl-system")))
}

// A rule about nodes in a role about pods could be bound in no namespace: that is an error, and not a role that is too wide.
func TestARoleIsOfOneScope(t *testing.T) {
	g := NewWithT(t)
	var r role
	g.Expect(yaml.Unmarshal([]byte("metadata: {name: both}\nrules: [{resources: [nodes]}, {resources: [pods]}]"), &r)).To(Succeed())
	_, err := r.clusterWide(clusterScoped)
	g.Expect(err).To(MatchError(ContainSubstring("[nodes] are in no namespace, but [pods] are")))
}
