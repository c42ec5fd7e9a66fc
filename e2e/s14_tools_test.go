package e2e

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tools that know no Pawl read its conditions in the words of kstatus, as Flux and others do, and Argo CD by the health
// checks in config/argocd: both are asked about real objects in every state.
func TestS14Tools(t *testing.T) {
	tell(t, "s14-tools", func(s *story) {
		s.create("1")
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
		s.waitFor("the rollout to complete", rolloutDone(4))
		s.toolsSay("Current", "Healthy", "Healthy")
	})
}

var (
	statefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	progressKind    = schema.GroupVersionKind{Group: "pawl.dev", Version: "v1alpha1", Kind: "RolloutProgress"}
)

// toolsSay: what kstatus and Argo CD say of the RolloutProgress, and Argo CD of the StatefulSet.
func (s *story) toolsSay(byKstatus, progress, statefulSet string) {
	s.t.Helper()
	s.Eventually(func() []string {
		return []string{kstatusOf(s, progressKind), s.argo("rolloutprogress", progressKind), s.argo("statefulset", statefulSetKind)}
	}, patience, tick).Should(Equal([]string{byKstatus, progress, statefulSet}), "waiting for what kstatus and Argo CD say")
}

func (s *story) object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, u)).To(Succeed())
	return u
}

func kstatusOf(s *story, kind schema.GroupVersionKind) string {
	result, err := kstatus.Compute(s.object(kind))
	s.Expect(err).NotTo(HaveOccurred())
	return string(result.Status)
}

// argo runs a health check as Argo CD does: the object is the global obj, and a table with status and message comes back.
func (s *story) argo(check string, kind schema.GroupVersionKind) string {
	script, err := os.ReadFile(fmt.Sprintf("../config/argocd/%s.lua", check))
	s.Expect(err).NotTo(HaveOccurred())
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", luaValue(l, s.object(kind).Object))
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
