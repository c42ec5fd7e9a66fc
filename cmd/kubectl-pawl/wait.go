package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
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
	output  string

	key      types.NamespacedName
	revision string                    // what it waits for, once that is known
	progress *v1alpha1.RolloutProgress // as it was at the last look
	told     string
	said     string // in what it was stalled at the last look
}

func newWait(p *plugin) *cobra.Command {
	w := &waitCommand{plugin: p}
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until all pods of a StatefulSet run its template as it is now",
		Long: "Wait until all pods of a StatefulSet run its template as it is now, and tell of every change on the way. It goes by\n" +
			"the revision, so it may be started right after the template was changed. With -o table, wide, json or yaml, it tells\n" +
			"that on standard error, and prints the RolloutProgress as it stands at the end.\n\n" +
			"Exit code: 0 done, 2 the time is up, 3 Blocked (it may go on once someone helps), 4 another change came, 1 anything else.",
		Example: "  kubectl set image statefulset/db mysqld=mysql:8.4.9 && kubectl pawl wait db --timeout 1h",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(w.output, "text"); err != nil {
				return err
			}
			err := w.run(cmd.Context(), args[0])
			return cmp.Or(w.print(), err)
		},
	}
	outputFlag(cmd, &w.output, "text")
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

// talk is where it tells what goes on: where nothing reads standard output but a person.
func (w *waitCommand) talk() io.Writer {
	if w.output == "text" {
		return w.Out
	}
	return w.ErrOut
}

// print prints the RolloutProgress, if one was seen.
func (w *waitCommand) print() error {
	if w.output == "text" || w.progress == nil {
		return nil
	}
	if structured(w.output) {
		w.progress.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RolloutProgress")) // which a client drops
		return printObject(w.Out, w.progress, w.output)
	}
	st := w.progress.Status
	t := newTable(6, "Name", "State", "Reason", "Pod", "Updated", "Partition", "Since", "Message")
	partition := "<none>"
	if st.Partition != nil {
		partition = strconv.Itoa(int(*st.Partition))
	}
	t.Rows = []metav1.TableRow{{Cells: []any{
		w.progress.Name, string(st.State), st.Reason, orNone(st.Pod), st.Progress, partition, st.Since.UTC().Format(stamp), st.Message,
	}}}
	return printTable(w.Out, t, w.output)
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
	if w.revision == "" && !behind(set) { // later generations, Pawl's own among them, do not matter
		w.revision = set.Status.UpdateRevision
	}
	rp := &v1alpha1.RolloutProgress{}
	switch err := c.Get(ctx, w.key, rp); {
	case err == nil:
		w.progress = rp
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("read the RolloutProgress: %w", err)
	}
	if done, err := w.judge(set, rp.Status); done || err != nil {
		return done, err
	}
	if other := set.Status.UpdateRevision; w.revision != "" && other != w.revision {
		return false, &answerError{exitOvertaken, fmt.Sprintf("another change came: %s is no longer the target, %s is", w.revision, other)}
	}
	return false, nil
}

// behind reports whether the StatefulSet controller has not seen the newest generation yet.
func behind(set *appsv1.StatefulSet) bool { return set.Status.ObservedGeneration != set.Generation }

// judge says what a status says of the revision. Just after it was labelled a StatefulSet has no rollout: then all pods
// were at the stable revision. A status may be of another StatefulSet of this name, which was deleted.
func (w *waitCommand) judge(set *appsv1.StatefulSet, st v1alpha1.RolloutProgressStatus) (done bool, err error) {
	own := st.StatefulSetUID == string(set.UID)
	known := own && st.Rollout != nil && st.Rollout.ToRevision == w.revision
	found := own && st.Rollout == nil && st.StableRevision == w.revision
	if err := w.stalled(set, st, own, known); err != nil {
		return false, err
	}
	switch {
	case w.revision == "":
		w.tell("the StatefulSet controller has not seen the template yet")
	case !own:
		w.tell("Pawl has not seen this StatefulSet yet")
	case !known && !found:
		w.tell("Pawl has not seen revision " + w.revision + " yet")
	case !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionReady):
		w.tell(w.words(set, st))
	case found && !allAt(set, w.revision):
		w.tell(fmt.Sprintf("%d of %d pods are at %s", set.Status.UpdatedReplicas, ptr.Deref(set.Spec.Replicas, 1), w.revision))
	default:
		fmt.Fprintf(w.talk(), "done: %s\n", st.Message)
		return true, nil
	}
	return false, nil
}

// stalled is the answer if nothing goes on without help. What is said while another rollout is open is said of that one.
// What is said of none may be of yesterday: it is believed if it is still so at the next look.
func (w *waitCommand) stalled(set *appsv1.StatefulSet, st v1alpha1.RolloutProgressStatus, own, known bool) error {
	said := ""
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled)
	if c != nil && c.Status == metav1.ConditionTrue {
		said = fmt.Sprintf("Blocked: %s: %s", c.Reason, c.Message)
	}
	again := said == w.said
	w.said = said
	switch {
	case said == "":
		return nil
	case known, c.Reason != st.Reason: // else it repeats the log
	case !own || !again:
		return nil
	case c.Reason == string(statemachine.ReasonStatusStale):
		if !behind(set) {
			return nil
		}
	case st.Rollout != nil && st.Rollout.Outcome == "":
		return nil
	}
	return &answerError{exitBlocked, said}
}

// allAt reports whether all pods are at a revision by the word of the StatefulSet controller.
func allAt(set *appsv1.StatefulSet, revision string) bool {
	return set.Status.CurrentRevision == revision && set.Status.UpdateRevision == revision && set.Status.UpdatedReplicas == ptr.Deref(set.Spec.Replicas, 1)
}

// unhurried is how soon a partition that is recorded is written.
const unhurried = 5 * time.Second

// words are where the rollout stands.
func (w *waitCommand) words(set *appsv1.StatefulSet, st v1alpha1.RolloutProgressStatus) string {
	pod := ""
	if st.Pod != "" {
		pod = " " + st.Pod
	}
	said := fmt.Sprintf("%s %s%s, %s updated: %s", st.State, st.Reason, pod, st.Progress, st.Message)
	enforced := set.Labels[v1alpha1.ModeLabel] == string(v1alpha1.ModeEnforce)
	if enforced && st.Partition != nil && *st.Partition != effective(set) && w.now().Sub(st.Since.Time) > unhurried {
		said += fmt.Sprintf(" Partition %d is recorded and not written: look at the events of the StatefulSet for what refuses it.", *st.Partition)
	}
	return said
}

// effective is the partition as status has it: parked means that all pods are held back.
func effective(set *appsv1.StatefulSet) int32 {
	partition := int32(0)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = ptr.Deref(rolling.Partition, 0)
	}
	return min(partition, ptr.Deref(set.Spec.Replicas, 1))
}

// tell prints what is new.
func (w *waitCommand) tell(what string) {
	if what != w.told {
		fmt.Fprintf(w.talk(), "%s  %s\n", w.now().UTC().Format("15:04:05Z"), what)
	}
	w.told = what
}
