package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// S16: docs/install.md and docs/uninstall.md, followed to the letter on a lab that has never heard of Pawl: from nothing to a
// StatefulSet that is looked after, through an upgrade, and out again. The managers are what the Deployment asks for. The
// version before has the custom resources of an early Pawl, and a history that was written then.
func TestS16Install(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"kubectl", "Helm"} {
		t.Run(how, func(t *testing.T) { // one lab after the other
			p := newcomer(t)
			before := versionBefore(p, t.TempDir())
			p.follows(before, "install.md", "With "+how)
			p.managersRun()
			watching, err := observe(p.alice, "default")
			p.Expect(err).NotTo(HaveOccurred())
			defer watching.end()
			p.follows(before, "install.md", "See that it works")
			p.follows(before, "install.md", "The first StatefulSet")
			p.Expect(p.partition("web")).To(BeEquivalentTo(parked))

			p.Expect(p.runs("..", newField)).To(ContainSubstring("0"), "the custom resources are those of the version before")
			p.remembers()
			upgrade, check := commands(p, "install.md", "Upgrade")[map[string]int{"Helm": 0, "kubectl": 1}[how]], commands(p, "install.md", "Upgrade")[2]
			p.runs("..", upgrade)
			p.managersRun()
			p.Expect(p.runs("..", newField)).To(ContainSubstring("2"), "the custom resources are upgraded")
			p.Expect(p.runs("..", check)).To(ContainSubstring("archive"), "the log of the version before is whole")
			p.Expect(p.runs("..", "kubectl pawl history -n archive db")).To(ContainSubstring("alice"), "and can be read")
			p.runs("..", "kubectl set image statefulset/web web=nginx:1.31 && kubectl pawl wait web --timeout 2m")

			p.leaves(how, watching)
		})
	}
}

// newField counts a field that the version before did not have, in both kinds.
const newField = `kubectl get crd rolloutprogresses.pawl.dev rolloutrecords.pawl.dev -o yaml | grep -c '  priorOrdinals:' || true`

// Pawl is gone without notice: what docs/uninstall.md says to do then brings a template that was parked to every pod.
func TestS16BreakGlass(t *testing.T) {
	tellWithAdmission(t, "s16-break-glass", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.stopManager(syscall.SIGKILL)
		s.setImage("2")
		s.Expect(s.kubectl("patch", "sts", name, "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)).
			To(ContainSubstring("patched"))
		s.Consistently(func() any { return s.uids(0, 1, 2) }, 3*time.Second, 200*time.Millisecond).Should(Equal(kept), "frozen, also against a partition by hand")

		s.runs(commands(s, "uninstall.md", "Pawl is gone")[:2]) // the last takes the policies from all stories
		s.Expect(s.born(0, 1, 2)).To(HaveEach(s.target()), "all pods are at the new revision")
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}), "one after the other")
		s.Expect(s.judge().fewest).To(Equal(2), "never two pods down")
	})
}

// person is somebody who follows a page of the docs on a lab of their own.
type person struct {
	Gomega
	t *testing.T
	*cluster
	managers *deployed
}

func newcomer(t *testing.T) *person {
	p := &person{Gomega: NewWithT(t), t: t}
	c, err := bareCluster(t.Context(), t.TempDir())
	p.Expect(err).NotTo(HaveOccurred())
	p.cluster = c
	t.Cleanup(func() { c.labCommand("down") })
	p.managers, err = c.runDeployed(t.Context())
	p.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		p.Expect(p.managers.end()).To(Succeed())
		for _, m := range p.managers.all {
			if t.Failed() {
				t.Logf("a manager said:\n%s", m.tail())
			}
		}
	})
	return p
}

// runs runs a script as it stands, in a checkout.
func (p *person) runs(checkout, script string, env ...string) string {
	p.t.Helper()
	env = append(env, "KUBECONFIG="+p.lab.Kubeconfig, "HOME="+p.dir)
	code, said := p.sh(p.t.Context(), checkout, "set -e\n"+script, 3*time.Minute, env...)
	p.Expect(code).To(BeZero(), "%s\n%s", script, said)
	p.t.Logf("$ %s\n%s", script, said)
	return said
}

func (p *person) follows(checkout, page, section string, env ...string) (said string) {
	p.t.Helper()
	for _, script := range commands(p, page, section) {
		said += p.runs(checkout, script, env...)
	}
	return said
}

// managersRun waits until as many run as the Deployment asks for, and none that it no longer does.
func (p *person) managersRun() {
	p.t.Helper()
	p.Eventually(func(g Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(p.admin.Get(p.t.Context(), client.ObjectKey{Namespace: pawlNamespace, Name: "pawl"}, d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(d.Status.UpdatedReplicas).To(Equal(*d.Spec.Replicas))
		g.Expect(p.managers.now()).To(BeEquivalentTo(*d.Spec.Replicas))
	}, patience, 200*time.Millisecond).Should(Succeed(), "waiting for the managers")
}

func (p *person) partition(set string) int32 {
	found := &appsv1.StatefulSet{}
	p.Expect(p.alice.Get(p.t.Context(), client.ObjectKey{Namespace: "default", Name: set}, found)).To(Succeed())
	return partition(found)
}

// versionBefore is a checkout with the custom resources of an early version.
func versionBefore(g Gomega, dir string) string {
	g.Expect(os.CopyFS(filepath.Join(dir, "config"), os.DirFS("../config"))).To(Succeed())
	var crds []string
	for _, kind := range []string{"rolloutprogresses", "rolloutrecords"} {
		text, err := os.ReadFile("testdata/before/pawl.dev_" + kind + ".yaml")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(dir, "config/crd/pawl.dev_"+kind+".yaml"), text, 0o600)).To(Succeed())
		crds = append(crds, string(text))
	}
	template := strings.ReplaceAll(strings.Join(crds, ""), "  annotations:\n", "  annotations:\n    helm.sh/resource-policy: keep\n")
	g.Expect(os.WriteFile(filepath.Join(dir, "config/chart/templates/crds.yaml"), []byte(template), 0o600)).To(Succeed())
	return dir
}

// remembers puts a history there that was written by an early version, as the API server had it.
func (p *person) remembers() {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "archive"}}
	p.Expect(p.admin.Create(p.t.Context(), ns)).To(Succeed())
	text, err := os.ReadFile("../cmd/kubectl-pawl/testdata/db.yaml")
	p.Expect(err).NotTo(HaveOccurred())
	list := struct {
		Items []map[string]any `json:"items"`
	}{}
	p.Expect(yaml.Unmarshal(text, &list)).To(Succeed())
	p.Expect(list.Items).NotTo(BeEmpty())
	for _, item := range list.Items {
		o := &unstructured.Unstructured{Object: item}
		o.SetNamespace(ns.Name)
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetOwnerReferences(nil) // the StatefulSet is not there: garbage
		status := o.DeepCopy()
		p.Expect(p.admin.Create(p.t.Context(), o)).To(Succeed())
		if o.GetKind() == "RolloutProgress" {
			p.Eventually(func() error { // Pawl writes too: that it has no StatefulSet
				if err := p.admin.Get(p.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					return err
				}
				status.SetResourceVersion(o.GetResourceVersion())
				return p.admin.Status().Update(p.t.Context(), status)
			}, patience, 100*time.Millisecond).Should(Succeed())
		}
	}
}

// actsAreRecorded: what the managers did by the audit log is in the log of Pawl, as it is in the end: who watches it loses sight
// of it when its definition is upgraded.
func (p *person) actsAreRecorded(watching *observer) {
	p.t.Helper()
	acts := watched{cluster: p.cluster, observer: watching, namespace: "default", log: p.transitions}.actsAreRecorded(p)
	p.Expect(acts).NotTo(BeZero(), "they did something")
}

// leaves follows docs/uninstall.md: one StatefulSet is finished and one in the middle of a rollout. Nothing moves.
func (p *person) leaves(how string, watching *observer) {
	p.t.Helper()
	middle := bareSet("default", "1")
	three := int32(3)
	middle.Spec.Replicas = &three
	p.Expect(p.alice.Create(p.t.Context(), middle)).To(Succeed())
	p.runs("..", `kubectl pawl wait db --timeout 2m
kubectl patch rp db --type=merge -p '{"spec":{"paused":true}}'
kubectl set image statefulset/db mysqld=`+image("2"))
	p.Eventually(func() string { return p.runs("..", "kubectl get rp db -o jsonpath='{.status.reason}'") }, patience, time.Second).Should(Equal("Paused"))
	pods := p.runs("..", "kubectl get pods -o custom-columns=NAME:.metadata.name,UID:.metadata.uid")
	number := map[string]int{"kubectl": 0, "Helm": 1}[how]

	p.runs("..", commands(p, "uninstall.md", "Admission first")[number])
	left := p.follows("..", "uninstall.md", "Hand the StatefulSets back")
	p.Expect(left).To(MatchRegexp(`default +db +2147483647`), "left as it is")
	p.Expect(left).NotTo(MatchRegexp(`default +web +\d`), "its rollout is finished")
	p.Expect(p.partition("web")).To(BeZero())
	p.runs("..", commands(p, "uninstall.md", "The manager and its rights")[number])
	p.Expect(p.runs("..", "kubectl get pods -o custom-columns=NAME:.metadata.name,UID:.metadata.uid")).To(Equal(pods), "no pod moved")
	p.Eventually(p.managers.now, patience).Should(BeZero())
	ns := &corev1.Namespace{}
	p.Expect(apierrors.IsNotFound(p.admin.Get(p.t.Context(), client.ObjectKey{Name: pawlNamespace}, ns))).To(BeTrue(), "nothing hangs")

	p.actsAreRecorded(watching)
	history := commands(p, "uninstall.md", "The history")
	p.runs(p.t.TempDir(), history[0])
	p.follows("..", "uninstall.md", "Pawl is gone", "NAME=db", "NAMESPACE=default")
	p.Expect(p.runs("..", "kubectl get pods -l app=db -o jsonpath='{.items[*].spec.containers[0].image}'")).
		To(Equal(strings.Join([]string{image("2"), image("2"), image("2")}, " ")), "what was left is finished by hand")
	p.runs("..", history[1])
	p.Expect(p.runs("..", "kubectl get crd,clusterrole,clusterrolebinding,mutatingadmissionpolicy,validatingadmissionpolicy -o name | grep pawl || true")).To(BeEmpty(), "nothing is left")
}
