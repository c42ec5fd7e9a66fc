package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whoever may administer a namespace, and no more, tries what SECURITY.md says comes to nothing.
func TestS16Escalations(t *testing.T) {
	t.Parallel()
	tellOne(t, "s16-escalations", appsv1.OrderedReadyPodManagement, true, settings{}, func(s *story) {
		s.create("1")
		forger := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: pawlAccount, Namespace: s.namespace}}
		admins := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "admins", Namespace: s.namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: "User", Name: "mallory"},
				{Kind: rbacv1.ServiceAccountKind, Name: forger.Name, Namespace: forger.Namespace},
			},
		}
		for _, o := range []client.Object{forger, admins} {
			s.Expect(lab.admin.Create(s.t.Context(), o)).To(Succeed())
		}
		mallory := func(args ...string) string { return s.kubectl(append(args, "--as=mallory")...) }
		s.Eventually(func() string { return mallory("get", "rp", name) }, patience).Should(ContainSubstring("Done"), "view is aggregated")

		release := []string{"patch", "sts", name, "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`}
		for _, who := range []string{"mallory", "system:serviceaccount:" + s.namespace + ":" + pawlAccount} {
			s.Expect(s.kubectl(append(release, "--as="+who)...)).To(ContainSubstring("statefulset.apps/db patched"), who)
			s.Expect(partition(s.set())).To(BeEquivalentTo(parked), "%s: it is put back", who)
		}
		mallory("annotate", "--overwrite", "sts", name, "pawl.dev/changed-by=bob")
		s.Expect(s.set().Annotations).To(HaveKeyWithValue("pawl.dev/changed-by", "alice"), "a forged name is put back")

		refused := func(words string, args ...string) {
			s.t.Helper()
			s.Expect(mallory(args...)).To(And(ContainSubstring("Forbidden"), ContainSubstring(words)), "%v", args)
		}
		s.Expect(mallory("patch", "rp", name, "--type=merge", "-p", `{"spec":{"force":{"revision":"`+s.good+`","partition":0,"reason":"because"}}}`)).
			To(ContainSubstring("mallory may not force a rollout"))
		refused("rolloutprogresses/status", "patch", "rp", name, "--subresource=status", "--type=merge", "-p", `{"status":{"reason":"Fine"}}`)
		record := s.records()[0].Name
		refused("cannot delete", "delete", "rrec", record)
		refused("cannot patch", "patch", "rrec", record, "--type=merge", "-p", `{"statefulSet":"other"}`)
		refused("pods/status", "patch", "pod", podName(0), "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Failed"}}`)
		for _, question := range [][]string{
			{"impersonate", "serviceaccounts/pawl", "-n", pawlNamespace}, {"create", "pods", "-n", pawlNamespace},
			{"create", "serviceaccounts/pawl", "--subresource=token", "-n", pawlNamespace},
			{"update", "mutatingadmissionpolicies"}, {"create", "rolloutrecords.pawl.dev"}, {"force", "rolloutprogresses.pawl.dev"},
			{"create", "rolloutpolicies.pawl.dev"}, {"patch", "rolloutpolicies.pawl.dev"},
		} {
			s.Expect(mallory(append([]string{"auth", "can-i"}, question...)...)).To(MatchRegexp(`(?m)^no\b`), "%v", question)
		}
		for _, question := range [][]string{{"list", "secrets"}, {"create", "pods"}, {"create", "pods/exec"}, {"impersonate", "users"}} {
			asked := append([]string{"auth", "can-i", "--as=" + pawlUser, "-n", s.namespace}, question...)
			s.Expect(s.kubectl(asked...)).To(MatchRegexp(`(?m)^no\b`), "Pawl itself lends nobody %v", question)
		}
		s.Consistently(func() int32 { return partition(s.set()) }, 2*time.Second, 200*time.Millisecond).Should(BeEquivalentTo(parked))

		s.Expect(mallory("patch", "rp", name, "--type=merge", "-p", `{"spec":{"paused":true}}`)).To(ContainSubstring("patched"), "admin may steer")
		s.Expect(s.progress().Annotations).To(HaveKeyWithValue("pawl.dev/paused-by", "mallory"), "in their own name")
	})
}
