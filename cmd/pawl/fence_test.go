package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

// server answers every request with a status, or not at all.
type server struct {
	status int
	takes  func()
	seen   []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	s.takes()
	if s.status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestOnlyWhoHasRenewedTheLeaseWrites(t *testing.T) {
	const (
		leases = "/apis/coordination.k8s.io/v1/namespaces/pawl-system/leases"
		lease  = leases + "/pawl.pawl.dev"
		set    = "/apis/apps/v1/namespaces/default/statefulsets/db"
	)
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	turn := func(by time.Duration) { now.SetTime(now.Now().Add(by)) }
	api := &server{status: http.StatusOK, takes: func() {}}
	transport := newFence(now, "pawl.pawl.dev")(api)
	send := func(method, path string) error {
		response, err := transport.RoundTrip(httptest.NewRequest(method, path, strings.NewReader("{}")))
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	refused := func(method, path string) {
		t.Helper()
		before := len(api.seen)
		g.Expect(send(method, path)).To(MatchError(errFenced))
		g.Expect(api.seen).To(HaveLen(before), "nothing is sent")
	}

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		refused(method, set) // it never had the lease
	}
	for _, all := range [][2]string{
		{http.MethodGet, set},
		{http.MethodPost, "/apis/apps/v1/namespaces/pawl-system/statefulsets?dryRun=All"},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		{http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews"},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/default/events"},
		{http.MethodGet, lease},
	} {
		g.Expect(send(all[0], all[1])).To(Succeed(), "%s %s is for every replica", all[0], all[1])
	}
	refused(http.MethodPatch, set) // and none of these took it

	api.status = http.StatusConflict
	g.Expect(send(http.MethodPut, lease)).To(Succeed())
	refused(http.MethodPatch, set) // another took it

	api.status = http.StatusCreated
	g.Expect(send(http.MethodPost, leases)).To(Succeed())
	g.Expect(send(http.MethodPatch, set)).To(Succeed())

	api.status, api.takes = http.StatusOK, func() { turn(4 * time.Second) }
	g.Expect(send(http.MethodPut, lease)).To(Succeed())
	api.takes = func() {}
	turn(renewDeadline - 4*time.Second - 1)
	g.Expect(send(http.MethodPatch, set)).To(Succeed())
	turn(1)
	refused(http.MethodPatch, set) // it counts from when it was sent

	api.status = 0
	g.Expect(send(http.MethodPut, lease)).NotTo(Succeed())
	refused(http.MethodPatch, set) // nobody knows whether it was renewed
	api.status = http.StatusOK
	g.Expect(send(http.MethodPut, lease)).To(Succeed())
	g.Expect(send(http.MethodPatch, set)).To(Succeed())
}
