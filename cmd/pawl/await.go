package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/controllers"
)

// found is what the cluster allows.
type found struct{ nodes, claims, events, budgets, policies, judges, restores, adopts, sweeps bool }

// await returns once the cluster can be worked with: the API server answers, Pawl's types are installed, and it may do
// what it cannot do without. What is in the way is said once, and tried again with a back-off.
func await(ctx context.Context, config *rest.Config, o options, h *health) (found, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return found{}, fmt.Errorf("make a client: %w", err)
	}
	said := ""
	backOff := wait.Backoff{Duration: time.Second, Factor: 1.5, Steps: 10, Cap: 30 * time.Second}
	for {
		f, err := look(ctx, client, o)
		cause := err
		var missing *obstacle
		switch {
		case err == nil:
			h.wait("the caches are not filled")
			return f, nil
		case ctx.Err() != nil:
			return f, fmt.Errorf("wait for the cluster: %w", ctx.Err())
		case !errors.As(err, &missing):
			kind, remedy := controllers.Diagnose(err)
			missing = &obstacle{kind, "the API server does not answer as it should", remedy}
		default:
			cause = nil // an obstacle says it all itself
		}
		h.wait(missing.what)
		if now := missing.kind + missing.what; said != now {
			said = now
			ctrl.Log.Error(cause, missing.what+", will try again", "reason", missing.kind, "remedy", missing.remedy)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backOff.Step()):
		}
	}
}

// obstacle is why Pawl cannot begin yet.
type obstacle struct{ kind, what, remedy string }

func (o *obstacle) Error() string { return o.what }

const grant = "apply config/rbac (kubectl apply -k config/default)"

func look(ctx context.Context, client kubernetes.Interface, o options) (found, error) {
	policies, err := installed(client)
	if err != nil {
		return found{}, err
	}
	refused, err := refusals(ctx, client, o)
	if err != nil {
		return found{}, err
	}
	f := foundWithout(refused)
	f.policies, f.judges = f.policies && policies, f.judges && policies
	var needed []string
	for _, p := range refused {
		if p.without == "" {
			needed = append(needed, p.String())
		}
	}
	if len(needed) > 0 {
		what := "Pawl lacks permissions: " + strings.Join(needed, ", ")
		return f, &obstacle{"Forbidden", what, grant}
	}
	for _, p := range refused {
		ctrl.Log.Info("Pawl may not "+p.String()+": "+p.without, "remedy", grant)
	}
	if !policies {
		ctrl.Log.Info("RolloutPolicy is not installed: "+withoutPolicies, "remedy", "apply config/crd, and restart the manager")
	}
	return f, tellVersion(client)
}

// foundWithout is what is left without some permissions.
func foundWithout(refused []permission) found {
	f := found{
		nodes: true, claims: true, events: true, budgets: true, policies: true, judges: true, restores: true, adopts: true, sweeps: true,
	}
	for _, p := range refused {
		if lost := f.needs(p); lost != nil {
			*lost = false
		}
	}
	return f
}

// needs is what a permission is for, if Pawl has to know that it goes without.
func (f *found) needs(p permission) *bool {
	switch what := p.resource; {
	case what == "nodes":
		return &f.nodes
	case what == "persistentvolumeclaims":
		return &f.claims
	case what == "events" && p.verb == "list":
		return &f.events
	case what == "poddisruptionbudgets":
		return &f.budgets
	case what == "rolloutpolicies" && p.sub == "status":
		return &f.judges
	case what == "rolloutpolicies":
		return &f.policies
	case what == "rolloutprogresses" && p.verb == "patch":
		return &f.adopts
	case what == "rolloutrecords" && p.verb == "delete":
		return &f.sweeps
	case what == "statefulsets" && p.sub == "status":
		return &f.restores
	default:
		return nil
	}
}

// installed looks for the custom resources. Without RolloutPolicy, as on those of an earlier version, Pawl works as that did.
func installed(client kubernetes.Interface) (policies bool, err error) {
	list, err := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	kind, _ := controllers.Diagnose(err)
	if err != nil && kind != "NotInstalled" && kind != "Conflict" {
		return false, fmt.Errorf("look for RolloutProgress: %w", err)
	}
	seen := map[string]bool{}
	if list != nil {
		for _, r := range list.APIResources {
			seen[r.Name] = true
		}
	}
	switch remedy := "apply config/crd or run make run"; {
	case !seen["rolloutprogresses"]:
		return false, &obstacle{"NotInstalled", "RolloutProgress is not installed", remedy}
	case !seen["rolloutrecords"]:
		return false, &obstacle{"NotInstalled", "RolloutRecord is not installed", remedy}
	}
	return seen["rolloutpolicies"], nil
}

// tellVersion says what is different on older clusters.
func tellVersion(client kubernetes.Interface) error {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	const firstWithAdmission = 36
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err == nil && version.Major == "1" && minor < firstWithAdmission {
		ctrl.Log.Info("this Kubernetes is older than 1.36: Pawl works, but a new template is parked only after Pawl has "+
			"seen it, so the StatefulSet controller may already be replacing the top pod", "version", version.GitVersion)
	}
	return nil
}
