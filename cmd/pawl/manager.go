package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/controllers"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=pawl-system,verbs=get;create;update
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create,roleName=pawl-review-tokens
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create,roleName=pawl-review-tokens
// +kubebuilder:rbac:groups="",resources=events,namespace=pawl-system,verbs=create;patch

// manage runs the manager until ctx ends. Before it starts it waits until the cluster can be worked with, and says what
// is missing; its health endpoints are up all the while, so that nobody restarts it for that.
func manage(ctx context.Context, o options) error {
	config, err := load(o.kubeconfig)
	if err != nil {
		return err
	}
	health := &health{}
	if err := health.serve(ctx, o.healthAddress); err != nil {
		return err
	}
	found, err := await(ctx, config, o, health)
	if errors.Is(err, context.Canceled) {
		return nil // told to stop while it waited
	}
	if err != nil {
		return err
	}
	if !found.sweeps {
		o.retentionDays = 0
	}
	config.Wrap(newOutage(ctrl.Log, clock.RealClock{}))
	if o.leaderElect {
		config.Wrap(newFence(clock.RealClock{}, leaseName))
	}
	var mgr ctrl.Manager
	err = insist(ctx, func() (err error) { // it asks the API server for its kinds
		mgr, err = newManager(config, o)
		return err
	})
	if err != nil {
		return err
	}
	err = controllers.Setup(ctx, mgr, controllers.Options{
		Patience:    controllers.Patience{StallGrace: o.stallGrace, ProgressDeadline: o.progressDeadline},
		Concurrency: o.concurrency, Namespace: home,
		ReadNodes: found.nodes, ReadClaims: found.claims, ReadEvents: found.events,
		ReadBudgets: found.budgets, ReadPolicies: found.policies, JudgePolicies: found.judges,
		Restores: found.restores, Adopts: found.adopts,
		Retention: time.Duration(o.retentionDays) * 24 * time.Hour, Namespaces: o.namespaces,
	})
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := mgr.Add(health); err != nil {
		return fmt.Errorf("set up the health endpoints: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// load reads the kubeconfig, or the credentials of the pod. Other places where clients look, such as ~/.kube/config,
// hold a person's credentials, and Pawl never acts as a person.
func load(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		config, err = rest.InClusterConfig()
	}
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("not in a cluster: give --kubeconfig, or run `make run` to try Pawl on this machine")
	}
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return config, nil
}

// leaseName is the lease that the replicas share.
const leaseName = "pawl.pawl.dev"

func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register the types: %w", err)
	}
	caches := cache.Options{
		DefaultTransform:         cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: controllers.WatchErrors(ctrl.Log),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.StatefulSet{}:           {Transform: controllers.SlimStatefulSet},
			&corev1.Pod{}:                   {Transform: controllers.SlimPod},
			&corev1.PersistentVolumeClaim{}: {Transform: controllers.SlimClaim},
		},
	}
	if len(o.namespaces) > 0 {
		caches.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.namespaces {
			caches.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	serving := metricsserver.Options{BindAddress: o.metrics, SecureServing: o.metricsSecure, CertDir: o.metricsCerts}
	if o.metricsSecure {
		serving.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	retry := 800 * time.Millisecond // a replica in waiting looks at the lease every 0.8 to 1.76 s: it takes over within 2 s
	renew := renewDeadline
	graceful := 25 * time.Second // more than one write may take, less than a kubelet waits
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: caches, Logger: ctrl.Log,
		LeaderElection: o.leaderElect, LeaderElectionID: leaseName, LeaderElectionNamespace: o.leaderNamespace,
		LeaderElectionReleaseOnCancel: true,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		Metrics:                       serving,
		HealthProbeBindAddress:        "0",
		GracefulShutdownTimeout:       &graceful,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}
