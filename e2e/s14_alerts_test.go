package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// S14: the alert on Blocked fires. A real Prometheus scrapes the manager over its authenticated endpoint and evaluates
// the rules as they are shipped; a real Alertmanager, where there is one, delivers.

// A bad image is pending, then firing, then delivered with pod, reason and runbook. The revert resolves it.
func TestS14Blocked(t *testing.T) {
	tell(t, "s14-blocked", func(s *story) {
		w := s.monitored()
		began := time.Now()
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{Gates: []pawlv1alpha1.Gate{{Name: "running", Expression: "pods.all(p, p.status.phase == 'Running')", Bypass: pawlv1alpha1.BypassWhenPodDown}}})
		s.create("1", s.governed)
		s.setImage("2")
		s.waitFor("a good rollout", rolloutDone(2))
		w.waitForAnswer("rate(pawl_step_duration_seconds_count[1m]) > 0")
		shown := map[string]int{}
		w.asks(shown)
		s.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, podName(2)))
		w.waitForAlert("RolloutBlocked", "pending")
		w.waitForAlert("RolloutBlocked", "firing")
		page := w.waitForPage("RolloutBlocked", "firing")
		s.Expect(page.Labels).To(And(
			HaveKeyWithValue("namespace", s.namespace), HaveKeyWithValue("statefulset", name), HaveKeyWithValue("pod", podName(2)),
			HaveKeyWithValue("severity", "critical"), HaveKeyWithValue("reason", BeElementOf(strings.Fields(pullReasons))),
		))
		s.Expect(page.Annotations).To(HaveKeyWithValue("runbook_url", HaveSuffix("/docs/runbooks/"+page.Labels["reason"]+".md")))
		s.Expect(page.Annotations).To(HaveKeyWithValue("summary", ContainSubstring(page.Labels["reason"]+" ("+podName(2)+")")))

		w.asks(shown)
		blocked := time.Now()

		s.follows(page.Labels["reason"])
		s.waitFor("the rollback", done("RolledBack"))
		w.waitForPage("RolloutBlocked", "resolved")
		w.asks(shown)
		for query, points := range shown {
			s.Expect(points).To(BeNumerically(">", 0), "no data for a query of the dashboard or of docs/observability.md: %s", query)
		}
		for _, counted := range s.countedInS14() {
			w.waitForAnswer(counted + " > 0")
		}
		if file := os.Getenv("PICTURE"); file != "" {
			time.Sleep(15 * time.Second) // the end is in the picture too
			w.picture(file, began, blocked, time.Now())
		}
	})
}

// countedInS14 is what has happened by the end of TestS14Blocked: series that are there from the start are no proof that
// anything is counted.
func (s *story) countedInS14() []string {
	counted := []string{
		`pawl_step_duration_seconds_sum`,
		`pawl_rollout_duration_seconds_sum{outcome="Completed"}`,
		`pawl_rollout_duration_seconds_sum{outcome="RolledBack"}`,
		`pawl_blocked_seconds_total`,
		`pawl_transitions_total{type="RolloutStarted"}`,
		`pawl_transitions_total{type="Blocked"}`,
		`pawl_transitions_total{type="StepCompleted"}`,
		`pawl_gate_results_total{gate="running", result="Open"}`,
		`pawl_write_duration_seconds_sum{write="record", result="ok"}`,
		`pawl_write_duration_seconds_sum{write="act", result="ok"}`,
		`pawl_write_duration_seconds_sum{write="seal", result="ok"}`,
	}
	if s.policy == appsv1.OrderedReadyPodManagement { // else Kubernetes may replace the broken pod by itself
		counted = append(counted, `pawl_pods_replaced_total`, `pawl_gate_results_total{gate="running", result="Bypassed"}`)
	}
	return counted
}

// A rollout that a person paused is no alarm, however long: kubernetes-mixin is muted, and nobody is paged.
func TestS14Paused(t *testing.T) {
	tell(t, "s14-paused", func(s *story) {
		w := s.monitored()
		s.create("1")
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		w.waitForAlert("RolloutInHand", "firing")
		if w.alertmanager != "" {
			state := func(alert string) func() string { return func() string { return w.atAlertmanager(alert) } }
			s.Eventually(state("RolloutInHand"), patience, tick).Should(Equal("active"), "waiting for Alertmanager to know")
			for _, misfire := range []string{"KubeStatefulSetUpdateNotRolledOut", "KubeStatefulSetReplicasMismatch"} {
				w.post(misfire, "warning")
				s.Eventually(state(misfire), patience, tick).Should(Equal("suppressed"), "waiting for %s of kubernetes-mixin to be muted", misfire)
			}
			w.post("RolloutBlocked", "critical")
			w.post("GateErrors", "warning")
			s.Eventually(state("GateErrors"), patience, tick).Should(Equal("suppressed"), "waiting for the warning beside a page to be muted")
			time.Sleep(5 * time.Second) // longer than group_wait: what was paged before Alertmanager muted it has come by now
			w.forget()
		}
		time.Sleep(75 * time.Second) // longer than the first page takes
		s.Expect(w.pages()).To(BeEmpty())
		s.Expect(w.query(`count(ALERTS{severity!="none"})`)).To(BeEmpty())
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(2))
		w.waitForAlert("RolloutInHand", "")
	})
}

// Who may not, reads nothing: the endpoint asks the API server who is asking.
func TestS14MetricsAreNotForEverybody(t *testing.T) {
	tellWithAdmission(t, "s14-metrics-authn", func(s *story) {
		w := s.monitored()
		s.create("1")
		s.Expect(w.scrape("")).To(Equal(401), "nobody")
		s.Expect(w.scrape("not-a-token")).To(Equal(500), "somebody that the API server does not know: its answer is an error, which controller-runtime hands on")
		stranger, err := bearer(t.Context(), lab.clients, s.stranger())
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(w.scrape(stranger)).To(Equal(403), "a service account without the role")
		s.Expect(w.scrape(w.token)).To(Equal(200))
	})
}

// The rules are well-formed, and each alert fires when it should, not in the situation next to it, and resolves.
func TestS14Rules(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for _, args := range [][]string{{"check", "rules", "../config/prometheus/rules.yaml"}, {"test", "rules", "../config/prometheus/rules_test.yaml"}} {
		out, err := attempt(t.Context(), "", "../bin/promtool", args...)
		g.Expect(err).NotTo(HaveOccurred(), "it says:\n%s", out)
	}
}

// What docs/observability.md has for the configuration of Prometheus is what this Prometheus reads.
func TestS14ScrapeConfiguration(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	text, err := os.ReadFile("../docs/observability.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(text), "```yaml\nscrape_configs:")
	g.Expect(found).To(BeTrue())
	block, _, _ := strings.Cut(rest, "```")
	file := filepath.Join(t.TempDir(), "prometheus.yaml")
	g.Expect(os.WriteFile(file, []byte("scrape_configs:"+block), 0o600)).To(Succeed())
	out, err := attempt(t.Context(), "", "../bin/promtool", "check", "config", "--syntax-only", file)
	g.Expect(err).NotTo(HaveOccurred(), "it says:\n%s", out)
}

// alert as Prometheus and Alertmanager tell of it.
type alert struct {
	Status      string            `json:"status"`
	State       string            `json:"state"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func decode[T any](data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}
