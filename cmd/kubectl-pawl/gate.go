package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/controllers/gate"
	"pawl.dev/pawl/statemachine"
)

// exitClosed is the exit code when a gate is closed, and none is in error.
const exitClosed = 5

// gateTest asks the gates of a policy, of objects in files or in the cluster.
type gateTest struct {
	*plugin
	files       resource.FilenameOptions
	statefulSet string

	objects []*unstructured.Unstructured // of the files
}

func newGate(p *plugin) *cobra.Command {
	t := &gateTest{plugin: p}
	test := &cobra.Command{
		Use:   "test [POLICY] --statefulset NAME",
		Short: "Ask the gates of a RolloutPolicy, and print what they answer",
		Long: `Ask the gates of a RolloutPolicy, and print what they answer: before it is applied, or as it is.

The RolloutPolicy is read from the files of -f, or by name from the cluster. So are the StatefulSet, its owner and its
pods: if the StatefulSet is in the files all of them are read there, and no cluster is needed.

Exit codes: 0 all gates are open, 5 one is closed, 1 one cannot be evaluated, or another error.`,
		Example: `  # A policy that is not applied yet, on the objects in the cluster
  kubectl pawl gate test -f policy.yaml --statefulset db

  # Without a cluster
  kubectl get statefulset,pod,kafka -o yaml > objects.yaml
  kubectl pawl gate test -f policy.yaml -f objects.yaml --statefulset db`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), args) },
	}
	test.Flags().StringSliceVarP(&t.files.Filenames, "filename", "f", nil, "files or directories with the RolloutPolicy, and perhaps the objects that it is asked of; - is standard input")
	test.Flags().StringVar(&t.statefulSet, "statefulset", "", "name of the StatefulSet")
	group := &cobra.Command{Use: "gate", Short: "Try the gates of a RolloutPolicy"}
	group.AddCommand(test)
	return group
}

func (t *gateTest) run(ctx context.Context, args []string) error {
	if t.statefulSet == "" {
		return errors.New("--statefulset: the name of the StatefulSet to ask the gates of is missing")
	}
	if err := t.readFiles(); err != nil {
		return err
	}
	in, label, err := t.input(ctx)
	if err != nil {
		return err
	}
	policy, err := t.policy(ctx, args, label)
	if err != nil {
		return err
	}
	program := gate.Compile(policy.Spec.Gates)
	answers := program.Ask(ctx, in)
	messages := program.Messages(ctx, in)
	for i, a := range answers {
		if a.Verdict == statemachine.GateOpen {
			answers[i].Message = messages[i]
		}
	}
	return t.print(policy, answers)
}

func (t *gateTest) print(policy *v1alpha1.RolloutPolicy, answers []statemachine.Gate) error {
	if len(answers) == 0 {
		fmt.Fprintf(t.Out, "RolloutPolicy %s has no gates.\n", policy.Name)
		return nil
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "GATE\tRESULT\tBYPASS\tMESSAGE")
	var closed, failed []string
	for _, a := range answers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, a.Verdict, cmp.Or(a.Bypass, statemachine.BypassNever), a.Message)
		switch a.Verdict {
		case statemachine.GateOpen:
		case statemachine.GateClosed:
			closed = append(closed, a.Name)
		default:
			failed = append(failed, a.Name)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	switch {
	case len(failed) > 0:
		return fmt.Errorf("cannot be evaluated, which stops steps: %s", strings.Join(failed, ", "))
	case len(closed) > 0:
		return &answerError{exitClosed, "closed: " + strings.Join(closed, ", ")}
	}
	return nil
}

func (t *gateTest) readFiles() error {
	if len(t.files.Filenames) == 0 {
		return nil
	}
	infos, err := objectsIn(t.files)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if u, is := info.Object.(*unstructured.Unstructured); is {
			t.objects = append(t.objects, u)
		}
	}
	return nil
}

var policyKind = v1alpha1.GroupVersion.WithKind("RolloutPolicy")

// policy is the one that is named, the only one of the files, or the one that the StatefulSet names.
func (t *gateTest) policy(ctx context.Context, args []string, label string) (*v1alpha1.RolloutPolicy, error) {
	var found []*unstructured.Unstructured
	for _, o := range t.objects {
		if o.GroupVersionKind() == policyKind && (len(args) == 0 || o.GetName() == args[0]) {
			found = append(found, o)
		}
	}
	switch {
	case len(found) > 1:
		return nil, errors.New("several RolloutPolicies are in the files: name one")
	case len(found) == 0:
		name := label
		if len(args) > 0 {
			name = args[0]
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(policyKind)
		if err := t.get(ctx, client.ObjectKey{Name: name}, o); err != nil {
			return nil, fmt.Errorf("RolloutPolicy %s: %w", name, err)
		}
		found = append(found, o)
	}
	policy := &v1alpha1.RolloutPolicy{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found[0].Object, policy, true); err != nil {
		return nil, fmt.Errorf("RolloutPolicy %s: %w", found[0].GetName(), err)
	}
	return policy, nil
}

func (t *gateTest) get(ctx context.Context, key client.ObjectKey, into client.Object) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	return c.Get(ctx, key, into) //nolint:wrapcheck // the caller says what of
}

// input is what the gates look at, and the name of the policy that the StatefulSet asks for.
func (t *gateTest) input(ctx context.Context) (in gate.Input, policy string, err error) {
	set, pods, local := t.inFiles()
	if !local {
		namespace, err := t.namespace()
		if err != nil {
			return in, "", err
		}
		set = &unstructured.Unstructured{}
		set.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
		if err := t.get(ctx, client.ObjectKey{Namespace: namespace, Name: t.statefulSet}, set); err != nil {
			return in, "", fmt.Errorf("StatefulSet %s in namespace %s: %w", t.statefulSet, namespace, err)
		}
		if pods, err = t.podsInCluster(ctx, namespace); err != nil {
			return in, "", err
		}
	}
	in.StatefulSet = set.Object
	in.Owner, in.OwnerProblem = t.owner(ctx, set, local)
	slices.SortFunc(pods, func(a, b *unstructured.Unstructured) int { return cmp.Compare(ordinal(a), ordinal(b)) })
	for _, pod := range pods {
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.UID == set.GetUID() {
			in.Pods = append(in.Pods, pod.Object)
		}
	}
	return in, cmp.Or(set.GetLabels()[v1alpha1.PolicyLabel], v1alpha1.DefaultPolicy), nil
}

// inFiles are the StatefulSet and all pods of the files, if it is there.
func (t *gateTest) inFiles() (set *unstructured.Unstructured, pods []*unstructured.Unstructured, found bool) {
	namespace := ptr.Deref(t.cluster.Namespace, "")
	for _, o := range t.objects {
		switch {
		case o.GetKind() == "Pod":
			pods = append(pods, o)
		case o.GetKind() == "StatefulSet" && o.GetName() == t.statefulSet && (namespace == "" || o.GetNamespace() == namespace):
			set = o
		}
	}
	return set, pods, set != nil
}

func (t *gateTest) podsInCluster(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	c, err := t.client()
	if err != nil {
		return nil, err
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the pods in namespace %s: %w", namespace, err)
	}
	var pods []*unstructured.Unstructured
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

// owner is the controller of the StatefulSet, or why it cannot be read.
func (t *gateTest) owner(ctx context.Context, set *unstructured.Unstructured, local bool) (object map[string]any, problem string) {
	owner := metav1.GetControllerOf(set)
	if owner == nil {
		return nil, ""
	}
	for _, o := range t.objects {
		if o.GetUID() == owner.UID && local {
			return o.Object, ""
		}
	}
	if local {
		return nil, fmt.Sprintf("%s %s, the owner, is not in the files", owner.Kind, owner.Name)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	err := t.get(ctx, client.ObjectKey{Namespace: set.GetNamespace(), Name: owner.Name}, o)
	if err != nil {
		return nil, fmt.Sprintf("%s %s: %v", owner.Kind, owner.Name, err)
	}
	return o.Object, ""
}

// ordinal is the number at the end of a pod's name.
func ordinal(pod *unstructured.Unstructured) int {
	name := pod.GetName()
	n, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}
