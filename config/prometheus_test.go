package config

import (
	"flag"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

//go:generate go test . -run TestPrometheusRule -docs

var writeDocs = flag.Bool("docs", false, "write the generated manifests")

// TestPrometheusRule holds the PrometheusRule of the operator against the rule file that it is made of.
func TestPrometheusRule(t *testing.T) {
	g := NewWithT(t)
	rules, err := os.ReadFile("prometheus/rules.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var spec map[string]any
	g.Expect(yaml.Unmarshal(rules, &spec)).To(Succeed())
	made, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "spec": spec,
		"metadata": map[string]any{
			"name": "pawl", "namespace": "pawl-system", "labels": map[string]any{"app.kubernetes.io/name": "pawl"},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	want := "# Made of rules.yaml by make generate.\n" + string(made)
	const file = "prometheus/prometheusrule.yaml"
	if *writeDocs {
		g.Expect(os.WriteFile(file, []byte(want), 0o644)).To(Succeed())
		return
	}
	have, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(have)).To(Equal(want), "run make generate")
}
