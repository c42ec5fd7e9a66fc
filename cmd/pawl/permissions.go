package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// permission is something that Pawl may have to do.
type permission struct {
	verb, group, resource, sub string
	where                      string // namespace; empty is everywhere
	without                    string // what is lost without it; empty: Pawl cannot begin
}

func (p permission) String() string {
	what := p.verb + " " + p.resource
	if p.sub != "" {
		what += "/" + p.sub
	}
	if p.group != "" {
		what += "." + p.group
	}
	if p.where != "" {
		what += " in namespace " + p.where
	}
	return what
}

const (
	withoutNodes  = "a pod on a node that went silent is believed to be healthy for longer"
	withoutClaims = "a pod is replaced even if its volume is lost, so that it cannot come back"

	withoutBudgets  = "StatefulSets take no step, unless their RolloutPolicy has disruptionBudgets: Ignore"
	withoutPolicies = "no RolloutPolicy is in effect, and StatefulSets that name one take no step"
	withoutDeletion = "RolloutRecords are kept for ever, whatever --retention-days is"

	withoutReviews = "nobody can read /metrics, but for --metrics-secure=false"
)

// permissions are those that config/rbac grants; the test of this package compares the two.
var permissions = []permission{
	{verb: "list", group: "apps", resource: "statefulsets"},
	{verb: "watch", group: "apps", resource: "statefulsets"},
	{verb: "get", group: "apps", resource: "statefulsets"},
	{
		verb: "patch", group: "apps", resource: "statefulsets",
		without: "StatefulSets in mode Enforce are not stepped: only Observe works",
	},
	{verb: "list", resource: "pods"},
	{verb: "watch", resource: "pods"},
	{verb: "get", group: "pawl.dev", resource: "rolloutprogresses"},
	{verb: "list", group: "pawl.dev", resource: "rolloutprogresses"},
	{verb: "watch", group: "pawl.dev", resource: "rolloutprogresses"},
	{verb: "create", group: "pawl.dev", resource: "rolloutprogresses"},
	{verb: "update", group: "pawl.dev", resource: "rolloutprogresses", sub: "status"},
	{verb: "list", group: "pawl.dev", resource: "rolloutrecords"},
	{verb: "create", group: "pawl.dev", resource: "rolloutrecords"},
	{verb: "list", group: "apps", resource: "controllerrevisions"},
	{verb: "delete", group: "pawl.dev", resource: "rolloutrecords", without: withoutDeletion},
	{verb: "delete", resource: "pods", without: "a dead pod that the StatefulSet controller leaves alone is not replaced"},
	{
		verb: "patch", group: "apps", resource: "statefulsets", sub: "status",
		without: "after a re-creation with orphaned pods, a pod that is lost may come back at the new revision",
	},
	{
		verb: "patch", group: "pawl.dev", resource: "rolloutprogresses",
		without: "the RolloutProgress of a StatefulSet that is created again does not go with that one",
	},
	{
		verb: "create", group: "apps", resource: "statefulsets", where: home,
		without: "it is not known whether the admission policy is in force",
	},
	{verb: "list", resource: "nodes", without: withoutNodes},
	{verb: "watch", resource: "nodes", without: withoutNodes},
	{verb: "list", resource: "persistentvolumeclaims", without: withoutClaims},
	{verb: "watch", resource: "persistentvolumeclaims", without: withoutClaims},
	{verb: "list", group: "policy", resource: "poddisruptionbudgets", without: withoutBudgets},
	{verb: "watch", group: "policy", resource: "poddisruptionbudgets", without: withoutBudgets},
	{verb: "list", group: "pawl.dev", resource: "rolloutpolicies", without: withoutPolicies},
	{verb: "watch", group: "pawl.dev", resource: "rolloutpolicies", without: withoutPolicies},
	{verb: "update", group: "pawl.dev", resource: "rolloutpolicies", sub: "status", without: "a RolloutPolicy does not say whether it can be used"},
	{
		verb: "list", resource: "events",
		without: "why a pod is not created, or waits for its volumes, is not told",
	},
	{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews", without: withoutReviews},
	{verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews", without: withoutReviews},
	{verb: "create", group: "events.k8s.io", resource: "events", without: "there are no Kubernetes Events"},
}

// clusterWide are the resources that are in no namespace.
var clusterWide = []string{"nodes", "rolloutpolicies", "tokenreviews", "subjectaccessreviews"}

// neededBy reports whether the flags leave something to do with it.
func (p permission) neededBy(o options) bool {
	switch p.without {
	case withoutReviews:
		return o.metricsSecure && o.metrics != "0"
	case withoutDeletion:
		return o.retentionDays > 0
	default:
		return true
	}
}

// wanted are the permissions to ask for, as the flags have it.
func wanted(o options) []permission {
	all := make([]permission, 0, len(permissions)+2)
	for _, p := range permissions {
		if !p.neededBy(o) {
			continue
		}
		if len(o.namespaces) == 0 || p.where != "" || slices.Contains(clusterWide, p.resource) {
			all = append(all, p)
			continue
		}
		for _, p.where = range o.namespaces {
			all = append(all, p)
		}
	}
	if o.leaderElect {
		for _, verb := range []string{"get", "create", "update"} {
			all = append(all, permission{
				verb: verb, group: "coordination.k8s.io", resource: "leases", where: o.leaderNamespace,
			})
		}
	}
	return all
}

// insist does something up to three times: one lost answer of dozens must not begin all over.
func insist(ctx context.Context, do func() error) error {
	backOff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 3}
	return retry.OnError(backOff, func(error) bool { return ctx.Err() == nil }, do) //nolint:wrapcheck // it is that of do
}

// refusals are the permissions that Pawl does not have.
func refusals(ctx context.Context, client kubernetes.Interface, o options) ([]permission, error) {
	var refused []permission
	for _, p := range wanted(o) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.where, Verb: p.verb, Group: p.group, Resource: p.resource, Subresource: p.sub,
			},
		}}
		answer := review
		err := insist(ctx, func() (err error) {
			answer, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err //nolint:wrapcheck // it is below
		})
		if err != nil {
			return nil, fmt.Errorf("ask whether Pawl may %s: %w", p, err)
		}
		if !answer.Status.Allowed {
			refused = append(refused, p)
		}
	}
	return refused, nil
}
