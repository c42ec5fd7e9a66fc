package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// notes is a log that is written in a test as a manager writes it, with the lines that it logs.
type notes struct {
	*WithT
	t       *testing.T
	at      time.Time
	status  v1alpha1.RolloutProgressStatus
	records []v1alpha1.Page
	lines   []string
}

func newNotes(t *testing.T) *notes {
	return &notes{WithT: NewWithT(t), t: t, at: time.Date(2026, 12, 2, 16, 0, 0, 0, time.UTC)}
}

// record appends events, and seals what is complete.
func (n *notes) record(events ...statemachine.Event) {
	n.t.Helper()
	log, err := ledger.Load("db", n.status, n.records)
	n.Expect(err).NotTo(HaveOccurred())
	for i := range events {
		n.at = n.at.Add(time.Second)
		events[i].Time = n.at
	}
	head := log.Digest()
	log, err = log.Append(events)
	n.Expect(err).NotTo(HaveOccurred())
	n.status = log.Trim().Status()
	stored := log.Status().Transitions
	for _, t := range stored[len(stored)-len(events):] {
		head = ledger.Chain(head, t)
		n.lines = append(n.lines, fmt.Sprintf(`{"ts":%q,"msg":"recorded","namespace":"shop","statefulset":"db","sequence":%d,"type":%q,"reason":%q,"digest":%q}`,
			t.Time.UTC().Format(time.RFC3339Nano), t.Sequence, t.Type, t.Reason, head))
	}
	n.records = append(n.records, log.Complete()...)
}

// lose the RolloutProgress, with all that is in no record.
func (n *notes) lose() { n.status = v1alpha1.RolloutProgressStatus{} }

func (n *notes) adopted(reason statemachine.Reason) statemachine.Event {
	log, err := ledger.Load("db", n.status, n.records)
	n.Expect(err).NotTo(HaveOccurred())
	return statemachine.Event{
		Type: statemachine.Adopted, Reason: reason, Replicas: new(int32(3)), Start: new(int32(0)), TemplateDigest: "t1",
		StatefulSetUID: "uid-1", Mode: statemachine.ModeEnforce, Origin: statemachine.OriginFirstSeen, Revision: "db-a", StableRevision: "db-a",
		Partition: new(statemachine.Parked), PreviousPartition: new(int32(0)), Generation: 1, Number: log.State().Rollout.Number,
	}
}

func (n *notes) started(number int64, revision string) statemachine.Event {
	e := n.adopted(statemachine.ReasonNewRevision)
	e.Type, e.Number, e.FromRevision, e.Revision = statemachine.RolloutStarted, number, "db-a", revision
	return e
}

func (n *notes) event(kind statemachine.EventType) statemachine.Event {
	return statemachine.Event{Type: kind}
}

// objects are the log as the API server has it.
func (n *notes) objects() []runtime.Object {
	var all []runtime.Object
	if n.status.Sequence > 0 {
		all = append(all, &v1alpha1.RolloutProgress{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutProgress"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Status: *n.status.DeepCopy(),
		})
	}
	for _, page := range n.records {
		all = append(all, new(ledger.Record("shop", page)))
	}
	return all
}

// file writes objects as kubectl does.
func file(t *testing.T, objects ...runtime.Object) string {
	list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, o := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	text, err := json.Marshal(list)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return fileWith(t, "audit.json", string(text))
}

func (n *notes) file() string { return file(n.t, n.objects()...) }

// fileWith is a file with this text.
func fileWith(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// log is a file with these lines of the manager.
func (n *notes) log(lines []string) string {
	return fileWith(n.t, "manager.jsonl", strings.Join(lines, "\n"))
}
