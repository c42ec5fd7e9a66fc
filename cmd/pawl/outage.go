package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// hushFor is how long the API server may be away without a word: a restart of a load balancer is no news.
const hushFor = 3 * time.Second

// outage tells once that the API server has stopped answering, and once that it is back. The watches of client-go try a
// refused connection again for ever without a word, so nobody else would say why nothing moves.
type outage struct {
	clock clock.PassiveClock
	log   logr.Logger

	mu    sync.Mutex
	since time.Time // of the first try without an answer; zero while there are answers
	told  bool
}

// newOutage is the transport of rest.Config.Wrap.
func newOutage(log logr.Logger, c clock.PassiveClock) func(http.RoundTripper) http.RoundTripper {
	shared := &outage{log: log, clock: c}
	return func(next http.RoundTripper) http.RoundTripper { return through{next, shared} }
}

// through is one of the transports that go to the same API server.
type through struct {
	http.RoundTripper
	outage *outage
}

func (t through) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if !errors.Is(err, context.Canceled) { // Pawl hung up
		t.outage.heard(err)
	}
	return response, err //nolint:wrapcheck // as it is, this is a transport
}

// heard takes the outcome of one request; any answer, a refusal too, shows that the API server is there.
func (o *outage) heard(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	switch {
	case err == nil && o.told:
		o.log.Info("the API server answers again: Pawl goes on by itself", "since", o.since, "away", now.Sub(o.since).Round(time.Second).String())
		fallthrough
	case err == nil:
		o.since, o.told = time.Time{}, false
	case o.since.IsZero():
		o.since = now
	case !o.told && now.Sub(o.since) >= hushFor:
		o.told = true
		o.log.Error(err, "the API server does not answer: no step is taken until it does, and Pawl will try again",
			"since", o.since, "reason", "Unreachable", "remedy", "see whether the API server is up and can be reached from here")
	}
}
