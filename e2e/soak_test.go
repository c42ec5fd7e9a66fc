package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One manager leads many StatefulSets, each of which somebody changes at random: images good and bad, restarts, replicas,
// pauses, pods that fall over before a rollout. The API fails now and then; in the first half the manager is killed again and
// again. The observers find no fault, everything ends Done, and in the second half the manager does not grow. make soak
// takes half an hour with 50 StatefulSets, make soak SOAK=1m a minute with six, and make test half a minute with four.
func TestSoak(t *testing.T) {
	t.Parallel()
	lasts, sets, seed := 30*time.Second, 4, uint64(1)
	long := os.Getenv("SOAK")
	if long != "" {
		var err error
		lasts, err = time.ParseDuration(long)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), "SOAK")
		sets, seed = 6, uint64(time.Now().UnixNano())
		if lasts >= 10*time.Minute {
			sets = 50
		}
	}
	if given := os.Getenv("SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), "SEED")
	}
	t.Logf("SEED=%d", seed)
	f := someFaults("soak", seed)
	f.writes, f.reads = 1./20, 1./50
	f.late = nil // what a manager cannot see yet no judge may hold against it
	via := &proxy{faults: f}
	tellOne(t, "soak", appsv1.OrderedReadyPodManagement, true, settings{via: via, deadline: "1m"}, func(s *story) {
		s.create("1")
		fleet := s.fleet(sets, seed)
		s.stopManager(syscall.SIGTERM)
		s.metrics, s.open, s.anywhere = freeAddress(s), true, long != "" // it has the control plane to itself then
		for _, one := range fleet {
			s.also = append(s.also, one.namespace)
		}
		s.startManager()

		begin := time.Now()
		ends := begin.Add(lasts)
		var crowd sync.WaitGroup
		for _, one := range fleet {
			crowd.Go(func() { one.lives(ends) })
		}
		kills := 0
		for time.Now().Before(begin.Add(lasts / 2)) {
			s.pass(lasts / 12)
			s.works()
			s.Expect(s.manager.die()).To(Succeed())
			kills++
		}
		s.works()
		early, late := s.measure(lasts/4), s.measure(lasts/4)
		crowd.Wait()
		var rollouts int64
		for _, one := range fleet {
			s.t.Run(one.namespace, func(t *testing.T) { rollouts += one.concludes(t) })
		}
		t.Logf("%s: %d StatefulSets, %d rollouts, the manager killed %d times; goroutines %.0f, then %.0f; heap %.1f MB, then %.1f MB",
			lasts, sets, rollouts, kills, early.goroutines, late.goroutines, early.heap/1e6, late.heap/1e6)
		s.Expect(rollouts).To(BeNumerically(">", sets), "something happened after the first pods came up")
		s.Expect(kills).NotTo(BeZero(), "the manager was killed")
		if long == "" {
			return // seconds say nothing about growth
		}
		s.Expect(late.goroutines).To(BeNumerically("<", 1.2*early.goroutines+20), "goroutines stay as many")
		s.Expect(late.heap).To(BeNumerically("<", 1.3*early.heap+8e6), "the heap stays as large")
	})
}

// one is a StatefulSet of the fleet, with a namespace and an observer of its own.
type one struct {
	*story
	lot  *rand.Rand
	did  []string
	lost error
}

func (s *story) fleet(n int, seed uint64) (all []*one) {
	for i := range n {
		o := &one{lot: rand.New(rand.NewPCG(seed, uint64(i)))}
		policy := []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement}[i%2]
		o.story = &story{
			Gomega: NewGomega(func(message string, _ ...int) { o.lost = fmt.Errorf("%s: %s", o.namespace, message); panic(o.lost) }),
			t:      s.t, policy: policy, admission: i%4 < 2, namespace: fmt.Sprintf("%s-%d", s.namespace, i), excused: map[string]bool{},
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace, Labels: map[string]string{}}}
		if !o.admission {
			ns.Labels[bareLabel] = "true"
		}
		s.Expect(lab.admin.Create(s.t.Context(), ns)).To(Succeed())
		var err error
		o.observer, err = observe(lab.alice, o.namespace)
		s.Expect(err).NotTo(HaveOccurred())
		all = append(all, o)
	}
	return all
}

// lives changes the StatefulSet until the time is over, and brings it back into order then.
func (o *one) lives(until time.Time) {
	defer func() {
		if r := recover(); r != nil && o.lost == nil {
			panic(r)
		}
	}()
	o.submit("1")
	o.waitFor("the first pods", done("")) // the manager may come later
	image := 1
	for time.Now().Before(until) {
		o.waits(3)
		switch o.lot.IntN(8) {
		case 0, 1, 2:
			image++
			o.does("image", strconv.Itoa(image))
			o.setImage(strconv.Itoa(image))
		case 3:
			o.does("image", "bad")
			o.setImage("bad")
			o.waits(15)
			o.does("image", strconv.Itoa(image))
			o.setImage(strconv.Itoa(image))
		case 4:
			o.does("restart")
			o.kubectl("rollout", "restart", "sts/"+name)
		case 5:
			replicas := int32(2 + o.lot.IntN(3))
			o.does("replicas", strconv.Itoa(int(replicas)))
			o.edit(func(set *appsv1.StatefulSet) { set.Spec.Replicas = &replicas })
		case 6:
			o.does("pause")
			o.pause(true)
			o.waits(5)
			o.pause(false)
		case 7:
			o.hurts()
		}
	}
	o.pause(false)
	o.edit(func(set *appsv1.StatefulSet) { set.Spec.Replicas = new(int32(3)) })
	o.does("image", "last")
	o.setImage("last")
}

// hurts has a pod fall over between two rollouts, and begins one before it is back.
func (o *one) hurts() {
	if done("")(o.observer.status()) != "" {
		return
	}
	i := o.lot.IntN(2)
	before := o.pod(i)
	if !ready(before) {
		return
	}
	o.does("never ready", podName(i))
	o.fate(i, "never")
	o.Eventually(func() bool { pod := o.find(i); return pod != nil && ready(pod) }, patience, tick).Should(BeFalse(), "waiting for the pod to fall over")
	time.Sleep(time.Second) // until every watch has told it
	o.kubectl("rollout", "restart", "sts/"+name)
	o.waits(8)
	if pod := o.find(i); pod != nil && pod.UID == before.UID {
		o.does("ready", podName(i))
		o.fate(i, "ready")
	}
}

func (o *one) does(what ...string) {
	o.did = append(o.did, time.Now().Format(time.TimeOnly)+" "+strings.Join(what, " "))
}

// waits up to so many seconds.
func (o *one) waits(most int) { time.Sleep(time.Duration(o.lot.IntN(most * int(time.Second)))) }

// concludes waits for the end and judges it. It returns how many rollouts there were.
func (o *one) concludes(t *testing.T) int64 {
	defer func() {
		o.observer.end()
		_ = lab.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}})
	}()
	account := func() string {
		return fmt.Sprintf("%s: what was done:\n%s\nthe log:\n%s\nwhat was seen:\n%s", o.namespace, strings.Join(o.did, "\n"), o.history(), o.observer.chronicle())
	}
	o.Gomega = NewGomega(func(message string, _ ...int) { t.Fatalf("%s\n%s", message, account()) })
	o.Expect(o.lost).NotTo(HaveOccurred())
	o.Eventually(func() string {
		st, set := o.observer.status(), o.set()
		if wrong := done("")(st); wrong != "" {
			o.obeys(st)
			return wrong
		}
		if st.Rollout == nil || set.Status.UpdateRevision != st.Rollout.ToRevision || set.Status.ObservedGeneration != set.Generation ||
			set.Spec.Template.Spec.Containers[0].Image != image("last") {
			return "the last rollout is to come"
		}
		return ""
	}, 2*patience, tick).Should(BeEmpty())
	o.Expect(o.judge().report()).To(BeEmpty())
	o.holdsTogether()
	return o.progress().Status.Rollout.Number
}

// obeys does what the message of a Blocked says that a person has to do.
func (o *one) obeys(st status) {
	advice := regexp.MustCompile(`kubectl delete pod (\S+) -n \S+`).FindStringSubmatch(st.Message)
	if st.State != "Blocked" || advice == nil {
		return
	}
	pod := o.find(ordinal(advice[1]))
	if pod == nil {
		return // someone was faster
	}
	o.excused[string(pod.UID)] = true
	o.does(advice[0])
	o.kubectl("delete", "pod", pod.Name, "--wait=false")
}

// size is how large the manager is.
type size struct{ goroutines, heap float64 }

// works waits until the manager has begun.
func (s *story) works() {
	s.t.Helper()
	s.Eventually(func() error { _, err := sizeAt(s.metrics); return err }, patience, tick).Should(Succeed(), "waiting for the manager")
}

// measure is the largest that the manager is in this time.
func (s *story) measure(lasts time.Duration) (most size) {
	for until := time.Now().Add(lasts); time.Now().Before(until); {
		if now, err := sizeAt(s.metrics); err == nil {
			most.goroutines, most.heap = max(most.goroutines, now.goroutines), max(most.heap, now.heap)
		}
		s.pass(time.Second)
	}
	s.Expect(most.goroutines).NotTo(BeZero(), "the manager tells how large it is")
	return most
}

// pass lets time pass in which others work.
func (s *story) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

func sizeAt(address string) (size, error) {
	values, err := sumsAt(address, "go_goroutines", "go_memstats_heap_inuse_bytes")
	if err != nil {
		return size{}, err
	}
	return size{goroutines: values["go_goroutines"], heap: values["go_memstats_heap_inuse_bytes"]}, nil
}

// sumsAt are metrics that a manager shows to everybody: of each, the sum of its series.
func sumsAt(address string, names ...string) (map[string]float64, error) {
	text, err := metricsAt(address)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		series, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		metric, _, _ := strings.Cut(series, "{")
		if !slices.Contains(names, metric) {
			continue
		}
		value, err := strconv.ParseFloat(number[strings.LastIndex(number, " ")+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("read the metrics: %w", err)
		}
		values[metric] += value
	}
	return values, nil
}
