package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S17, MOCO: its StatefulSets come without a label of Pawl's, its MySQLCluster says whether the database is healthy, and
// Pawl asks it before each step (config/overlays/moco). A stand-in plays the operator.

var mysqlCluster = schema.GroupVersionKind{Group: "moco.cybozu.com", Version: "v1beta2", Kind: "MySQLCluster"}

// mocoInstalled installs the kind and the overlay into the lab, once.
var mocoInstalled = sync.OnceValue(func() error {
	ctx := context.Background()
	if err := lab.apply(ctx, "testdata"); err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mysqlCluster)
	if err := until(ctx, "MySQLCluster to be served", func() error { return lab.admin.List(ctx, list) }); err != nil {
		return err
	}
	if err := lab.apply(ctx, "../config/overlays/moco"); err != nil {
		return err
	}
	return until(ctx, "the policy pawl-moco to be in force", func() error {
		set := bareSet("default", "1")
		set.Labels = map[string]string{"app.kubernetes.io/created-by": "moco"}
		if err := lab.admin.Create(ctx, set, client.DryRunAll); err != nil {
			return fmt.Errorf("try it: %w", err)
		}
		if set.Labels["pawl.dev/mode"] != "Enforce" || partition(set) != parked {
			return fmt.Errorf("a StatefulSet of MOCO comes out with labels %v and partition %d", set.Labels, partition(set))
		}
		return nil
	})
})

// moco plays the operator of one MySQLCluster: it makes the StatefulSet of it, says how it is, and tries to lower its
// partition. MOCO does that only when the pods look well to it; this one always, and more often.
type moco struct {
	s *story

	mutex sync.Mutex
	lags  bool   // does not look at changes
	size  string // of the volume of each pod; empty is none
	sick  string // Healthy is False, whatever the pods are, with this message

	steps atomic.Int32 // that it took for itself
}

func (s *story) moco() *moco { return s.mocoWith("") }

// mocoWith has a volume of this size for each pod.
func (s *story) mocoWith(size string) *moco {
	s.Expect(mocoInstalled()).To(Succeed())
	m := &moco{s: s, size: size}
	cluster := m.object()
	cluster.Object["spec"] = map[string]any{"image": image("1")}
	s.Expect(lab.admin.Create(s.t.Context(), cluster)).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			m.reconcile(ctx)
			m.step(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	s.t.Cleanup(func() { stop(); ended.Wait() })
	return m
}

func (m *moco) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mysqlCluster)
	o.SetNamespace(m.s.namespace)
	o.SetName("test")
	return o
}

// setImage changes the MySQLCluster as a person does.
func (m *moco) setImage(tag string) {
	patch := fmt.Sprintf(`{"spec":{"image":%q}}`, image(tag))
	m.s.Expect(m.s.kubectl("patch", "mysqlcluster", "test", "--type=merge", "-p", patch)).To(ContainSubstring("patched"))
}

func (m *moco) lag(yes bool)     { m.mutex.Lock(); defer m.mutex.Unlock(); m.lags = yes }
func (m *moco) ail(words string) { m.mutex.Lock(); defer m.mutex.Unlock(); m.sick = words }

// reconcile is one look of the operator; what goes wrong is tried again.
func (m *moco) reconcile(ctx context.Context) {
	m.mutex.Lock()
	lags, sick := m.lags, m.sick
	m.mutex.Unlock()
	cluster := m.object()
	if lab.admin.Get(ctx, client.ObjectKeyFromObject(cluster), cluster) != nil {
		return
	}
	generation, _, _ := unstructured.NestedInt64(cluster.Object, "status", "reconcileInfo", "generation")
	if !lags && m.makeSet(ctx, cluster) == nil {
		generation = cluster.GetGeneration()
	}
	healthy, why := m.healthy(ctx), "not all instances are ready"
	if sick != "" {
		healthy, why = false, sick
	}
	status := map[string]any{
		"reconcileInfo": map[string]any{"generation": generation, "reconcileVersion": int64(1)},
		"conditions": []any{map[string]any{
			"type": "Healthy", "status": map[bool]string{true: "True", false: "False"}[healthy], "reason": "healthy",
			"message": map[bool]string{false: why}[healthy], "lastTransitionTime": "2026-05-01T10:00:00Z",
		}},
	}
	before, _ := json.Marshal(cluster.Object["status"])
	after, _ := json.Marshal(status)
	if string(before) != string(after) {
		cluster.Object["status"] = status
		_ = lab.admin.Status().Update(ctx, cluster)
	}
}

// step lowers the partition by one wherever it is above 0, also when nothing is to be updated, as MOCO's controller of
// partitions does (patchNewPartition).
func (m *moco) step(ctx context.Context) {
	set := &appsv1.StatefulSet{}
	if lab.admin.Get(ctx, client.ObjectKey{Namespace: m.s.namespace, Name: name}, set) != nil || partition(set) <= 0 {
		return
	}
	before := set.DeepCopy()
	set.Spec.UpdateStrategy.RollingUpdate.Partition = new(partition(set) - 1)
	if lab.admin.Patch(ctx, set, client.MergeFrom(before)) == nil {
		m.steps.Add(1)
	}
}

// inVain: all that it tried to lower the partition has changed nothing.
func (m *moco) inVain() {
	if !m.s.t.Failed() {
		m.s.Expect(m.steps.Load()).To(BeNumerically(">", 10), "it did try")
		m.s.Expect(m.s.count("PartitionOverridden")).To(BeZero())
	}
}

// healthy: all pods are there and ready.
func (m *moco) healthy(ctx context.Context) bool {
	var pods corev1.PodList
	if lab.admin.List(ctx, &pods, client.InNamespace(m.s.namespace)) != nil {
		return false
	}
	n := 0
	for i := range pods.Items {
		if ready(&pods.Items[i]) && pods.Items[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n == 3
}

// makeSet applies the StatefulSet of a MySQLCluster, as its owner. It says nothing of labels of Pawl's or the partition.
func (m *moco) makeSet(ctx context.Context, cluster *unstructured.Unstructured) error {
	wanted, _, _ := unstructured.NestedString(cluster.Object, "spec", "image")
	set := &appsv1.StatefulSet{}
	err := lab.admin.Get(ctx, client.ObjectKey{Namespace: m.s.namespace, Name: name}, set)
	if err == nil {
		if set.Spec.Template.Spec.Containers[0].Image == wanted {
			return nil
		}
		before := set.DeepCopy()
		set.Spec.Template.Spec.Containers[0].Image = wanted
		return lab.admin.Patch(ctx, set, client.StrategicMergeFrom(before))
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	set = m.s.written("1", func(set *appsv1.StatefulSet) {
		set.Labels = map[string]string{"app.kubernetes.io/name": "mysql", "app.kubernetes.io/created-by": "moco"}
		set.Spec.Template.Spec.Containers[0].Image = wanted
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, mysqlCluster)}
	})
	m.mutex.Lock()
	if m.size != "" {
		claims(m.size, "data")(set)
	}
	m.mutex.Unlock()
	return lab.admin.Create(ctx, set)
}

// up waits until the cluster has come up, in Pawl's hands.
func (m *moco) up() {
	m.s.waitFor("the first pods to come up", done("Completed"))
	m.s.good = m.s.progress().Status.StableRevision
	m.s.Expect(m.s.set().Labels).To(And(HaveKeyWithValue("pawl.dev/mode", "Enforce"), HaveKeyWithValue("pawl.dev/policy", "moco")))
}

// gateSays are the results of the gates on the last step of this pod.
func (s *story) gateSays(pod string) map[string]string {
	results := map[string]string{}
	for _, e := range s.events() {
		if e.Type == "StepStarted" && e.Pod == pod {
			for _, g := range e.Gates {
				results[g.Name] = string(g.Result)
			}
		}
	}
	return results
}

// The first review of the seed: a bad image hurts one pod, is told, and the revert goes through although the cluster is not
// healthy: because of the very pod that it replaces.
func TestS17MocoBadImageAndRevert(t *testing.T) {
	t.Parallel()
	tellWithAdmission(t, "s17-moco-revert", func(s *story) {
		m := s.moco()
		m.up()
		defer m.inVain()
		kept := s.uids(0, 1)
		m.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, "db-2"))
		s.Expect(s.gateSays("db-2")).To(Equal(map[string]string{"reconciled": "Open", "mysql-healthy": "Open"}))
		s.Eventually(func() string { return s.kubectl("get", "mysqlcluster", "test", "-o", "yaml") }, patience).Should(ContainSubstring("not all instances are ready"))
		m.setImage("1")
		s.waitFor("the rollback", done("RolledBack"))
		for i, uid := range kept {
			s.Expect(s.pod(i).UID).To(Equal(uid), "pod %d was never restarted", i)
		}
		if s.policy == appsv1.OrderedReadyPodManagement { // under Parallel the StatefulSet controller may replace it by itself
			s.Expect(s.deletions()).To(HaveLen(1))
			s.Expect(s.gateSays("db-2")).To(Equal(map[string]string{"reconciled": "Open", "mysql-healthy": "Bypassed"}))
		}
	})
}

func TestS17MocoRestart(t *testing.T) {
	t.Parallel()
	tellWithAdmission(t, "s17-moco-restart", func(s *story) {
		m := s.moco()
		m.up()
		defer m.inVain()
		s.restart("a new certificate")
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.oneByOne()
	})
}

// The second: a peer that crash-loops keeps an update from starting, and one after the StatefulSet was made anew for
// other volumes.
func TestS17MocoCrashLoop(t *testing.T) {
	t.Parallel()
	tellWithAdmission(t, "s17-moco-crash", func(s *story) {
		m := s.moco()
		m.up()
		defer m.inVain()
		m.staysPut(func() { m.setImage("2") })
		s.oneByOne()
	})
}

func TestS17MocoCrashLoopRecreated(t *testing.T) {
	t.Parallel()
	tellWithAdmission(t, "s17-moco-recreate", func(s *story) {
		s.volumes("data")
		m := s.mocoWith("1Gi")
		m.up()
		defer m.inVain()
		m.staysPut(func() {
			lab.collects(s.t)
			m.lag(true)
			s.Expect(s.kubectl("delete", "sts", name, "--cascade=orphan")).To(ContainSubstring("deleted"))
			m.setImage("2")
			m.mutex.Lock()
			m.size = "2Gi"
			m.mutex.Unlock()
			m.lag(false)
		})
	})
}

// staysPut: pod 0 dies again and again, something is changed, and no pod is touched; when it has recovered all are.
func (m *moco) staysPut(change func()) {
	s := m.s
	endure := s.killing(0)
	defer endure()
	s.Eventually(func() int32 { return s.restarts(0) }, patience).Should(BeNumerically(">=", 2), "waiting for pod 0 to have died twice")
	kept := s.uids(1, 2)
	change()
	s.waitForEvent("RolloutStarted", 2)
	s.Consistently(func() map[int]any {
		return map[int]any{1: s.pod(1).UID, 2: s.pod(2).UID}
	}, 20*time.Second, 500*time.Millisecond).Should(Equal(map[int]any{1: kept[1], 2: kept[2]}), "no pod is touched")
	endure()
	s.waitFor("the first step, a minute after the last death", state("Stepping", "", podName(2)))
	s.waitFor("the rollout to complete", rolloutDone(2))
}

// What MOCO has not looked at is decided by nobody, not even for a pod that is dead.
func TestS17MocoLagIsNeverBypassed(t *testing.T) {
	t.Parallel()
	tellWithAdmission(t, "s17-moco-lag", func(s *story) {
		m := s.moco()
		m.up()
		defer m.inVain()
		m.setImage("bad")
		s.waitFor("Blocked", state("Blocked", pullReasons, "db-2"))
		m.lag(true)
		patch := `{"metadata":{"annotations":{"example.com/ticket":"7"}},"spec":{"collectors":["x"]}}`
		s.Expect(s.kubectl("patch", "mysqlcluster", "test", "--type=merge", "-p", patch)).To(ContainSubstring("patched"))
		s.setImage("1") // by hand: MOCO does not look
		s.waitFor("GateClosed", state("Waiting", "GateClosed", ""))
		s.Expect(s.progress().Status.Message).To(MatchRegexp(`gate reconciled is closed since .*: MOCO has reconciled generation 2 of 3`))
		if s.policy == appsv1.OrderedReadyPodManagement { // under Parallel the StatefulSet controller replaces it by itself
			bad := s.pod(2).UID
			s.Consistently(func() any { return s.pod(2).UID }, 8*time.Second, tick).Should(Equal(bad), "not even a dead pod")
			s.Expect(s.deletions()).To(BeEmpty())
		}
		m.setImage("1")
		m.lag(false)
		s.waitFor("the rollback", done("RolledBack"))
	})
}

// The database turns unhealthy in the middle, with all pods Ready: no further step, and nothing is taken back. It goes on
// with the change of the MySQLCluster, and nobody polls.
func TestS17MocoHealthFlips(t *testing.T) {
	t.Parallel()
	tellWithAdmission(t, "s17-moco-flips", func(s *story) {
		m := s.moco()
		m.up()
		defer m.inVain()
		s.edit(slowly)
		s.waitFor("the first rollout", rolloutDone(2))
		m.setImage("2")
		s.waitFor("the step", state("Stepping", "", "db-2"))
		m.ail("replica 2 is 90 s behind")
		s.waits("GateClosed", 2, "gate mysql-healthy is closed since ", "replica 2 is 90 s behind")
		m.ail("")
		opened := time.Now()
		s.waitFor("the next step", state("Stepping", "", "db-1"))
		s.Expect(time.Since(opened)).To(BeNumerically("<", 20*time.Second), "it does not wait for a poll")
		s.waitFor("the rollout to complete", rolloutDone(3))
		reads := slices.DeleteFunc(s.asked(), func(read string) bool { return !strings.HasSuffix(read, " mysqlclusters") })
		steps := s.count("StepStarted")
		s.Expect(reads).To(HaveEach("list mysqlclusters"), "what the gates see is in the cache")
		s.Expect(len(reads)).To(And(BeNumerically(">=", steps), BeNumerically("<=", 2*steps)),
			"which is held against the API server before each step, again if its record is refused")
	})
}
