package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// history is all that there is of the log of one StatefulSet name.
type history struct {
	types.NamespacedName
	progress *v1alpha1.RolloutProgress // nil if there is none
	records  []v1alpha1.RolloutRecord
}

func (h *history) status() v1alpha1.RolloutProgressStatus {
	if h.progress == nil {
		return v1alpha1.RolloutProgressStatus{}
	}
	return h.progress.Status
}

func (h *history) pages() []v1alpha1.Page {
	pages := make([]v1alpha1.Page, 0, len(h.records))
	for _, r := range h.records {
		pages = append(pages, r.Page)
	}
	return pages
}

// whole is the log as pages, with what is in status only. The error says why status cannot be read; the records are
// there all the same.
func (h *history) whole() ([]v1alpha1.Page, error) {
	return ledger.Pages(h.Name, h.status(), h.pages())
}

// source is where logs are read from: the cluster, or files that were written by kubectl.
type source struct {
	*plugin
	files resource.FilenameOptions
	all   bool
}

func (s *source) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&s.all, "all-namespaces", "A", false, "in all namespaces")
	f.StringSliceVarP(&s.files.Filenames, "filename", "f", nil,
		"read RolloutProgresses and RolloutRecords from these files or directories instead of a cluster; - is standard input")
	f.BoolVarP(&s.files.Recursive, "recursive", "R", false, "with -f, also in directories below")
}

// read returns the logs of this name, or all if it is empty, sorted by namespace and name.
func (s *source) read(ctx context.Context, name string) ([]*history, error) {
	if s.all && name != "" {
		return nil, fmt.Errorf("NAME %q and --all-namespaces: one of the two", name)
	}
	logs, err := s.collect(ctx, name)
	if err != nil {
		return nil, err
	}
	if name != "" && len(logs) == 0 {
		return nil, fmt.Errorf("nothing is recorded of a StatefulSet %q here; is it labelled %s, and is this its namespace?", name, v1alpha1.ModeLabel)
	}
	return slices.SortedFunc(maps.Values(logs), func(a, b *history) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}), nil
}

// collect reads once more what changed while it was read: records that are newer than status.
func (s *source) collect(ctx context.Context, name string) (collection, error) {
	if len(s.files.Filenames) > 0 {
		logs := collection{}
		return logs, s.readFiles(name, logs)
	}
	for tries := 0; ; tries++ {
		logs := collection{}
		if err := s.readCluster(ctx, name, logs); err != nil || tries == 3 || !logs.torn() {
			return logs, err
		}
	}
}

type collection map[types.NamespacedName]*history

func (c collection) of(namespace, name string) *history {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if c[key] == nil {
		c[key] = &history{NamespacedName: key}
	}
	return c[key]
}

// torn reports whether a record is ahead of the status that was read before it.
func (c collection) torn() bool {
	for _, h := range c {
		if _, err := h.whole(); errors.Is(err, ledger.ErrStale) {
			return true
		}
	}
	return false
}

func (c collection) add(o client.Object) {
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *v1alpha1.RolloutProgress:
		c.of(o.Namespace, o.Name).progress = o
	case *v1alpha1.RolloutRecord:
		h := c.of(o.Namespace, o.Page.StatefulSet)
		h.records = append(h.records, *o)
	}
}

func (s *source) readCluster(ctx context.Context, name string, logs collection) error {
	c, namespace, err := s.client()
	if err != nil {
		return err
	}
	var progresses v1alpha1.RolloutProgressList
	var records v1alpha1.RolloutRecordList
	var here, progress, record []client.ListOption
	if !s.all {
		here = append(here, client.InNamespace(namespace))
	}
	if name != "" {
		progress = append(progress, client.MatchingFields{"metadata.name": name})
		record = append(record, client.MatchingFields{"page.statefulSet": name})
	}
	// Status first: what is sealed between the two is then in both, else it would be in neither.
	if err := c.List(ctx, &progresses, append(progress, here...)...); err != nil {
		return fmt.Errorf("list RolloutProgresses: %w", err)
	}
	if err := c.List(ctx, &records, append(record, here...)...); err != nil {
		return fmt.Errorf("list RolloutRecords: %w", err)
	}
	for i := range progresses.Items {
		logs.add(withKind(&progresses.Items[i], "RolloutProgress"))
	}
	for i := range records.Items {
		logs.add(withKind(&records.Items[i], "RolloutRecord"))
	}
	return nil
}

// withKind says what an item of a list is, which the API server does for the list only.
func withKind(o client.Object, kind string) client.Object {
	o.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return o
}

func (s *source) readFiles(name string, logs collection) error {
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, &s.files).Flatten().Do().Infos()
	if err != nil {
		return fmt.Errorf("read the files: %w", err)
	}
	found := false
	for _, info := range infos {
		u, is := info.Object.(*unstructured.Unstructured)
		if !is {
			continue
		}
		o, err := typed(u)
		if err != nil {
			return fmt.Errorf("%s: %w", info.Source, err)
		}
		if o == nil {
			continue
		}
		found = true
		if record, is := o.(*v1alpha1.RolloutRecord); name == "" || o.GetName() == name || is && record.Page.StatefulSet == name {
			logs.add(o)
		}
	}
	if !found {
		return errors.New("no RolloutProgress and no RolloutRecord is in the files; write them with: kubectl get rp,rrec -o yaml")
	}
	return nil
}

// typed is the object if it is part of a log, nil if it is something else. A field that is not known is an error: left
// out, it would make the digests wrong.
func typed(u *unstructured.Unstructured) (client.Object, error) {
	if u.GroupVersionKind().GroupVersion() != v1alpha1.GroupVersion {
		return nil, nil
	}
	var o client.Object
	switch u.GetKind() {
	case "RolloutProgress":
		o = &v1alpha1.RolloutProgress{}
	case "RolloutRecord":
		o = &v1alpha1.RolloutRecord{}
	default:
		return nil, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, o, true); err != nil {
		return nil, fmt.Errorf("%s %s: %w; was it written by a newer Pawl?", u.GetKind(), u.GetName(), err)
	}
	return o, nil
}

// client of the cluster, and the namespace that the flags or the kubeconfig say.
func (p *plugin) client() (client.Client, string, error) {
	namespace, _, err := p.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := p.cluster.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		return nil, "", fmt.Errorf("build the scheme: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connect: %w", err)
	}
	return c, namespace, nil
}

// explained adds what to do about an error of the API server.
func explained(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w. Pawl is not installed in this cluster; another one is chosen with --context", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w. Reading takes the ClusterRole pawl-view, which is part of view", err)
	default:
		return err
	}
}
