package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// health serves /healthz and /readyz for the whole life of the process. It is ready once the caches are.
type health struct {
	waitingFor atomic.Pointer[string]
	ready      atomic.Bool
}

func (h *health) serve(ctx context.Context, address string) error {
	if address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--health-probe-address=%q: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", h.readyz)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with the process
	return nil
}

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	if h.ready.Load() {
		fmt.Fprintln(w, "ok")
		return
	}
	what := "it has just started"
	if reason := h.waitingFor.Load(); reason != nil {
		what = *reason
	}
	http.Error(w, "not ready: "+what, http.StatusServiceUnavailable)
}

func (h *health) wait(what string) { h.waitingFor.Store(&what) }

// Start is called by the manager when the caches are synced.
func (h *health) Start(ctx context.Context) error {
	h.ready.Store(true)
	<-ctx.Done()
	h.ready.Store(false)
	return nil
}

// NeedLeaderElection: a replica in waiting is ready too.
func (h *health) NeedLeaderElection() bool { return false }
