package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/onsi/gomega"
)

// departure is how a leader goes in the middle of a step, without a word.
type departure struct {
	name   string
	strike func(*proxy) func(*manager) error
	lives  bool // and comes back
}

var departures = []departure{
	{name: "killed", strike: func(*proxy) func(*manager) error {
		return func(m *manager) error { return m.signal(syscall.SIGKILL) }
	}},
	{name: "paused", lives: true, strike: func(*proxy) func(*manager) error {
		return func(m *manager) error { return m.signal(syscall.SIGSTOP) }
	}},
	{name: "cut off", strike: func(p *proxy) func(*manager) error {
		return func(*manager) error {
			p.cut.Store(true)
			go p.server.CloseClientConnections() // it waits for the request that this one is
			return nil
		}
	}},
}

// moments are where a leader is struck, in the first step and in the second.
var moments = []struct {
	failpoint
	nth int
}{
	{failpoint{"update rolloutprogresses/status", false}, 1},
	{failpoint{"update rolloutprogresses/status", true}, 1},
	{failpoint{"patch statefulsets", false}, 1},
	{failpoint{"patch statefulsets", true}, 1},
	{failpoint{"update rolloutprogresses/status", true}, 3},
	{failpoint{"patch statefulsets", false}, 2},
	{failpoint{"patch statefulsets", true}, 2},
}

// The leader of two replicas is killed, stopped past its lease and let go on, or cut off from the API server in the middle of
// a step. The other one takes over: one of them writes at a time, and the rollout takes the steps that it would have taken.
func TestS18Leaders(t *testing.T) {
	t.Parallel()
	for i, end := range departures {
		for j, at := range moments {
			if half && j != 1+2*i {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s %d", end.name, at.failpoint, at.nth), func(t *testing.T) {
				t.Parallel()
				first := &proxy{at: at.failpoint, nth: at.nth, lives: end.lives}
				first.strike = end.strike(first)
				first.waits.Store(true)
				tellOne(t, "s18-leaders", appsv1.OrderedReadyPodManagement, true, settings{via: first}, func(s *story) { s.loses(first, end) })
			})
		}
	}
}

// loses is the story of a leader that goes.
func (s *story) loses(through *proxy, end departure) {
	s.elects, s.lease = true, s.namespace
	s.mayElect()
	s.runAs(pawlAccount)
	s.create("1")
	leader, holder := s.manager, s.leader()
	s.t.Cleanup(func() { _ = leader.signal(syscall.SIGKILL) })
	second := &proxy{}
	s.t.Cleanup(second.close)
	s.via = second
	s.startManager() // the story's manager is the second from here on, which waits

	sent := through.listens()
	through.waits.Store(false)
	s.setImage("2")
	s.Eventually(s.leader, patience, tick).ShouldNot(Or(Equal(holder), BeEmpty()), "waiting for the other to take over")
	s.Expect(through.reached()).To(Succeed())
	before := len(sent())
	if end.lives {
		s.waitFor("the new leader to go on", begun(2))
		s.Expect(leader.signal(syscall.SIGCONT)).To(Succeed())
	}
	s.Eventually(leader.ended, patience, tick).Should(BeTrue(), "waiting for the old leader to end")
	s.Expect(sent()[before:]).To(BeEmpty(), "the old leader writes nothing")

	s.waitFor("the rollout to complete", rolloutDone(2))
	s.Expect(s.since(2)).To(Equal(stepwise))
}

// mayElect lets the manager have a lease in the namespace of the story.
func (s *story) mayElect() {
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: "leases"}
	s.Expect(lab.admin.Create(s.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}, // who leads
	}})).To(Succeed())
	s.Expect(lab.admin.Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "leases"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: pawlNamespace, Name: pawlAccount}},
	})).To(Succeed())
}

// leader is who holds the lease.
func (s *story) leader() string {
	lease := &coordinationv1.Lease{}
	if lab.admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "pawl.pawl.dev"}, lease) != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// listens returns what asks for the writes that came to the proxy since.
func (p *proxy) listens() func() []string {
	var mu sync.Mutex
	var writes []string
	see := func(r *http.Request) {
		if write := writeOf(r); write != "" && !strings.HasSuffix(write, " events") && !strings.HasSuffix(write, " leases") {
			mu.Lock()
			defer mu.Unlock()
			writes = append(writes, fmt.Sprintf("%s %s at %s", write, r.URL.Path, time.Now().Format(time.TimeOnly)))
		}
	}
	p.seeing.Store(&see)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(writes)
	}
}
