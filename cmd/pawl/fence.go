package main

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// renewDeadline is how long a leader goes on without having renewed its lease; another replica waits 15 s before it takes
// the lease over.
const renewDeadline = 10 * time.Second

// errFenced is a write that was not sent.
var errFenced = errors.New("not sent: the lease was not renewed in time, so another replica may work by now")

// fence keeps a replica from writing after it has lost its lease without knowing: a process that was stopped, or whose
// machine was, goes on where it was, and the election tells it a moment later. What it had sent before is guarded by the
// resourceVersion that it was decided on.
type fence struct {
	clock clock.PassiveClock
	lease string // the end of its path

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was sent
}

// newFence is the transport of rest.Config.Wrap.
func newFence(c clock.PassiveClock, lease string) func(http.RoundTripper) http.RoundTripper {
	shared := &fence{clock: c, lease: "/leases/" + lease}
	return func(next http.RoundTripper) http.RoundTripper { return fenced{next, shared} }
}

// fenced is one of the transports that go to the same API server.
type fenced struct {
	http.RoundTripper
	fence *fence
}

func (t fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	if worksOn(request) && !t.fence.holds() {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errFenced
	}
	sent := t.fence.clock.Now()
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusMultipleChoices && t.fence.renews(request) {
		t.fence.mu.Lock()
		t.fence.renewed = sent
		t.fence.mu.Unlock()
	}
	return response, err //nolint:wrapcheck // as it is, this is a transport
}

// renews reports whether a request takes the lease or keeps it. Only the leader writes it, and whoever wants to be.
func (f *fence) renews(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, f.lease) ||
		r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/leases")
}

// holds reports whether the lease was renewed in time, by both clocks: one of them stands while a machine sleeps, the other
// is set.
func (f *fence) holds() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	return !f.renewed.IsZero() && now.Sub(f.renewed) < renewDeadline && now.Round(0).Sub(f.renewed.Round(0)) < renewDeadline
}

// worksOn reports whether a request changes what only the leader may change. Leases, questions and the Kubernetes Events
// that go with both belong to every replica.
func worksOn(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if r.URL.Query().Has("dryRun") || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events") {
		return false
	}
	return !strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/") && !strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/")
}
