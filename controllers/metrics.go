package controllers

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"pawl.dev/pawl/statemachine"
)

// What happened since this process started. All of it follows from transitions that were recorded, so nothing is
// counted that a crash undid, and durations that began before a restart are whole.
var (
	transitions = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "pawl_transitions_total",
		Help: "Transitions that were recorded, by type (docs/events.md).",
	}, []string{"type"})
	stepDuration = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "pawl_step_duration_seconds",
		Help:    "Time from StepStarted to StepCompleted: how long it took to replace the pods of a step.",
		Buckets: []float64{1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600},
	})
	rolloutDuration = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
		Name:    "pawl_rollout_duration_seconds",
		Help:    "Time from RolloutStarted to the end of the rollout, by outcome: Completed, RolledBack, Superseded or Abandoned.",
		Buckets: []float64{10, 30, 60, 120, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600},
	}, []string{"outcome"})
	blockedSeconds = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
		Name: "pawl_blocked_seconds_total",
		Help: "Time that rollouts spent in Blocked, in seconds, counted when they leave it.",
	})
	podsReplaced = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
		Name: "pawl_pods_replaced_total",
		Help: "Dead pods that Pawl deleted so that they come back at the target.",
	})
	bypasses = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "pawl_bypasses_total",
		Help: "Steps that did not ask for the health of the other pods, by ground: PodDead, OnlyUnhealthyPod, NothingToProtect or Forced.",
	}, []string{"reason"})
	gateResults = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "pawl_gate_results_total",
		Help: "Answers of gates in recorded transitions (steps, and waits for a gate), by gate and result: Open, Closed, Error or Bypassed. " +
			"The gate DisruptionBudget is all PodDisruptionBudgets.",
	}, []string{"gate", "result"})
	writeDuration = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
		Name: "pawl_write_duration_seconds",
		Help: "Time that a write to the API server took, by what it did (record: status; act: partition, pod or current revision; " +
			"seal: RolloutRecord) and result: ok, conflict (what was decided on had changed, it is decided again) or error.",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20},
	}, []string{"write", "result"})
)

// bypassing are the grounds on which a step does not ask for the health of the others.
var bypassing = []statemachine.Reason{
	statemachine.ReasonPodDead, statemachine.ReasonOnlyUnhealthyPod, statemachine.ReasonNothingToProtect, statemachine.ReasonForced,
}

// verdicts are the answers of gates.
var verdicts = []statemachine.Verdict{statemachine.GateOpen, statemachine.GateClosed, statemachine.GateError, statemachine.GateBypassed}

// All of them are there from the start: what appears with its first event has no increase that Prometheus can see. Those
// of the gates of a policy come with it (programs).
func init() {
	for _, e := range statemachine.EventTypes() {
		transitions.WithLabelValues(string(e))
	}
	for _, o := range []statemachine.Outcome{
		statemachine.OutcomeCompleted, statemachine.OutcomeRolledBack, statemachine.OutcomeSuperseded, statemachine.OutcomeAbandoned,
	} {
		rolloutDuration.WithLabelValues(string(o))
	}
	for _, r := range bypassing {
		bypasses.WithLabelValues(string(r))
	}
	for _, v := range []statemachine.Verdict{statemachine.GateOpen, statemachine.GateClosed} {
		gateResults.WithLabelValues(string(statemachine.ReasonDisruptionBudget), string(v))
	}
	for _, write := range []string{writeRecord, writeAct, writeSeal} {
		for _, result := range []string{writeOK, writeConflict, writeError} {
			writeDuration.WithLabelValues(write, result)
		}
	}
}

// count takes events into the metrics once they are recorded; s is the state before them.
func count(s statemachine.State, events []statemachine.Event) {
	for _, e := range events {
		next, err := statemachine.Fold(s, []statemachine.Event{e})
		if err != nil {
			return // it was recorded, so it folds
		}
		countOne(s, next, e)
		s = next
	}
}

// countOne takes in one event, with the states before and after it.
func countOne(before, after statemachine.State, e statemachine.Event) {
	transitions.WithLabelValues(string(e.Type)).Inc()
	switch e.Type {
	case statemachine.StepCompleted:
		stepDuration.Observe(span(before.Step.StartedAt, e.Time))
	case statemachine.PodReplaced:
		podsReplaced.Inc()
	case statemachine.StepStarted:
		if slices.Contains(bypassing, e.Reason) {
			bypasses.WithLabelValues(string(e.Reason)).Inc()
		}
	default:
	}
	for _, g := range e.Gates {
		gateResults.WithLabelValues(g.Name, string(g.Result)).Inc()
	}
	if before.Name == statemachine.Blocked && after.Name != statemachine.Blocked {
		blockedSeconds.Add(span(before.Block.Since, e.Time))
	}
	if r := before.Ended(e); before.Rollout.Open() && r.Outcome != "" {
		rolloutDuration.WithLabelValues(string(r.Outcome)).Observe(span(r.StartedAt, r.FinishedAt))
	}
}

// span is the time between two transitions in seconds; a clock that was set back is no time.
func span(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }

// The writes that are timed, and how they go.
const (
	writeRecord = "record"
	writeAct    = "act"
	writeSeal   = "seal"

	writeOK       = "ok"
	writeConflict = "conflict"
	writeError    = "error"
)

// timed observes how long a write took, and how it went.
func timed(write string, do func() error) error {
	began := time.Now()
	err := do()
	result := writeOK
	switch {
	case err != nil && stale(err):
		result = writeConflict
	case err != nil:
		result = writeError
	}
	writeDuration.WithLabelValues(write, result).Observe(time.Since(began).Seconds())
	return err
}
