package controllers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Patience is how long a rollout may stand still before it counts as stuck.
type Patience struct {
	StallGrace       time.Duration // for what heals rarely, such as a crash loop
	ProgressDeadline time.Duration // for what heals often, such as an unscheduled pod
}

// facts is all that one observation is made of: objects as the API server published them.
type facts struct {
	now         time.Time
	statefulSet *appsv1.StatefulSet
	pods        []corev1.Pod                            // candidates; those of another owner are left out
	nodes       map[string]corev1.Node                  // by name; nil when nodes may not be read
	claims      map[string]corev1.PersistentVolumeClaim // by name, of these pods; nil when claims may not be read
	namesakes   map[string]corev1.Pod                   // of absent pods
	said        map[types.UID][]corev1.Event            // what was read of Events; none unless something is late
	mayListen   bool                                    // whether Events may be read
	present     map[string]time.Time                    // when each pod was last seen, by name
	progress    *v1alpha1.RolloutProgress
	digest      string // of spec.template
	behindSince time.Time
	// templateRevision is the ControllerRevision that holds spec.template, if the status does not say.
	templateRevision string
	patience         Patience
	mayRestore       bool // whether status.currentRevision may be written
	authentic        bool // whether the annotation changed-by is what the admission policy wrote
}

// steer adds what people ask for in the RolloutProgress.
func (f facts) steer(o *statemachine.Observation) {
	if f.progress == nil {
		return
	}
	spec, notes := f.progress.Spec, f.progress.Annotations
	if spec.Paused != nil && *spec.Paused {
		o.Paused, o.PausedBy = true, f.person(notes, v1alpha1.PausedByAnnotation)
	}
	o.Approved, o.ApprovedBy = spec.ApprovedRevision, f.person(notes, v1alpha1.ApprovedByAnnotation)
	if force := spec.Force; force != nil && force.Partition != nil {
		o.Force = statemachine.Force{
			Revision: force.Revision, Partition: *force.Partition, Reason: force.Reason, By: f.person(notes, v1alpha1.ForcedByAnnotation),
		}
	}
}

// person is who an annotation says it was. Without the admission policy that is what anyone may have written.
func (f facts) person(annotations map[string]string, annotation string) string {
	if !f.authentic {
		return ""
	}
	return annotations[annotation]
}

// observe makes the one Observation that a decision is about. It is pure.
func observe(f facts) statemachine.Observation {
	set := f.statefulSet
	o := statemachine.Observation{
		Now:  instant(f.now),
		Name: set.Name, Namespace: set.Namespace, UID: string(set.UID), ResourceVersion: set.ResourceVersion,
		Created: instant(set.CreationTimestamp.Time), Deleting: set.DeletionTimestamp != nil,
		Mode: statemachine.Mode(set.Labels[v1alpha1.ModeLabel]),

		Generation: set.Generation, ObservedGeneration: set.Status.ObservedGeneration, BehindSince: instant(f.behindSince),
		Strategy:  string(set.Spec.UpdateStrategy.Type),
		Parallel:  set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement,
		Partition: partitionOf(set), Replicas: replicasOf(set), Start: startOf(set),
		MinReady:       time.Duration(set.Spec.MinReadySeconds) * time.Second,
		TemplateDigest: f.digest, TemplateRevision: f.templateRevision,
		CurrentRevision: set.Status.CurrentRevision, UpdateRevision: set.Status.UpdateRevision,
		UpdatedReplicas: set.Status.UpdatedReplicas,

		Cause: set.Annotations[v1alpha1.ChangeCauseAnnotation], MayRestore: f.mayRestore,
		StallGrace: f.patience.StallGrace, ProgressDeadline: f.patience.ProgressDeadline,
	}
	if o.Mode == statemachine.ModeEnforce { // in any other mode the annotation is anyone's to write
		o.ChangedBy = f.person(set.Annotations, v1alpha1.ChangedByAnnotation)
	}
	if set.Generation == set.Status.ObservedGeneration {
		o.TemplateRevision = set.Status.UpdateRevision
	}
	f.steer(&o)
	o.PartitionManager = partitionManager(set)
	o.Blind = statemachine.Blind{Nodes: f.nodes == nil, Claims: f.claims == nil, Events: !f.mayListen}
	o.Pods, o.Condemned = podsOf(set, f.pods, f.nodes)
	f.addClaims(o.Pods)
	f.addNamesakes(o.Pods)
	f.listen(&o)
	return o
}

// instant is a time as statemachine takes it: UTC, whole microseconds, and zero for what was never set. The kubelet
// publishes 1970 for containers that did not start.
func instant(t time.Time) time.Time {
	if t.Unix() <= 0 {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// since is instant for an optional time of an object.
func since(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return instant(t.Time)
}

// partitionOf reads the partition as the StatefulSet controller does: 0 when unset.
func partitionOf(set *appsv1.StatefulSet) int32 {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}

func replicasOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

func startOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return set.Spec.Ordinals.Start
}

// digestOf tells one template from another: SHA-256 of its JSON, in hex.
func digestOf(template corev1.PodTemplateSpec) (string, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode spec.template: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
