package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// The environment is not ready, one thing after the other: each is told once, with what to do, and the manager goes on
// by itself when it is mended. On a lab of its own, because it takes the API server away.
func TestBadEnvironment(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c, err := bareCluster(t.Context(), t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	defer c.labCommand("down")
	g.Expect(c.login(t.Context())).To(Succeed())
	const namespace = "default"
	m, err := c.startManager(namespace, 1, settings{})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(m.stop(os.Interrupt)).To(Succeed()) }()

	says := func(what string) {
		t.Helper()
		g.Eventually(m.errors, patience).Should(ContainElement(ContainSubstring(what)), "waiting for the manager to say %q", what)
	}
	// No custom resources, then no rights.
	says("RolloutProgress is not installed")
	g.Expect(c.apply(t.Context(), "../config/crd")).To(Succeed())
	says("Pawl lacks permissions")
	g.Expect(m.errors()).To(ContainElement(And(ContainSubstring("statefulsets"), ContainSubstring("config/rbac"))), "which, and what to do")
	g.Expect(c.apply(t.Context(), "../config/rbac")).To(Succeed())

	// No admission policy: told in the log and with an Event; it is looked for again.
	g.Eventually(func() []string { return m.lines("the admission policy is not in force") }, patience).Should(HaveLen(1), "waiting for the check")
	g.Expect(m.lines("the admission policy is not in force")[0]).To(And(ContainSubstring("pawl-statefulset is not in force"), ContainSubstring("config/admission")))
	g.Eventually(func() string { return run(c.lab.Kubectl, "get", "events", "-n", pawlNamespace) }, patience).
		Should(MatchRegexp(`Warning +AdmissionNotInForce +deployment/pawl`), "an Event where Pawl is installed")
	follows := func(reason, section string) {
		t.Helper()
		for _, script := range runbook(g, reason, section) {
			code, said := c.sh(t.Context(), "..", "set -e\n"+script, time.Minute)
			g.Expect(code).To(BeZero(), "%s\n%s", script, said)
		}
	}
	follows("AdmissionNotInForce", "How to look")
	follows("AdmissionNotInForce", "What to do")
	g.Eventually(func() []string { return m.lines("the admission policy is in force now") }, patience).Should(HaveLen(1), "waiting for another check")

	set := bareSet(namespace, "1")
	g.Expect(c.alice.Create(t.Context(), set)).To(Succeed())
	state := func() string {
		rp := &pawlv1alpha1.RolloutProgress{}
		_ = c.alice.Get(t.Context(), client.ObjectKeyFromObject(set), rp)
		return string(rp.Status.State) + " " + rp.Status.Reason
	}
	g.Eventually(state, patience).Should(Equal("Done Completed"), "waiting for the manager to work")

	// What the runbooks say beside: all that is installed, once more.
	follows("ManagerDown", "What to do")
	g.Expect(c.apply(t.Context(), "../config/manager")).To(Succeed())
	follows("AdmissionNotInForce", "How to make sure")

	// The API server goes away, for longer than a watch lives without it.
	before := len(m.errors())
	t.Log(c.labCommand("stop", "kube-apiserver"))
	time.Sleep(15 * time.Second) // an outage is a length of time
	says("the API server does not answer")
	t.Log(c.labCommand("start", "kube-apiserver"))
	g.Eventually(func() error { return c.alice.Get(t.Context(), client.ObjectKeyFromObject(set), set) }, patience).
		Should(Succeed(), "waiting for the API server")
	for _, other := range []string{"kube-controller-manager", "kube-scheduler"} { // how long they take to recover is not the story
		t.Log(c.labCommand("stop", other), c.labCommand("start", other))
	}
	g.Eventually(func() error {
		if err := c.alice.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Spec.Template.Spec.Containers[0].Image = image("2")
		return c.alice.Update(t.Context(), set)
	}, patience).Should(Succeed(), "waiting for the API server")
	g.Eventually(func() string {
		rp := &pawlv1alpha1.RolloutProgress{}
		_ = c.alice.Get(t.Context(), client.ObjectKeyFromObject(set), rp)
		return rolloutDone(2)(rp.Status)
	}, 2*patience).Should(BeEmpty(), "waiting for the rollout after the outage")
	g.Expect(m.lines("the API server does not answer")).To(HaveLen(1), "once, not with every try")
	g.Expect(m.lines("the API server does not answer")[0]).To(And(ContainSubstring(`"since"`), ContainSubstring(`"remedy"`)))
	g.Expect(m.lines("the API server answers again")).To(HaveLen(1))
	t.Logf("what the manager said of all that:\n%s", strings.Join(m.errors(), "\n"))
	g.Expect(len(m.errors())-before).To(BeNumerically("<=", 12), "no flood of messages:\n%s", strings.Join(m.errors(), "\n"))
}

// bareSet is a StatefulSet of one pod.
func bareSet(namespace, tag string) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"pawl.dev/mode": "Enforce"}},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "mysqld", Image: image(tag), ReadinessProbe: probe()}}},
			},
		},
	}
}
