package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// shelf is an API server that holds RolloutRecords of StatefulSets that are gone.
type shelf struct {
	client.Client
	mutex    sync.Mutex
	records  []v1alpha1.RolloutRecord
	onDelete func(name string) error
}

// put adds records of one transition each that ended so many days ago.
func (s *shelf) put(now time.Time, name string, days ...int) {
	for i, d := range days {
		s.records = append(s.records, ledger.Record("shop", v1alpha1.Page{StatefulSet: name, Transitions: []v1alpha1.Transition{{
			Sequence: int64(i + 1), Type: "Adopted", Time: metav1.NewMicroTime(now.Add(-time.Duration(d) * 24 * time.Hour)),
		}}}))
	}
}

func (s *shelf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if l, is := list.(*v1alpha1.RolloutRecordList); is {
		l.Items = slices.Clone(s.records)
	}
	return nil
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *shelf) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if err := s.onDelete(o.GetName()); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.records = slices.DeleteFunc(s.records, func(r v1alpha1.RolloutRecord) bool { return r.Name == o.GetName() })
	return nil
}

func (s *shelf) names() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var names []string
	for _, r := range s.records {
		names = append(names, r.Name)
	}
	return names
}

// A record that cannot be deleted is tried again in minutes, and what was deleted meanwhile is in the log, each and all.
func TestRetentionTriesAgain(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(epoch)
	var mutex sync.Mutex
	var lines []string
	logged := func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(lines)
	}
	log := funcr.New(func(_, args string) {
		mutex.Lock()
		defer mutex.Unlock()
		lines = append(lines, args)
	}, funcr.Options{})
	s := &shelf{}
	s.put(clock.Now(), "db", 200, 150, 100, 50)
	refused := true
	s.onDelete = func(name string) error {
		if refused && name == "db-0000000002" {
			return errors.New("not now")
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	r := &Retention{Live: s, Client: s, Clock: clock, Log: log, Keep: 90 * 24 * time.Hour}
	go func() { done <- r.Start(ctx) }()

	g.Eventually(clock.HasWaiters).Should(BeTrue())
	g.Expect(s.names()).To(Equal([]string{"db-0000000002", "db-0000000003", "db-0000000004"}), "oldest first, and no gap")
	g.Expect(logged()).To(ConsistOf(
		And(ContainSubstring(`"deleted a RolloutRecord"`), ContainSubstring(`"record"="db-0000000001"`), ContainSubstring(`"statefulset"="db"`)),
		And(ContainSubstring(`"deleted RolloutRecords`), ContainSubstring(`"records"=1`)),
		And(ContainSubstring(`will try again`), ContainSubstring("not now")),
	))
	refused = false
	clock.Step(retentionRetry)
	g.Eventually(s.names).Should(Equal([]string{"db-0000000004"}))
	g.Eventually(clock.HasWaiters).Should(BeTrue())
	clock.Step(retentionRetry)
	g.Expect(clock.HasWaiters()).To(BeTrue(), "and then daily again")
	cancel()
	g.Eventually(done).Should(Receive(BeNil()))
}

// A manager that is told to stop does.
func TestRetentionStops(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := &shelf{}
	for i := range 5 {
		s.put(epoch, fmt.Sprintf("db%d", i), 100)
	}
	s.onDelete = func(string) error { cancel(); return nil }
	r := &Retention{Live: s, Client: s, Clock: testclock.NewFakeClock(epoch), Keep: 90 * 24 * time.Hour}
	g.Expect(r.Start(ctx)).To(Succeed())
	g.Expect(s.names()).To(HaveLen(4), "the one that was being deleted")
}

// library is a cache with a StatefulSet and policies, but for one that it lacks.
type library struct {
	client.Client
	lacks string
}

func (l library) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	days := map[string]int32{"short": 60, "default": 120}
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		if key.Name == "db" {
			o.Labels = map[string]string{v1alpha1.PolicyLabel: "short"}
			return nil
		}
	case *v1alpha1.RolloutPolicy:
		if d, is := days[key.Name]; is && key.Name != l.lacks {
			o.Spec.RetentionDays = d
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// Records are kept for as long as the policy of the StatefulSet says, or the default one when it is gone.
func TestRetentionIsThePolicys(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(epoch)
	s := &shelf{onDelete: func(string) error { return nil }}
	s.put(clock.Now(), "db", 100, 70, 50)
	s.put(clock.Now(), "gone", 130, 100, 50)
	n, err := (&Retention{Live: s, Client: s, Clock: clock, Keep: 90 * 24 * time.Hour, Policies: library{}}).Sweep(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n).To(Equal(3))
	g.Expect(s.names()).To(ConsistOf("db-0000000003", "gone-0000000002", "gone-0000000003"))
}
