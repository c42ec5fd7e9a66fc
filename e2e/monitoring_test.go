package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// monitoring is what looks at the manager of one story: Prometheus, Alertmanager if this machine has one, and who is paged.
type monitoring struct {
	*story
	prometheus   string // address of its API
	alertmanager string // likewise; empty if there is none
	token        string // of who scrapes

	mutex     sync.Mutex
	delivered []alert
}

// monitored starts the manager of the story again with its metrics endpoint, and all that looks at it.
func (s *story) monitored() *monitoring {
	w := &monitoring{story: s, prometheus: freeAddress(s)}
	s.Expect(reader()).To(Succeed())
	var err error
	w.token, err = bearer(s.t.Context(), lab.clients, scraperAccount)
	s.Expect(err).NotTo(HaveOccurred())
	s.stopManager(syscall.SIGTERM)
	s.metrics = freeAddress(s)
	s.startManager()
	s.Eventually(func() int { return w.scrape(w.token) }, patience, tick).Should(Equal(200), "waiting for the metrics of the manager")

	receiver := httptest.NewServer(http.HandlerFunc(w.receive))
	s.t.Cleanup(receiver.Close)
	dir := s.t.TempDir()
	w.start("prometheus", filepath.Join(lab.bin, "prometheus"), "--config.file", w.writePrometheus(dir, w.startAlertmanager(dir, receiver.URL)),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", w.prometheus, "--log.level", "warn")
	s.Eventually(func() ([]sample, error) { return w.ask(`up{job="pawl"} == 1`) }, patience, 200*time.Millisecond).Should(HaveLen(1), "waiting for Prometheus to scrape")
	return w
}

const scraperAccount = "prometheus"

// reader gives the scraper the role that is shipped for it.
var reader = sync.OnceValue(func() error {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: scraperAccount, Namespace: pawlNamespace}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: scraperAccount},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pawl-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: scraperAccount, Namespace: pawlNamespace}},
		},
	} {
		if err := lab.admin.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s: %w", o.GetName(), err)
		}
	}
	return nil
})

// stranger makes a service account that may do nothing.
func (s *story) stranger() string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Namespace: pawlNamespace}}
	s.Expect(lab.admin.Create(s.t.Context(), account)).To(Succeed())
	return account.Name
}

func freeAddress(s *story) string {
	address, err := free()
	s.Expect(err).NotTo(HaveOccurred())
	return address
}

// start runs a program until the story ends.
func (w *monitoring) start(what, program string, args ...string) {
	log, err := os.Create(filepath.Join(lab.dir, w.namespace+"-"+what+".log"))
	w.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nothing outlives the stories
	w.Expect(cmd.Start()).To(Succeed(), "start %s (make prometheus first)", what)
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && w.t.Failed() {
			w.t.Logf("%s says:\n%s", what, text)
		}
		_ = log.Close()
	})
}

// writePrometheus writes a configuration around the rules that are shipped.
func (w *monitoring) writePrometheus(dir, alertmanager string) string {
	rules, err := filepath.Abs("../config/prometheus/rules.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	return w.writeJSON(dir, "prometheus.yaml", map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "pawl", "scheme": "https", "tls_config": map[string]any{"insecure_skip_verify": true},
			"authorization": map[string]any{"credentials": w.token}, "honor_labels": true,
			// As the Prometheus operator labels what it scrapes: what Pawl says of a pod must not be taken for the manager's.
			"static_configs": []any{map[string]any{"targets": []string{w.metrics}, "labels": map[string]string{"namespace": pawlNamespace, "pod": "pawl-0"}}},
		}},
		"alerting": map[string]any{"alertmanagers": []any{map[string]any{"static_configs": targets(alertmanager)}}},
	})
}

func targets(address string) []any { return []any{map[string]any{"targets": []string{address}}} }

// writeJSON writes a configuration; JSON is YAML as well.
func (w *monitoring) writeJSON(dir, file string, content any) string {
	path := filepath.Join(dir, file)
	data, err := json.Marshal(content)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
	return path
}

// startAlertmanager runs the Debian package's Alertmanager with the configuration that is shipped, and has it page the
// receiver. Without it on this machine Prometheus delivers to the receiver itself, which speaks the same API.
func (w *monitoring) startAlertmanager(dir, receiver string) (address string) {
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		w.t.Log("there is no prometheus-alertmanager on this machine: Prometheus delivers to a receiver of the story's own")
		return strings.TrimPrefix(receiver, "http://")
	}
	text, err := os.ReadFile("../config/prometheus/alertmanager.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	var config map[string]any
	w.Expect(yaml.Unmarshal(text, &config)).To(Succeed())
	maps.Copy(config["route"].(map[string]any), map[string]any{"group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"})
	for _, r := range config["receivers"].([]any) {
		if r := r.(map[string]any); r["name"] == "on-call" {
			r["webhook_configs"] = []any{map[string]any{"url": receiver + "/page", "send_resolved": true}}
		}
	}
	w.alertmanager = freeAddress(w.story)
	w.start("alertmanager", program, "--config.file", w.writeJSON(dir, "alertmanager.yaml", config), "--storage.path", filepath.Join(dir, "alertmanager"),
		"--web.listen-address", w.alertmanager, "--cluster.listen-address", "", "--log.level", "warn")
	return w.alertmanager
}

// post sends an alert to Alertmanager as Prometheus does.
func (w *monitoring) post(name, severity string) {
	posted, err := json.Marshal([]map[string]any{{"labels": map[string]string{
		"alertname": name, "namespace": w.namespace, "statefulset": "db", "severity": severity,
	}}})
	w.Expect(err).NotTo(HaveOccurred())
	response, err := http.Post("http://"+w.alertmanager+"/api/v2/alerts", "application/json", bytes.NewReader(posted))
	w.Expect(err).NotTo(HaveOccurred())
	_ = response.Body.Close()
}

// atAlertmanager is what it makes of an alert: active, suppressed, or nothing if it has none of this name.
func (w *monitoring) atAlertmanager(name string) string {
	response, err := http.Get("http://" + w.alertmanager + "/api/v2/alerts?filter=alertname=" + name)
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	w.Expect(err).NotTo(HaveOccurred())
	alerts, err := decode[[]struct{ Status struct{ State string } }](body)
	w.Expect(err).NotTo(HaveOccurred(), "%s", body)
	if len(alerts) == 0 {
		return ""
	}
	return alerts[0].Status.State
}

// receive is a webhook of Alertmanager, or the v2 API of one to Prometheus.
func (w *monitoring) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	var got []alert
	if r.URL.Path == "/page" {
		message, _ := decode[struct{ Alerts []alert }](body)
		got = message.Alerts
	} else {
		posted, _ := decode[[]struct {
			alert
			EndsAt time.Time `json:"endsAt"`
		}](body)
		for _, p := range posted {
			if p.Status = "firing"; !p.EndsAt.After(time.Now()) {
				p.Status = "resolved"
			}
			got = append(got, p.alert)
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, a := range got {
		if a.Labels["alertname"] != "RolloutInHand" { // goes to nobody
			w.delivered = append(w.delivered, a)
		}
	}
}

func (w *monitoring) pages() []alert {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]alert(nil), w.delivered...)
}

func (w *monitoring) forget() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.delivered = nil
}

// waitForPage waits until an alert is delivered.
func (w *monitoring) waitForPage(name, status string) (page alert) {
	w.t.Helper()
	w.Eventually(func() bool {
		for _, a := range w.pages() {
			if a.Labels["alertname"] == name && a.Status == status {
				page = a
				return true
			}
		}
		return false
	}, 2*patience, 200*time.Millisecond).Should(BeTrue(), "waiting for a page: %s %s; delivered: %v", name, status, w.pages())
	return page
}

// waitForAlert waits until Prometheus has an alert in this state; empty is none, and that Prometheus says so.
func (w *monitoring) waitForAlert(name, state string) {
	w.t.Helper()
	w.Eventually(func() (string, error) {
		found, err := w.ask(fmt.Sprintf("ALERTS{alertname=%q}", name))
		if err != nil || len(found) == 0 {
			return "", err
		}
		return found[0].Metric["alertstate"], nil
	}, 2*patience, 200*time.Millisecond).Should(Equal(state), "waiting for %s to be %s", name, state)
}

// sample is one series of an answer of Prometheus.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// query asks Prometheus, which has to answer.
func (w *monitoring) query(expression string) []sample {
	w.t.Helper()
	found, err := w.ask(expression)
	w.Expect(err).NotTo(HaveOccurred())
	return found
}

// ask asks Prometheus; no answer is not the same as an answer that has nothing in it.
func (w *monitoring) ask(expression string) ([]sample, error) {
	response, err := http.Get("http://" + w.prometheus + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer of Prometheus: %w", err)
	}
	answer, err := decode[struct {
		Status string
		Data   struct{ Result []sample }
	}](body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", expression, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("query %s: %s: %s", expression, response.Status, body)
	}
	return answer.Data.Result, nil
}

// scrape reads the metrics of the manager with a token and returns the status code; 0 is no answer.
func (w *monitoring) scrape(token string) int {
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://"+w.metrics+"/metrics", nil)
	w.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager of the story made its certificate itself.
	insecure := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := insecure.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// metricsAt are those of a manager that shows them to everybody.
func metricsAt(address string) (string, error) {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return "", fmt.Errorf("ask for the metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read the metrics: %w", err)
	}
	return string(text), nil
}

// waitForAnswer waits until Prometheus has data for an expression.
func (w *monitoring) waitForAnswer(expression string) {
	w.t.Helper()
	w.Eventually(func() ([]sample, error) { return w.ask(expression) }, patience, tick).ShouldNot(BeEmpty(), "waiting for %s", expression)
}

// asks asks every query of the dashboard and of docs/observability.md, and adds up how much came back: what is not a
// number says nothing.
func (w *monitoring) asks(found map[string]int) {
	queries := documentedQueries(w.story)
	for _, p := range panels(w) {
		for _, t := range p.Targets {
			queries[p.Title] = append(queries[p.Title], t.Expr)
		}
	}
	w.Expect(len(queries)).To(BeNumerically(">", 10), "both were read")
	for where, list := range queries {
		for _, query := range list {
			data := slices.DeleteFunc(w.query(spelled(query)), func(s sample) bool { return s.Value[1] == "NaN" })
			found[where+": "+query] += len(data)
		}
	}
}

// documentedQueries are the examples in docs/observability.md, by what they are said to tell.
func documentedQueries(s *story) map[string][]string {
	text, err := os.ReadFile("../docs/observability.md")
	s.Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(text), "```promql\n")
	s.Expect(found).To(BeTrue())
	block, _, _ := strings.Cut(rest, "```")
	queries, what := map[string][]string{}, ""
	for line := range strings.Lines(block) {
		if comment, is := strings.CutPrefix(line, "# "); is {
			what = strings.TrimSpace(comment)
		} else {
			queries[what] = append(queries[what], strings.TrimSpace(line))
		}
	}
	return queries
}
