package config

import (
	"flag"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

//go:generate go test . -run TestPrometheusRule -docs

var writeDocs = flag.Bool("docs", false, "write the generated manifests")

// TestAlertsAreExplained holds each alert against the page that it sends people to.
func TestAlertsAreExplained(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("prometheus/rules.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	g.Expect(yaml.Unmarshal(text, &rules)).To(Succeed())
	seen := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			seen++
			g.Expect(rule.Annotations).To(And(HaveKey("summary"), HaveKey("description")), "%s", rule.Alert)
			page, ours := strings.CutPrefix(rule.Annotations["runbook_url"], "https://pawl.dev/pawl/")
			g.Expect(ours).To(BeTrue(), "the runbook_url of %s", rule.Alert)
			// Each reason has a page: statemachine/runbooks_test.go makes them.
			page = strings.ReplaceAll(page, "{{ $labels.reason }}", "NotReady")
			g.Expect("../"+page).To(BeAnExistingFile(), "the runbook_url of %s", rule.Alert)
		}
	}
	g.Expect(seen).To(BeNumerically(">", 8), "they were read")
}

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
