package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// Tools that know no Pawl read its conditions in the words of kstatus, as Flux and others do, and Argo CD by the health
// checks in config/argocd: both are asked about real objects in every state.
func TestS14Tools(t *testing.T) {
	tell(t, "s14-tools", func(s *story) {
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{CanaryPods: new(int32(1))})
		s.create("1", s.governed)
		s.toolsSay("Current", "Healthy", "Healthy")

		s.setImage("bad")
		s.waitFor("the step", state("Stepping", "", ""))
		s.toolsSay("InProgress", "Progressing", "Progressing")
		s.waitFor("Blocked", state("Blocked", pullReasons, podName(2)))
		s.toolsSay("Failed", "Degraded", "Progressing")
		s.setImage("1")
		s.waitFor("the rollback", done("RolledBack"))
		s.parkedNow()
		s.toolsSay("Current", "Healthy", "Healthy")

		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		s.toolsSay("InProgress", "Suspended", "Progressing")
		s.Expect(kstatusOf(s, statefulSetKind)).To(Equal("Current"), "docs/gitops.md: to kstatus a parked StatefulSet is complete")
		s.pause(false)
		s.waitFor("the canary", state("Waiting", "AwaitingApproval", ""))
		s.toolsSay("InProgress", "Suspended", "Progressing")
		s.approve(s.target())
		s.waitFor("the rollout to complete", rolloutDone(4))
		s.toolsSay("Current", "Healthy", "Healthy")
	})
}

// Of a StatefulSet that is not Pawl's the check of docs/gitops.md says what Argo CD's own says: a partitioned rollout is
// complete when the pods above the partition are updated, and with OnDelete there is nothing to wait for.
func TestS14ToolsWithoutPawl(t *testing.T) {
	tellWithoutAdmission(t, "s14-tools-without", func(s *story) {
		s.create("1")
		for other, c := range map[string]struct {
			strategy appsv1.StatefulSetUpdateStrategy
			updated  int32 // pods, when it is healthy
		}{
			"plain":       {appsv1.StatefulSetUpdateStrategy{}, 3},
			"partitioned": {appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}}, 1},
			"on-delete":   {appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}, 0},
		} {
			s.submit("1", func(set *appsv1.StatefulSet) {
				labels := map[string]string{"app": other}
				set.Name, set.Labels, set.Spec.UpdateStrategy = other, nil, c.strategy
				set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = labels, labels
			})
			healthy := func(g Gomega) {
				set := s.object(statefulSetKind, other)
				g.Expect(set.GetGeneration()).To(Equal(field[int64](set, "status", "observedGeneration")))
				g.Expect(s.argo("statefulset", set)).To(Equal("Healthy"))
			}
			s.Eventually(healthy, patience, tick).Should(Succeed(), "waiting for %s", other)
			s.kubectl("set", "image", "sts/"+other, "mysqld="+image("2"))
			s.Eventually(healthy, patience, tick).Should(Succeed(), "waiting for %s to be updated", other)
			s.Expect(field[int64](s.object(statefulSetKind, other), "status", "updatedReplicas")).To(BeEquivalentTo(c.updated), "%s", other)
		}
	})
}

// field is a number or a text in an object; its zero where there is none.
func field[T any](u *unstructured.Unstructured, path ...string) T {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	v, _ := value.(T)
	return v
}

// The command of docs/gitops.md puts both checks into the configuration of Argo CD, beside what is there.
func TestS14ArgoConfiguration(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const argocd = "argocd"
	g.Expect(lab.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: argocd}})).To(Succeed())
	want := map[string]string{"url": "https://argocd.example.com"}
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: argocd, Name: "argocd-cm"}, Data: maps.Clone(want)}
	g.Expect(lab.admin.Create(t.Context(), configuration)).To(Succeed())
	for _, script := range commands(g, "gitops.md", "Argo CD") {
		code, said := lab.sh(t.Context(), "..", script, time.Minute)
		g.Expect(code).To(BeZero(), "%s\n%s", script, said)
	}
	for kind, check := range map[string]string{"apps_StatefulSet": "statefulset", "pawl.dev_RolloutProgress": "rolloutprogress"} {
		text, err := os.ReadFile("../config/argocd/" + check + ".lua")
		g.Expect(err).NotTo(HaveOccurred())
		want["resource.customizations.health."+kind] = string(text)
	}
	g.Expect(lab.admin.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	g.Expect(configuration.Data).To(Equal(want))
}

// Helm takes a StatefulSet whose partition is parked for updated, by kstatus and by the check that it has from Helm 3: it
// returns at once, and no pod is updated.
func TestS14Helm(t *testing.T) {
	tellWithAdmission(t, "s14-helm", func(s *story) {
		helm := s.chart()
		helm("install", "1", "")
		s.waitFor("the first pods to come up", done("Completed"))
		s.parkedNow()
		s.pause(true)
		for i, wait := range []string{"--wait", "--wait=legacy"} {
			helm("upgrade", strconv.Itoa(i+2), wait)
			set := s.set()
			s.Expect(set.Spec.Template.Spec.Containers[0].Image).To(Equal(image(strconv.Itoa(i+2))), "it was applied")
			s.Expect(set.Status.UpdatedReplicas).To(BeZero(), "it did not wait for a pod with %s", wait)
			s.waitFor("the hold", state("Waiting", "Paused", ""))
		}
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(3))
	})
}

// chart makes a chart of the StatefulSet of the story; what it returns installs or upgrades its release with an image.
func (s *story) chart() func(command, tag, wait string) {
	dir := s.t.TempDir()
	set := s.written("{{ .Values.tag }}")
	set.SetGroupVersionKind(statefulSetKind)
	template, err := yaml.Marshal(set)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(os.Mkdir(filepath.Join(dir, "templates"), 0o700)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(dir, "templates", "db.yaml"), template, 0o600)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte("apiVersion: v2\nname: db\nversion: 1.0.0\n"), 0o600)).To(Succeed())
	return func(command, tag, wait string) {
		script := fmt.Sprintf("helm %s db . -n %s --set-string tag=%s %s --timeout 30s", command, s.namespace, tag, wait)
		code, said := lab.sh(s.t.Context(), dir, script, time.Minute, "KUBECONFIG="+lab.lab.Kubeconfigs["alice"], "HOME="+dir)
		s.Expect(code).To(BeZero(), "%s (make helm first)\n%s", script, said)
	}
}

var (
	statefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	progressKind    = schema.GroupVersionKind{Group: "pawl.dev", Version: "v1alpha1", Kind: "RolloutProgress"}
)

// toolsSay: what kstatus and Argo CD say of the RolloutProgress, and Argo CD of the StatefulSet.
func (s *story) toolsSay(byKstatus, progress, statefulSet string) {
	s.t.Helper()
	s.Eventually(func() []string {
		return []string{kstatusOf(s, progressKind), s.argo("rolloutprogress", s.object(progressKind, name)), s.argo("statefulset", s.object(statefulSetKind, name))}
	}, patience, tick).Should(Equal([]string{byKstatus, progress, statefulSet}), "waiting for what kstatus and Argo CD say")
}

func (s *story) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, u)).To(Succeed())
	return u
}

func kstatusOf(s *story, kind schema.GroupVersionKind) string {
	result, err := kstatus.Compute(s.object(kind, name))
	s.Expect(err).NotTo(HaveOccurred())
	return string(result.Status)
}

// argo runs a health check as Argo CD does: the object is the global obj, and a table with status and message comes back.
func (s *story) argo(check string, object *unstructured.Unstructured) string {
	script, err := os.ReadFile(fmt.Sprintf("../config/argocd/%s.lua", check))
	s.Expect(err).NotTo(HaveOccurred())
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", luaValue(l, object.Object))
	s.Expect(l.DoString(string(script))).To(Succeed())
	answer, is := l.Get(-1).(*lua.LTable)
	s.Expect(is).To(BeTrue(), "%s.lua returns %v", check, l.Get(-1))
	s.Expect(answer.RawGetString("message").String()).NotTo(BeEmpty())
	return answer.RawGetString("status").String()
}

func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	default:
		return lua.LNil
	}
}
