package controllers

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// fleet exports where every rollout stands, read from the cache at each scrape. Status is the fold of what was
// recorded, so a restart changes nothing, and the series of an object vanish with it.
type fleet struct {
	cache   client.Reader
	leading <-chan struct{} // a replica in waiting says nothing, else every rollout is there twice
	log     logr.Logger

	mutex sync.Mutex
	sizes map[types.NamespacedName]size
}

// size of a status; it is only measured again when that has changed.
type size struct {
	version string
	bytes   int
}

var perSet = []string{"namespace", "statefulset"}

func fleetMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append(perSet[:2:2], labels...), nil)
}

var (
	metricState = fleetMetric("pawl_rollout_state_info",
		"Always 1, once for each StatefulSet: its state and reason (docs/reasons.md), the class of the stall "+
			"(terminal, pull, crash, config, ended, refused or soft; empty if it is none) and the pod that it is about.",
		"state", "reason", "class", "pod")
	metricSince     = fleetMetric("pawl_rollout_state_since_timestamp_seconds", "When state or reason last changed, in seconds since 1970.")
	metricStarted   = fleetMetric("pawl_rollout_started_timestamp_seconds", "When the current or last rollout started, in seconds since 1970.")
	metricPartition = fleetMetric("pawl_rollout_partition", "The partition that is recorded: pods at or above this index are released. It equals replicas when none is.")
	metricReplicas  = fleetMetric("pawl_rollout_replicas", "Pods that the StatefulSet wants.")
	metricUpdated   = fleetMetric("pawl_rollout_updated_replicas", "Pods that have finished their step to the revision of the rollout.")
	metricLedger    = fleetMetric("pawl_ledger_bytes", "Size of the status that holds the log, as JSON; earlier rollouts are in RolloutRecords.")
	perSetMetrics   = []*prometheus.Desc{metricState, metricSince, metricStarted, metricPartition, metricReplicas, metricUpdated, metricLedger}
)

// Describe implements prometheus.Collector.
func (f *fleet) Describe(out chan<- *prometheus.Desc) {
	for _, d := range perSetMetrics {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *fleet) Collect(out chan<- prometheus.Metric) {
	select {
	case <-f.leading:
	default:
		return
	}
	var list v1alpha1.RolloutProgressList
	if err := f.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		f.log.Error(err, "cannot export the rollouts")
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	sizes := make(map[types.NamespacedName]size, len(list.Items))
	for i := range list.Items {
		p := &list.Items[i]
		if !collect(out, p) {
			continue
		}
		key := client.ObjectKeyFromObject(p)
		sizes[key] = f.measure(key, p)
		out <- gauge(metricLedger, p, float64(sizes[key].bytes))
	}
	f.sizes = sizes
}

func (f *fleet) measure(key types.NamespacedName, p *v1alpha1.RolloutProgress) size {
	if s := f.sizes[key]; s.version == p.ResourceVersion {
		return s
	}
	text, err := json.Marshal(p.Status)
	if err != nil {
		return size{}
	}
	return size{version: p.ResourceVersion, bytes: len(text)}
}

func gauge(d *prometheus.Desc, p *v1alpha1.RolloutProgress, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{p.Namespace, p.Name}, labels...)...)
}

// collect sends the series of one StatefulSet, if there are any. One that is not Pawl's, or gone, has none.
func collect(out chan<- prometheus.Metric, p *v1alpha1.RolloutProgress) bool {
	st := &p.Status
	state, reason, class, pod, since := string(st.State), st.Reason, statemachine.Reason(st.Reason).Class(), st.Pod, st.Since.Time
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady); c != nil {
		switch c.Reason {
		case reasonNotManaged, reasonStatefulSetNotFound:
			return false
		case reasonLogDamaged, reasonUnknownMode: // what status says besides is not to be believed, or stands still
			stalled := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled)
			state, reason, class, pod = string(v1alpha1.StateBlocked), c.Reason, "soft", ""
			if stalled != nil {
				since = stalled.LastTransitionTime.Time
			}
		}
	}
	if state == "" {
		return false // nothing is recorded yet
	}
	out <- gauge(metricState, p, 1, state, reason, class, pod)
	out <- gauge(metricSince, p, seconds1970(since))
	if st.Rollout != nil {
		out <- gauge(metricStarted, p, seconds1970(st.Rollout.StartedAt.Time))
	}
	for _, g := range []struct {
		desc  *prometheus.Desc
		value *int32
	}{{metricPartition, st.Partition}, {metricReplicas, st.Replicas}, {metricUpdated, st.UpdatedReplicas}} {
		if g.value != nil {
			out <- gauge(g.desc, p, float64(*g.value))
		}
	}
	return true
}

func seconds1970(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
