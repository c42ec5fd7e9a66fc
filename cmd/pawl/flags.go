package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// options are the flags of the manager.
type options struct {
	stallGrace, progressDeadline time.Duration
	namespaces                   []string
	leaderElect                  bool
	leaderNamespace              string
	healthAddress, metrics       string
	metricsSecure                bool
	metricsCerts                 string
	logFormat, logLevel          string
	kubeconfig                   string
	concurrency                  int
	retentionDays                int
}

// home is the namespace that Pawl is installed in, and the name of its service account there.
const (
	home    = "pawl-system"
	account = "pawl"
)

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("pawl", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprint(out, usage)
		f.PrintDefaults()
	}
	f.DurationVar(&o.stallGrace, "stall-grace", 30*time.Second,
		"how long a pod may show what rarely heals, such as ImagePullBackOff, before it is Blocked: 1s to 1h")
	f.DurationVar(&o.progressDeadline, "progress-deadline", 10*time.Minute,
		"how long a pod may take before it is Blocked whatever it shows: 10s to 24h, more than --stall-grace")
	f.Func("namespace", "watch these namespaces only, comma-separated or repeated (default all)", func(value string) error {
		o.namespaces = append(o.namespaces, strings.Split(value, ",")...)
		return nil
	})
	f.BoolVar(&o.leaderElect, "leader-elect", true, "run as one of several replicas, of which one works")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", home, "namespace of the lease")
	f.StringVar(&o.healthAddress, "health-probe-address", ":8081", "address of /healthz and /readyz; 0 is none")
	f.StringVar(&o.metrics, "metrics-bind-address", ":8443", "address of /metrics; 0 is none")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"serve /metrics over HTTPS, to those whose token may get /metrics; false serves everybody over HTTP")
	f.StringVar(&o.metricsCerts, "metrics-cert-dir", "", "directory of tls.crt and tls.key of /metrics (default self-signed)")
	f.StringVar(&o.logFormat, "log-format", "json", "json or console")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file with the cluster and the credentials (default those of the pod)")
	f.IntVar(&o.concurrency, "concurrency", 4, "StatefulSets to work on at once: 1 to 64")
	f.IntVar(&o.retentionDays, "retention-days", 90, "days after which a RolloutRecord is deleted, unless its RolloutPolicy has another time: 1 to 3650, or 0 for never, whatever a policy has")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("read the flags: %w", err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: flags only", f.Arg(0))
	}
	return o, o.check()
}

func (o options) check() error {
	if err := within("stall-grace", o.stallGrace, time.Second, time.Hour); err != nil {
		return err
	}
	if err := within("progress-deadline", o.progressDeadline, 10*time.Second, 24*time.Hour); err != nil {
		return err
	}
	if o.progressDeadline <= o.stallGrace {
		return fmt.Errorf("--progress-deadline=%s: must be more than --stall-grace=%s", o.progressDeadline, o.stallGrace)
	}
	if err := within("concurrency", o.concurrency, 1, 64); err != nil {
		return err
	}
	if err := within("retention-days", o.retentionDays, 0, 3650); err != nil {
		return err
	}
	if err := oneOf("log-format", o.logFormat, "json", "console"); err != nil {
		return err
	}
	if err := oneOf("log-level", o.logLevel, "debug", "info", "error"); err != nil {
		return err
	}
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("--namespace=%q: must be the name of a namespace: %s", namespace, problems[0])
		}
	}
	if problems := validation.IsDNS1123Label(o.leaderNamespace); len(problems) > 0 {
		return fmt.Errorf("--leader-election-namespace=%q: must be the name of a namespace: %s", o.leaderNamespace, problems[0])
	}
	return nil
}

func within[T int | time.Duration](name string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("--%s=%v: must be from %v to %v", name, value, low, high)
	}
	return nil
}

func oneOf(name, value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("--%s=%q: must be one of %s", name, value, strings.Join(allowed, ", "))
	}
	return nil
}
