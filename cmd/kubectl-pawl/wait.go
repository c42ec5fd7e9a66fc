package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
)

// Exit codes of wait beside 0.
const (
	exitTimeout   = 2
	exitBlocked   = 3
	exitOvertaken = 4
)

type waitCommand struct {
	*plugin
	timeout time.Duration

	key      types.NamespacedName
	revision string // what it waits for, once that is known
	told     string
}

func newWait(p *plugin) *cobra.Command {
	w := &waitCommand{plugin: p}
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until all pods of a StatefulSet run its template as it is now",
		Long: "Wait until all pods of a StatefulSet run its template as it is now, and tell of every change on the way. It goes by\n" +
			"the revision, so it may be started right after the template was changed.\n\n" +
			"Exit code: 0 done, 2 the time is up, 3 Blocked (it may go on once someone helps), 4 another change came, 1 anything else.",
		Example: "  kubectl set image statefulset/db mysqld=mysql:8.4.9 && kubectl pawl wait db --timeout 1h",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return w.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().DurationVar(&w.timeout, "timeout", 30*time.Minute, "how long to wait; 0 is for ever")
	return cmd
}

// every is how often to look: a rollout takes minutes.
const every = time.Second

func (w *waitCommand) run(ctx context.Context, name string) error {
	if w.timeout < 0 {
		return fmt.Errorf("--timeout=%s: must not be negative", w.timeout)
	}
	namespace, err := w.namespace()
	if err != nil {
		return err
	}
	c, err := w.client()
	if err != nil {
		return err
	}
	w.key = types.NamespacedName{Namespace: namespace, Name: name}
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	for {
		done, err := w.look(ctx, c)
		switch {
		case done || err != nil && lasting(err):
			return err
		case err != nil && ctx.Err() == nil:
			w.tell(fmt.Sprintf("cannot look, will try again: %v", err))
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return &answerError{exitTimeout, fmt.Sprintf("time is up after %s: %s", w.timeout, w.told)}
			}
			return fmt.Errorf("stop waiting: %w", ctx.Err())
		case <-time.After(every):
		}
	}
}

// lasting errors do not go by themselves: everything but an API server that is away or busy.
func lasting(err error) bool {
	_, answer := errors.AsType[*answerError](err)
	return answer || errors.Is(err, errUnmanaged) || meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

var errUnmanaged = errors.New("not managed by Pawl")

// look looks once.
func (w *waitCommand) look(ctx context.Context, c client.Client) (done bool, err error) {
	set := &appsv1.StatefulSet{}
	if err := c.Get(ctx, w.key, set); err != nil {
		return false, fmt.Errorf("read the StatefulSet: %w", err)
	}
	if set.Labels[v1alpha1.ModeLabel] == "" {
		return false, fmt.Errorf("StatefulSet %s: %w: it has no label %s. Wait with kubectl rollout status", w.key, errUnmanaged, v1alpha1.ModeLabel)
	}
	if set.Status.ObservedGeneration != set.Generation {
		w.tell("the StatefulSet controller has not seen the template yet")
		return false, nil
	}
	if w.revision == "" {
		w.revision = set.Status.UpdateRevision
	}
	rp := &v1alpha1.RolloutProgress{}
	if err := c.Get(ctx, w.key, rp); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the RolloutProgress: %w", err)
	}
	if done, err := w.judge(rp); done || err != nil {
		return done, err
	}
	if other := set.Status.UpdateRevision; other != w.revision {
		return false, &answerError{exitOvertaken, fmt.Sprintf("another change came: %s is no longer the target, %s is", w.revision, other)}
	}
	return false, nil
}

// judge says what a RolloutProgress says of the revision. Just after it was labelled a StatefulSet has no rollout: then
// all pods were at the stable revision.
func (w *waitCommand) judge(rp *v1alpha1.RolloutProgress) (done bool, err error) {
	st := rp.Status
	known := st.Rollout != nil && st.Rollout.ToRevision == w.revision
	stalled := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled)
	switch {
	case stalled != nil && stalled.Status == "True" && (known || stalled.Reason != st.Reason): // of another rollout, if it only repeats status
		return false, &answerError{exitBlocked, fmt.Sprintf("Blocked: %s: %s", stalled.Reason, stalled.Message)}
	case !known && (st.Rollout != nil || st.StableRevision != w.revision):
		w.tell("Pawl has not seen revision " + w.revision + " yet")
		return false, nil
	case !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionReady):
		pod := ""
		if st.Pod != "" {
			pod = " " + st.Pod
		}
		w.tell(fmt.Sprintf("%s %s%s, %s updated: %s", st.State, st.Reason, pod, st.Progress, st.Message))
		return false, nil
	}
	fmt.Fprintf(w.Out, "done: %s\n", st.Message)
	return true, nil
}

// tell prints what is new.
func (w *waitCommand) tell(what string) {
	if what != w.told {
		fmt.Fprintf(w.Out, "%s  %s\n", w.now().UTC().Format("15:04:05Z"), what)
	}
	w.told = what
}
