package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	m, err := c.startManager(namespace, 1, settings{deadline: "30s"})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(m.stop(os.Interrupt)).To(Succeed()) }()

	// What the runbooks say to do, in a checkout.
	runs := func(page string, scripts []string) (printed string) {
		t.Helper()
		for _, script := range scripts {
			code, said := c.sh(t.Context(), "..", "set -eu\n"+script, time.Minute, "NAME="+name, "NAMESPACE="+namespace)
			g.Expect(code).To(BeZero(), "%s: %s\n%s", page, script, said)
			printed += said
		}
		return printed
	}
	follows := func(page string, part int) {
		t.Helper()
		runs(page, runbook(g, page, "What to do")[part:part+1])
	}

	says := func(what string) {
		t.Helper()
		g.Eventually(m.errors, patience).Should(ContainElement(ContainSubstring(what)), "waiting for the manager to say %q", what)
	}
	// No custom resources, then no rights.
	says("RolloutProgress is not installed")
	follows("ManagerDown", 0)
	says("Pawl lacks permissions")
	g.Expect(m.errors()).To(ContainElement(And(ContainSubstring("statefulsets"), ContainSubstring("config/rbac"))), "which, and what to do")
	follows("ManagerDown", 1)

	// No admission policy: told in the log and with an Event; it is looked for again.
	g.Eventually(func() []string { return m.lines("the admission policy is not in force") }, patience).Should(HaveLen(1), "waiting for the check")
	g.Expect(m.lines("the admission policy is not in force")[0]).To(And(ContainSubstring("pawl-statefulset is not in force"), ContainSubstring("config/admission")))
	g.Eventually(func() string { return run(c.lab.Kubectl, "get", "events", "-n", pawlNamespace) }, patience).
		Should(MatchRegexp(`Warning +AdmissionNotInForce +deployment/pawl`), "an Event where Pawl is installed")
	for _, script := range runbook(g, "AdmissionNotInForce", "How to look") {
		for line := range strings.SplitSeq(script, "\n") {
			g.Expect(runs("AdmissionNotInForce", []string{line})).NotTo(BeEmpty(), line)
		}
	}
	follows("AdmissionNotInForce", 0)
	g.Eventually(func() []string { return m.lines("the admission policy is in force now") }, patience).Should(HaveLen(1), "waiting for another check")

	judge := c.judge(g, namespace)
	set := bareSet(namespace, "1")
	g.Expect(c.alice.Create(t.Context(), set)).To(Succeed())
	status := func() status {
		rp := &pawlv1alpha1.RolloutProgress{}
		_ = c.alice.Get(t.Context(), client.ObjectKeyFromObject(set), rp)
		return rp.Status
	}
	state := func() string { return string(status().State) + " " + status().Reason }
	g.Eventually(state, patience).Should(Equal("Done Completed"), "waiting for the manager to work")

	// How to make sure, with the Deployment there that it restarts.
	g.Expect(c.apply(t.Context(), "../config/manager")).To(Succeed())
	runs("AdmissionNotInForce", runbook(g, "AdmissionNotInForce", "How to make sure"))

	// A right is taken away in the middle: the step that is recorded cannot be taken, until the page is followed.
	g.Expect(c.deny(t.Context(), "apps", "statefulsets", "patch")).To(Succeed())
	g.Eventually(func() string {
		return run(c.lab.Kubectl, "auth", "can-i", "patch", "statefulsets", "--as="+pawlUser)
	}, patience).Should(HavePrefix("no"), "waiting for the right to be gone")
	setImage := func(tag string) error {
		if err := c.alice.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Spec.Template.Spec.Containers[0].Image = image(tag)
		return c.alice.Update(t.Context(), set)
	}
	g.Expect(setImage("2")).To(Succeed())
	g.Eventually(state, patience).Should(Equal("Blocked PartitionNotWritten"), "waiting for the deadline")
	follows("PartitionNotWritten", 0)
	done := func(number int64) func() string { return func() string { return rolloutDone(number)(status()) } }
	g.Eventually(done(2), 2*patience).Should(BeEmpty(), "waiting for the rollout")

	judge()

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
	judge = c.judge(g, namespace)
	g.Eventually(func() error { return setImage("3") }, patience).Should(Succeed(), "waiting for the API server")
	g.Eventually(done(3), 2*patience).Should(BeEmpty(), "waiting for the rollout after the outage")
	judge()
	g.Expect(m.lines("the API server does not answer")).To(HaveLen(1), "once, not with every try")
	g.Expect(m.lines("the API server does not answer")[0]).To(And(ContainSubstring(`"since"`), ContainSubstring(`"remedy"`)))
	g.Expect(m.lines("the API server answers again")).To(HaveLen(1))
	t.Logf("what the manager said of all that:\n%s", strings.Join(m.errors(), "\n"))
	g.Expect(len(m.errors())-before).To(BeNumerically("<=", 12), "no flood of messages:\n%s", strings.Join(m.errors(), "\n"))
}

// judge begins to watch. What it returns ends that: what Pawl did meanwhile is in its log.
func (c *cluster) judge(g Gomega, namespace string) func() {
	from := time.Now()
	watching, err := observe(c.alice, namespace)
	g.Expect(err).NotTo(HaveOccurred())
	return func() {
		defer watching.end()
		acts := watched{cluster: c, observer: watching, namespace: namespace, log: watching.stored, from: from}.actsAreRecorded(g)
		g.Expect(acts).NotTo(BeZero(), "Pawl did something")
	}
}

// deny takes a verb out of the role of Pawl.
func (c *cluster) deny(ctx context.Context, group, resource, verb string) error {
	role := &rbacv1.ClusterRole{}
	if err := c.admin.Get(ctx, client.ObjectKey{Name: pawlAccount}, role); err != nil {
		return fmt.Errorf("read the role of Pawl: %w", err)
	}
	for i := range role.Rules {
		if rule := &role.Rules[i]; slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
			rule.Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
	}
	if err := c.admin.Update(ctx, role); err != nil {
		return fmt.Errorf("change the role of Pawl: %w", err)
	}
	return nil
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
