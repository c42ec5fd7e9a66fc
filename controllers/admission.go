package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// In its own namespace only, and only ever as a dry run: to see what the admission policy makes of a new StatefulSet.
// +kubebuilder:rbac:groups=apps,resources=statefulsets,namespace=pawl-system,verbs=create

// Admission finds out whether the admission policies are in force, and tells when that changes. Without them Pawl is as
// correct, but a new template is parked only once Pawl has seen it, and nobody knows who changed what.
type Admission struct {
	Client    client.Client
	Recorder  events.EventRecorder
	Log       logr.Logger
	Namespace string // where Pawl runs, and may try what becomes of a new object

	inForce atomic.Bool
	said    string
}

// How often to look: soon again while a policy may just have been created, then ever more rarely.
const (
	firstCheck = 10 * time.Second
	dailyCheck = 24 * time.Hour
)

var admissionInForce = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Name: "pawl_admission_policy_in_force",
	Help: "1 if the admission policies of Pawl were in force when last checked, at start-up and daily; else 0.",
})

// InForce reports what the newest check found. Before the first it is false: in doubt nobody is named.
func (a *Admission) InForce() bool { return a != nil && a.inForce.Load() }

// Start checks daily, until ctx ends; while the policies are not in force more often.
func (a *Admission) Start(ctx context.Context) error {
	for pause := firstCheck; ; pause = min(2*pause, dailyCheck) {
		was := a.InForce()
		if was {
			pause = dailyCheck
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			a.Check(ctx)
		}
		if was && !a.InForce() {
			pause = firstCheck / 2 // it is gone: soon again
		}
	}
}

// NeedLeaderElection is false: a replica in waiting has to know as well.
func (a *Admission) NeedLeaderElection() bool { return false }

// Check asks the API server what it would make of two new objects.
func (a *Admission) Check(ctx context.Context) {
	try, done := context.WithTimeout(ctx, writeTimeout)
	defer done()
	err := errors.Join(a.parks(try), a.names(try))
	if ctx.Err() != nil {
		return // told to stop
	}
	a.inForce.Store(err == nil)
	admissionInForce.Set(map[bool]float64{true: 1}[err == nil])
	a.tell(err)
}

// errNotInForce is the answer of a cluster without the policy, or with one that does something else.
var errNotInForce = errors.New("is not in force")

// parks: a new StatefulSet that is handed to Pawl comes out parked.
func (a *Admission) parks(ctx context.Context) error {
	labels := map[string]string{"app": probeName}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: probeName, Namespace: a.Namespace, Labels: map[string]string{v1alpha1.ModeLabel: string(v1alpha1.ModeEnforce)},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "none", Image: "none.invalid/none", SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					}}},
					SecurityContext: &corev1.PodSecurityContext{ // else a namespace with Pod Security warns, and Pawl logs that
						RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	}
	if err := a.Client.Create(ctx, set, client.DryRunAll); err != nil {
		return fmt.Errorf("try the policy pawl-statefulset: %w", err)
	}
	if partitionOf(set) != statemachine.Parked || set.Annotations[v1alpha1.ChangedByAnnotation] == "" {
		return fmt.Errorf("the policy pawl-statefulset %w", errNotInForce)
	}
	return nil
}

// names: a RolloutProgress that is steered says by whom.
func (a *Admission) names(ctx context.Context) error {
	progress := &v1alpha1.RolloutProgress{
		ObjectMeta: metav1.ObjectMeta{Name: probeName, Namespace: a.Namespace},
		Spec:       v1alpha1.RolloutProgressSpec{Paused: new(true)},
	}
	if err := a.Client.Create(ctx, progress, client.DryRunAll); err != nil {
		return fmt.Errorf("try the policy pawl-rolloutprogress: %w", err)
	}
	if progress.Annotations[v1alpha1.ChangedByAnnotation] == "" {
		return fmt.Errorf("the policy pawl-rolloutprogress %w", errNotInForce)
	}
	return nil
}

const probeName = "pawl-admission-check"

// tell says what was found, once.
func (a *Admission) tell(err error) {
	now := "in force"
	if err != nil {
		now = err.Error()
	}
	if a.said == now {
		return
	}
	first := a.said == ""
	a.said = now
	deployment := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: a.Namespace, Name: reporter}
	switch {
	case err != nil:
		_, remedy := Diagnose(err)
		if errors.Is(err, errNotInForce) {
			remedy = "apply config/admission (Kubernetes 1.36 or later, or the feature gate MutatingAdmissionPolicy)"
		}
		a.Log.Info("the admission policy is not in force, or this cannot be seen: Pawl works, but a new template is parked only "+
			"after Pawl has seen it, and the history does not name people", logReason, err.Error(), logRemedy, remedy)
		a.Recorder.Eventf(deployment, nil, corev1.EventTypeWarning, "AdmissionNotInForce", "Check", "%s. Remedy: %s", err.Error(), remedy)
	case first:
		a.Log.Info("the admission policy is in force")
	default:
		a.Log.Info("the admission policy is in force now")
		a.Recorder.Eventf(deployment, nil, corev1.EventTypeNormal, "AdmissionInForce", "Check", "The admission policy is in force now.")
	}
}
