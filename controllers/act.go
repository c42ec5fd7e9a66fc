package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/statemachine"
)

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets/status,verbs=patch,roleName=pawl-restore-revisions
// +kubebuilder:rbac:groups="",resources=pods,verbs=delete,roleName=pawl-delete-pods

// act carries out the one intent of a decision. Its events are stored by now (I6), and it may be the second time that
// it is tried, so every write is guarded by the uid and resourceVersion that the decision was made on (I8).
func (r *Reconciler) act(ctx context.Context, o statemachine.Observation, i statemachine.Intent, t *trace) error {
	ctx, done := writing(ctx)
	defer done()
	switch i.Kind {
	case statemachine.SetPartition:
		return r.setPartition(ctx, o, i.Partition, t)
	case statemachine.ReplacePod:
		return r.replacePod(ctx, o, i.Pod, t)
	case statemachine.RestoreRevision:
		return r.restoreRevision(ctx, o, i.Revision, t)
	case statemachine.NoIntent:
	}
	return nil
}

// setPartition writes the partition and nothing else. A merge patch with the resourceVersion is refused when it is
// stale, and works where rollingUpdate is absent; a JSON patch does neither.
func (r *Reconciler) setPartition(ctx context.Context, o statemachine.Observation, partition int32, t *trace) error {
	if o.Partition == partition {
		return nil // a write that changes nothing may still move pods by its side effects
	}
	rollingUpdate := map[string]any{"rollingUpdate": map[string]any{"partition": partition}}
	patch, set := guarded(o, "spec", map[string]any{"updateStrategy": rollingUpdate}), statefulSet(o)
	err := timed(writeAct, func() error { return r.Client.Patch(ctx, set, patch, client.FieldOwner(reporter)) })
	if err != nil {
		return fmt.Errorf("set the partition to %d: %w", partition, err)
	}
	if is := partitionOf(set); is != partition {
		return fmt.Errorf("set the partition to %d: it is %d: %w", partition, is, errPutBack)
	}
	t.statefulSet = set.ResourceVersion
	return nil
}

// errPutBack is a write that was accepted and changed on the way in.
var errPutBack = errors.New("something in admission put it back")

func (r *Reconciler) restoreRevision(ctx context.Context, o statemachine.Observation, revision string, t *trace) error {
	if o.CurrentRevision == revision {
		return nil
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	for range restoreAttempts {
		live, err := fetch(ctx, r.Live, key, &appsv1.StatefulSet{})
		if err != nil {
			return fmt.Errorf("read the StatefulSet again: %w", err)
		}
		if live == nil || !decidedOn(o, live) {
			return errReadAgain
		}
		o.ResourceVersion = live.ResourceVersion
		patch, set := guarded(o, "status", map[string]any{"currentRevision": revision}), statefulSet(o)
		err = timed(writeAct, func() error { return r.Client.Status().Patch(ctx, set, patch, client.FieldOwner(reporter)) })
		switch {
		case err == nil:
			t.statefulSet = set.ResourceVersion
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("restore status.currentRevision to %s: %w", revision, err)
		}
	}
	return errReadAgain
}

// restoreAttempts is how often one try to restore meets a status that was written meanwhile. While pods flap the
// StatefulSet controller writes its counts faster than a cache can follow; they are not what was decided on.
const restoreAttempts = 5

// decidedOn reports whether a StatefulSet is still what a restore was decided on.
func decidedOn(o statemachine.Observation, set *appsv1.StatefulSet) bool {
	return string(set.UID) == o.UID && set.Generation == o.Generation && set.DeletionTimestamp == nil &&
		set.Status.CurrentRevision == o.CurrentRevision && set.Status.UpdateRevision == o.UpdateRevision
}

func (r *Reconciler) replacePod(ctx context.Context, o statemachine.Observation, p statemachine.Pod, t *trace) error {
	uid := types.UID(p.UID)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: p.Name}}
	only := client.Preconditions{UID: &uid, ResourceVersion: &p.ResourceVersion}
	if err := timed(writeAct, func() error { return r.Client.Delete(ctx, pod, only) }); err != nil {
		return fmt.Errorf("delete the pod %s: %w", p.Name, err)
	}
	t.pod = uid
	return nil
}

func statefulSet(o statemachine.Observation) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
}

// guarded is a merge patch of one part of the StatefulSet as it was observed, and of no other.
func guarded(o statemachine.Observation, part string, content map[string]any) client.Patch {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion},
		part:       content,
	})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return client.RawPatch(types.MergePatchType, body)
}

// writeTimeout is how long one API write may take.
const writeTimeout = 20 * time.Second

// writing is a context for one write that is finished even when the manager is told to stop: half a decision is worth
// less than a late exit.
func writing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}
