package controllers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// cached is a cache that holds these.
type cached []v1alpha1.RolloutProgress

func (c cached) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errReadAgain
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.RolloutProgressList).Items = c
	return nil
}

func elected() <-chan struct{} {
	is := make(chan struct{})
	close(is)
	return is
}

// progressOf is a RolloutProgress whose status is the fold of what Pawl recorded.
func progressOf(name string, events []statemachine.Event) v1alpha1.RolloutProgress {
	log, err := ledger.Load(name, v1alpha1.RolloutProgressStatus{}, nil)
	if err == nil {
		log, err = log.Append(events)
	}
	if err != nil {
		panic(err)
	}
	p := v1alpha1.RolloutProgress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "1"}, Status: log.Status()}
	p.Status.Conditions = ledger.Conditions(p.Status, 1, epoch)
	return p
}

// stuck is a rollout whose first pod cannot pull its image, two minutes after it began.
func stuck() *bench {
	b := newBench()
	b.steps()
	b.put(2, "r2").Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}}
	b.until(epoch.Add(2 * time.Minute))
	return b
}

// written is a RolloutProgress that holds what happened on a bench.
func written(name string, b *bench) v1alpha1.RolloutProgress {
	return progressOf(name, append(slices.Clone(b.first), b.log...))
}

func TestFleet(t *testing.T) {
	g := NewWithT(t)
	p := written("db", stuck())
	f := &fleet{cache: cached{p}, leading: elected(), log: logr.Discard()}
	text := exposition(g, f)
	g.Expect(text).To(ContainElements(
		`pawl_rollout_state_info{class="pull",namespace="shop",pod="db-2",reason="ImagePullBackOff",state="Blocked",statefulset="db"} 1`,
		`pawl_rollout_partition{namespace="shop",statefulset="db"} 2`,
		`pawl_rollout_replicas{namespace="shop",statefulset="db"} 3`,
		`pawl_rollout_updated_replicas{namespace="shop",statefulset="db"} 0`,
		fmt.Sprintf(`pawl_rollout_state_since_timestamp_seconds{namespace="shop",statefulset="db"} %v`, seconds1970(p.Status.Since.Time)),
		fmt.Sprintf(`pawl_rollout_started_timestamp_seconds{namespace="shop",statefulset="db"} %v`, seconds1970(p.Status.Rollout.StartedAt.Time)),
		HavePrefix(`pawl_ledger_bytes{namespace="shop",statefulset="db"} `),
	))
	g.Expect(text).To(HaveLen(7), "docs/observability.md says so")

	damaged := *p.DeepCopy()
	halted(&damaged.Status, 1, true, reasonLogDamaged, "No step is taken.")
	f.cache = cached{damaged}
	g.Expect(exposition(g, f)).To(ContainElement(
		`pawl_rollout_state_info{class="soft",namespace="shop",pod="",reason="LogDamaged",state="Blocked",statefulset="db"} 1`))

	gone := *p.DeepCopy()
	halted(&gone.Status, 1, false, reasonNotManaged, "Not handed to Pawl.")
	f.cache = cached{gone}
	g.Expect(exposition(g, f)).To(BeEmpty(), "what is not Pawl's has no series")
	f.cache = cached{}
	g.Expect(exposition(g, f)).To(BeEmpty(), "series vanish with their object")
	f.cache, f.leading = cached{p}, make(chan struct{})
	g.Expect(exposition(g, f)).To(BeEmpty(), "a replica in waiting says nothing")
}

// exposition is what a scrape of one collector reads.
func exposition(g Gomega, c prometheus.Collector) []string {
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(c)).To(Succeed())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var lines []string
	for line := range strings.SplitSeq(text(g, families), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

func text(g Gomega, families []*dto.MetricFamily) string {
	var b bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&b, f)
		g.Expect(err).NotTo(HaveOccurred())
	}
	return b.String()
}

// Durations are those between recorded transitions, also where the first of the two is older than this process.
func TestCount(t *testing.T) {
	g := NewWithT(t)
	before := sums(g)
	grew := func(name string) float64 { return sums(g)[name] - before[name] }

	b := stuck()
	count(newBench().state, b.log)
	g.Expect(grew("pawl_transitions_total Blocked")).To(Equal(1.0))
	g.Expect(grew("pawl_blocked_seconds_total")).To(BeZero(), "it is blocked still")
	g.Expect(grew("pawl_rollout_duration_seconds Superseded")).To(BeZero())

	s := b.state
	b.log = nil
	b.template("r1")
	b.look()
	count(s, b.log)
	g.Expect(grew("pawl_transitions_total RolloutStarted")).To(Equal(2.0))
	g.Expect(grew("pawl_rollout_duration_seconds RolledBack")).To(Equal(b.facts.now.Sub(s.Rollout.StartedAt).Seconds()))
	g.Expect(grew("pawl_blocked_seconds_total")).To(BeNumerically("~", b.facts.now.Sub(s.Block.Since).Seconds(), 0.001))
	g.Expect(grew("pawl_pods_replaced_total")).To(Equal(1.0), "the dead pod: %v", b.log)
	g.Expect(grew("pawl_step_duration_seconds")).To(BeZero(), "no step was completed")

	s, b.log = b.state, nil
	b.facts.now = b.facts.now.Add(7 * time.Second)
	b.put(2, "r1")
	b.makeReady(2)
	b.look()
	count(s, b.log)
	g.Expect(grew("pawl_transitions_total StepCompleted")).To(Equal(1.0))
	g.Expect(grew("pawl_step_duration_seconds")).To(Equal(7.0))
	for _, r := range bypassing {
		g.Expect(grew("pawl_bypasses_total "+string(r))).To(BeZero(), "no step went past the health of the others")
	}
}

// A step that did not ask for the health of the others is counted by its ground, and what each gate said by its answer.
func TestCountSteps(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	b.template("r2")
	b.look()
	answers := []statemachine.Verdict{statemachine.GateOpen, statemachine.GateClosed, statemachine.GateError, statemachine.GateBypassed}
	for i, reason := range bypassing {
		before := sums(g)
		log := slices.Clone(b.log)
		at := slices.IndexFunc(log, func(e statemachine.Event) bool { return e.Type == statemachine.StepStarted })
		log[at].Reason = reason
		log[at].Gates = []statemachine.GateResult{{Name: "counted", Result: answers[i]}}
		count(newBench().state, log)
		after := sums(g)
		for k := range bypassing {
			want := 0.0
			if k == i {
				want = 1
			}
			for _, name := range []string{"pawl_bypasses_total " + string(bypassing[k]), "pawl_gate_results_total counted " + string(answers[k])} {
				g.Expect(after[name]-before[name]).To(Equal(want), "%s after a step on the ground of %s", name, reason)
			}
		}
	}
}

// The series of a gate are there before its first answer, and vanish with the last policy that has it.
func TestGatesAreCounted(t *testing.T) {
	g := NewWithT(t)
	series := func(gate string) (n int) {
		for name := range sums(g) {
			if strings.HasPrefix(name, "pawl_gate_results_total "+gate+" ") {
				n++
			}
		}
		return n
	}
	policy := func(name string, generation int64, gates ...string) *v1alpha1.RolloutPolicy {
		p := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: generation}}
		for _, gate := range gates {
			p.Spec.Gates = append(p.Spec.Gates, v1alpha1.Gate{Name: gate, Expression: "true"})
		}
		return p
	}
	var p programs
	p.of(policy("one", 1, "shared", "own"))
	p.of(policy("two", 1, "shared"))
	g.Expect([]int{series("shared"), series("own")}).To(Equal([]int{4, 4}))
	p.of(policy("one", 2, "shared", "renamed"))
	g.Expect([]int{series("shared"), series("own"), series("renamed")}).To(Equal([]int{4, 0, 4}))
	p.forget("one")
	g.Expect([]int{series("shared"), series("renamed")}).To(Equal([]int{4, 0}), "the other policy has it")
	p.forget("two")
	p.forget("never-seen")
	g.Expect(series("shared")).To(BeZero())
}

// sums are the values of all of Pawl's metrics: of histograms the sum of what was observed.
func sums(g Gomega) map[string]float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			all[key] = m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return all
}

func TestMetricsLint(t *testing.T) {
	g := NewWithT(t)
	registry := inventory(g)
	problems, err := testutil.GatherAndLint(registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}

// inventory has every metric of Pawl once.
func inventory(g Gomega) prometheus.Gatherer {
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(&fleet{cache: cached{written("db", stuck())}, leading: elected(), log: logr.Discard()})).To(Succeed())
	pawl := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := metrics.Registry.Gather()
		return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "pawl_") }), err
	})
	return prometheus.Gatherers{registry, pawl}
}

// metricTable lists every metric with its labels, for docs/observability.md.
func metricTable(g Gomega) string {
	families, err := inventory(g).Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	return b.String()
}

// The metrics that docs/observability.md lists are those that there are, and each is in one of its queries. That the
// queries return data the stories S14 show.
func TestMetricsAreListed(t *testing.T) {
	g := NewWithT(t)
	upToDate(g, "../docs/observability.md", map[string]string{"metrics": metricTable(g)})
	page, err := os.ReadFile("../docs/observability.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, queries, _ := strings.Cut(string(page), "```promql\n")
	queries, _, _ = strings.Cut(queries, "```")
	families, err := inventory(g).Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		g.Expect(queries).To(MatchRegexp(`\b%s(_bucket|_count|_sum)?\b`, f.GetName()), "an example query for it is missing")
	}
}

// BenchmarkScrape is one scrape of 10,000 StatefulSets, each in the middle of a rollout.
func BenchmarkScrape(b *testing.B) {
	g := NewWithT(b)
	var all cached
	stuck := stuck()
	for i := range 10000 {
		all = append(all, written(fmt.Sprintf("db%d", i), stuck))
	}
	registry := prometheus.NewRegistry()
	g.Expect(registry.Register(&fleet{cache: all, leading: elected(), log: logr.Discard()})).To(Succeed())
	series, size := 0, 0
	for b.Loop() {
		families, err := registry.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		series = 0
		for _, f := range families {
			series += len(f.GetMetric())
		}
		size = len(text(g, families))
	}
	b.ReportMetric(float64(series), "series")
	b.ReportMetric(float64(size)/1e6, "MB/scrape")
}
