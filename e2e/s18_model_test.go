package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sequence is what TestModelSequences of package statemachine writes.
type sequence struct {
	Seed            uint64
	Parallel        bool
	Start, Replicas int32
	Steps           []struct {
		Do, Revision       string
		N                  int32
		Pods               map[string]string
		Current, Update    string
		Updated, Partition int32
	}
}

// The StatefulSet controller of the model checker is that of Kubernetes: random actions on a StatefulSet that nobody leads
// come to the same pods, at the same revisions, and to the same status. SEQUENCES=n is how many, SEED=n the first of them.
func TestS18Model(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	count, seed := 16, uint64(1)
	if given := os.Getenv("SEQUENCES"); given != "" {
		var err error
		count, err = strconv.Atoi(given)
		g.Expect(err).NotTo(HaveOccurred(), "SEQUENCES")
		seed = uint64(time.Now().Unix())
	}
	if given := os.Getenv("SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		g.Expect(err).NotTo(HaveOccurred(), "SEED")
	}
	t.Logf("SEED=%d", seed)
	path := filepath.Join(t.TempDir(), "sequences.json")
	printed, err := attempt(t.Context(), "", "env", "SEQUENCES="+path, fmt.Sprintf("SEQUENCES_COUNT=%d", count), fmt.Sprintf("SEQUENCES_SEED=%d", seed),
		"go", "test", "-vet=off", "-count=1", "-run", "^TestModelSequences$", "../statemachine")
	g.Expect(err).NotTo(HaveOccurred(), printed)
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var all []sequence
	g.Expect(json.Unmarshal(text, &all)).To(Succeed())
	g.Expect(all).To(HaveLen(count))
	for _, one := range all {
		t.Run(strconv.FormatUint(one.Seed, 10), func(t *testing.T) {
			t.Parallel()
			play(t, one)
		})
	}
}

// player takes the actions of a sequence in a namespace of its own.
type player struct {
	*story
	sequence
	names map[string]string // revisions of the model by their names here
}

func play(t *testing.T, one sequence) {
	p := &player{
		story:    &story{Gomega: NewWithT(t), t: t, namespace: fmt.Sprintf("s18-model-%d-%d", one.Seed, told.Add(1)), policy: appsv1.OrderedReadyPodManagement},
		sequence: one, names: map[string]string{},
	}
	if one.Parallel {
		p.policy = appsv1.ParallelPodManagement
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace, Labels: map[string]string{bareLabel: "true"}}}
	p.Expect(lab.admin.Create(t.Context(), ns)).To(Succeed())
	defer func() { _ = lab.admin.Delete(context.Background(), ns) }()
	defer p.tellsOfController()
	p.starts("A", one.Replicas, parked)
	before := map[string]string{}
	for i := range one.Replicas {
		before[podName(int(one.Start+i))] = "A ready"
	}
	p.settles("the first pods", func() string { return p.differs(before, "A", "A", one.Replicas) })
	did := []string{}
	for _, step := range one.Steps {
		did = append(did, fmt.Sprintf("%s %s%d", step.Do, step.Revision, step.N))
		gone := p.does(step.Do, step.Revision, step.N)
		p.settles(fmt.Sprintf("%s, parallel %t", strings.Join(did, "; "), one.Parallel), func() string {
			pod := &corev1.Pod{}
			key := client.ObjectKey{Namespace: p.namespace, Name: podName(int(step.N))}
			if gone != "" && lab.admin.Get(t.Context(), key, pod) == nil && pod.UID == gone {
				return "the pod is still there"
			}
			return p.differs(step.Pods, step.Current, step.Update, step.Updated)
		})
	}
}

// tellsOfController shows what the controllers said of this namespace, if something went wrong.
func (p *player) tellsOfController() {
	if !p.t.Failed() {
		return
	}
	text, err := os.ReadFile(lab.lab.Logs["kube-controller-manager"])
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, p.namespace+"/") || strings.Contains(line, p.namespace+`"`) {
			p.t.Log(line)
		}
	}
	p.Expect(err).NotTo(HaveOccurred(), "the log of the controllers")
}

// settles waits until everything is as in the model, and stays so for a moment.
func (p *player) settles(did string, differs func() string) {
	p.t.Helper()
	p.Eventually(differs, patience, tick).Should(BeEmpty(), did)
	p.Consistently(differs, 300*time.Millisecond, 100*time.Millisecond).Should(BeEmpty(), did)
}

// starts creates the StatefulSet.
func (p *player) starts(revision string, replicas, partition int32) {
	set := bareSet(p.namespace, tags[revision])
	set.Labels = nil
	set.Spec.Replicas, set.Spec.PodManagementPolicy = &replicas, p.policy
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: p.Start}
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition},
	}
	p.Expect(lab.admin.Create(p.t.Context(), set)).To(Succeed())
}

// isNoticed: now and then the StatefulSet controller of Kubernetes 1.37 leaves alone a StatefulSet that was created again, after
// it could not update a ControllerRevision that had changed meanwhile ("resource name may not be empty"), until somebody
// edits the StatefulSet. What it does then is what the model is about.
func (p *player) isNoticed() {
	observed := func() int64 { return p.set().Status.ObservedGeneration }
	if quiet := NewGomega(func(string, ...int) {}); quiet.Eventually(observed, 20*time.Second, tick).ShouldNot(BeZero()) {
		return
	}
	p.t.Log("the StatefulSet controller does not look at what was created again")
	p.edit(func(set *appsv1.StatefulSet) { set.Annotations = map[string]string{"stories.pawl.dev/look": "please"} })
}

// tags are the images of the revisions: pods of C never become Ready.
var tags = map[string]string{"A": "1", "B": "2", "C": "never"}

// does takes an action. If a pod has to go, it returns its uid.
func (p *player) does(what, revision string, n int32) (gone types.UID) {
	ctx := p.t.Context()
	merge := func(o client.Object, patch string) {
		p.Expect(lab.admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	}
	switch what {
	case "template":
		p.setImage(tags[revision])
	case "recreate":
		set := p.set()
		p.Expect(lab.admin.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		p.Eventually(func() error { return lab.admin.Get(ctx, client.ObjectKeyFromObject(set), set) }, patience, tick).ShouldNot(Succeed(), "waiting for it to go")
		p.starts(revision, *set.Spec.Replicas, 0)
		p.isNoticed()
	case "partition":
		p.edit(func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n })
	case "scale":
		p.edit(func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n })
	case "delete":
		pod := p.pod(int(n))
		p.Expect(lab.admin.Delete(ctx, pod)).To(Succeed())
		return pod.UID
	case "delete held":
		merge(p.pod(int(n)), `{"metadata":{"finalizers":["stories.pawl.dev/held"]}}`)
		p.Expect(lab.admin.Delete(ctx, p.pod(int(n)))).To(Succeed())
	case "let go":
		pod := p.pod(int(n))
		merge(pod, `{"metadata":{"finalizers":null}}`)
		return pod.UID
	case "unready":
		p.fate(int(n), "never")
	case "heal":
		p.fate(int(n), "ready")
	case "forget":
		set := p.set()
		body := fmt.Sprintf(`{"status":{"currentRevision":%q}}`, set.Status.UpdateRevision)
		p.Expect(lab.admin.Status().Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
	default:
		p.t.Fatalf("the model has an action %q that nobody can take here", what)
	}
	return ""
}

// differs says what is not as in the model.
func (p *player) differs(pods map[string]string, current, update string, updated int32) string {
	set := p.set()
	if set.Status.ObservedGeneration != set.Generation {
		return fmt.Sprintf("the StatefulSet controller has yet to see the last change: generation %d, status %+v", set.Generation, set.Status)
	}
	var template string
	for revision, tag := range tags {
		if set.Spec.Template.Spec.Containers[0].Image == image(tag) {
			template = revision
		}
	}
	if known := p.names[set.Status.UpdateRevision]; known != "" && known != template {
		return fmt.Sprintf("revision %s of template %s was that of template %s", set.Status.UpdateRevision, template, known)
	}
	p.names[set.Status.UpdateRevision] = template
	var list corev1.PodList
	p.Expect(lab.admin.List(p.t.Context(), &list, client.InNamespace(p.namespace))).To(Succeed())
	have := map[string]string{}
	for i := range list.Items {
		pod := &list.Items[i]
		is := "unready"
		switch {
		case ending(pod):
			is = "terminating"
		case ready(pod):
			is = "ready"
		}
		have[pod.Name] = p.names[revision(pod)] + " " + is
	}
	want := fmt.Sprintf("%s; current %s, update %s, %d updated", inOrder(pods), current, update, updated)
	got := fmt.Sprintf("%s; current %s, update %s, %d updated",
		inOrder(have), p.names[set.Status.CurrentRevision], p.names[set.Status.UpdateRevision], set.Status.UpdatedReplicas)
	if want != got {
		return fmt.Sprintf("the model has %s\nthe cluster has %s", want, got)
	}
	return ""
}

func inOrder(pods map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		all = append(all, name+" "+pods[name])
	}
	return strings.Join(all, ", ")
}
