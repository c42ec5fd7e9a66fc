package gate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// The examples and the policy for MOCO answer as they should of objects as the operators publish them.
func TestExamples(t *testing.T) {
	const phase, conditions, pods, moco = "samples/policies/phase.yaml", "samples/policies/conditions.yaml", "samples/policies/pods.yaml", "overlays/moco/policy.yaml"
	for _, c := range []struct {
		name, policy, owner string
		roles               string   // of the pods
		says                []string // for each gate: what it says while it is closed, or nothing
	}{
		{"healthy", phase, `{"spec":{"instances":3},"status":{"phase":"Cluster in healthy state","readyInstances":3,"currentPrimary":"db-1","targetPrimary":"db-1"}}`, "",
			[]string{"", ""}},
		{"switching over", phase, `{"spec":{"instances":3},"status":{"phase":"Switchover in progress","readyInstances":3,"currentPrimary":"db-1","targetPrimary":"db-2"}}`, "",
			[]string{"phase is Switchover in progress", "3 of 3 instances are ready, primary db-1, to be db-2"}},
		{"no status yet", phase, `{"spec":{"instances":3}}`, "", []string{"phase is not set", "0 of 3 instances are ready, primary unknown, to be unknown"}},
		{"ready", conditions, `{"metadata":{"generation":7},"status":{"observedGeneration":7,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-05-01T10:00:00Z"}]}}`, "",
			[]string{"", ""}},
		{"not ready", conditions, `{"metadata":{"generation":8},"status":{"observedGeneration":7,"conditions":[{"type":"NotReady","status":"True","reason":"Creating"}]}}`, "",
			[]string{"Ready is Unknown", "status is of generation 7 of 8"}},
		{"one primary", pods, "", "primary,replica,replica", []string{""}},
		{"no primary", pods, "", "replica,,replica", []string{"0 pods say that they are the primary"}},
		{"healthy MySQL", moco, `{"metadata":{"name":"test","generation":4},"status":{"reconcileInfo":{"generation":4},"conditions":[{"type":"Healthy","status":"True","message":"the cluster is healthy"}]}}`, "",
			[]string{"", ""}},
		{"MySQL that lags", moco, `{"metadata":{"name":"test","generation":4},"status":{"reconcileInfo":{"generation":3},"conditions":[{"type":"Healthy","status":"False","message":"2 of 3"}]}}`, "",
			[]string{"MOCO has reconciled generation 3 of 4", "Healthy of MySQLCluster test is False, 2 of 3"}},
		{"MySQL without a status", moco, `{"metadata":{"name":"test","generation":1}}`, "",
			[]string{"MOCO has reconciled generation 0 of 1", "Healthy of MySQLCluster test is Unknown"}},
	} {
		t.Run(c.policy+"/"+c.name, func(t *testing.T) {
			g := NewWithT(t)
			p := Compile(example(g, c.policy).Spec.Gates)
			g.Expect(p.Err()).NotTo(HaveOccurred())
			var in Input
			if c.owner != "" {
				in.Owner = decode(g, c.owner)
			}
			for role := range strings.SplitSeq(c.roles, ",") {
				in.Pods = append(in.Pods, map[string]any{"metadata": map[string]any{"labels": map[string]any{"role": role}}})
			}
			var says []string
			for _, a := range p.Ask(t.Context(), in) {
				g.Expect(a.Verdict).NotTo(Equal(statemachine.GateError), a.Message)
				says = append(says, a.Message)
			}
			g.Expect(says).To(Equal(c.says))
		})
	}
}

// A gate about health is bypassed for a pod that is down: closed because of it, it would keep the revert from replacing it.
// Only whether the operator has looked at the newest generation is asked always.
func TestExamplesLetARevertThrough(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/samples/policies/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(3))
	var always []string
	for _, file := range append(files, "../../config/overlays/moco/policy.yaml") {
		for _, gate := range example(g, strings.TrimPrefix(file, "../../config/")).Spec.Gates {
			if gate.Bypass != v1alpha1.BypassWhenPodDown {
				always = append(always, gate.Name)
			}
		}
	}
	slices.Sort(always)
	g.Expect(always).To(Equal([]string{"reconciled", "up-to-date"}))
}

func example(g Gomega, file string) *v1alpha1.RolloutPolicy {
	text, err := os.ReadFile(filepath.Join("../../config", file))
	g.Expect(err).NotTo(HaveOccurred())
	policy := &v1alpha1.RolloutPolicy{}
	g.Expect(yaml.UnmarshalStrict(text, policy)).To(Succeed())
	return policy
}
