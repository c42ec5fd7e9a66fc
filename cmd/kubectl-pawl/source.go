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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"
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

// scope is what to read; an empty field is all.
type scope struct{ namespace, name string }

func (s scope) String() string {
	what, where := "any StatefulSet", "any namespace"
	if s.name != "" {
		what = fmt.Sprintf("a StatefulSet %q", s.name)
	}
	if s.namespace != "" {
		where = "namespace " + s.namespace
	}
	return what + " in " + where
}

func (s scope) has(key types.NamespacedName) bool {
	return (s.namespace == "" || s.namespace == key.Namespace) && (s.name == "" || s.name == key.Name)
}

// scope is what the flags say: of files everything, if no namespace is named.
func (s *source) scope(name string) (scope, error) {
	if s.all && name != "" {
		return scope{}, fmt.Errorf("NAME %q and --all-namespaces: one of the two", name)
	}
	switch {
	case s.all:
		return scope{}, nil
	case len(s.files.Filenames) > 0:
		return scope{ptr.Deref(s.cluster.Namespace, ""), name}, nil
	}
	namespace, err := s.namespace()
	return scope{namespace, name}, err
}

// read returns the logs in a scope, sorted by namespace and name.
func (s *source) read(ctx context.Context, in scope) ([]*history, error) {
	logs := collection{}
	if len(s.files.Filenames) > 0 {
		if err := s.readFiles(in, logs); err != nil {
			return nil, err
		}
	} else {
		c, err := s.client()
		if err != nil {
			return nil, err
		}
		if err := logs.readCluster(ctx, c, in); err != nil {
			return nil, err
		}
	}
	if in.name != "" && len(logs) == 0 {
		return nil, fmt.Errorf("nothing is recorded of %s; is it labelled %s?", in, v1alpha1.ModeLabel)
	}
	return slices.SortedFunc(maps.Values(logs), func(a, b *history) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}), nil
}

type collection map[types.NamespacedName]*history

func (c collection) of(namespace, name string) *history {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if c[key] == nil {
		c[key] = &history{NamespacedName: key}
	}
	return c[key]
}

// readCluster reads once more, name by name, what does not add up: status and records are read at different moments.
func (c collection) readCluster(ctx context.Context, from client.Client, in scope) error {
	if err := c.list(ctx, from, in); err != nil {
		return err
	}
	for _, key := range slices.Collect(maps.Keys(c)) {
		log := c[key]
		if ledger.Verify(log.Name, log.status(), log.pages()) == nil {
			continue
		}
		delete(c, key)
		if err := c.list(ctx, from, scope{key.Namespace, key.Name}); err != nil {
			return err
		}
	}
	return nil
}

// list lists without a type, so that a field that this version does not know is seen.
func (c collection) list(ctx context.Context, from client.Client, in scope) error {
	for _, of := range []struct{ kind, plural, name string }{
		// Status first: what is sealed between the two is then in both, else it would be in neither.
		{"RolloutProgress", "RolloutProgresses", "metadata.name"},
		{"RolloutRecord", "RolloutRecords", "page.statefulSet"},
	} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(of.kind + "List"))
		options := []client.ListOption{client.InNamespace(in.namespace)}
		if in.name != "" {
			options = append(options, client.MatchingFields{of.name: in.name})
		}
		if err := from.List(ctx, &list, options...); err != nil {
			return fmt.Errorf("list %s: %w", of.plural, err)
		}
		for i := range list.Items {
			if err := c.add(&list.Items[i], in); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an object that is part of a log and in scope.
func (c collection) add(u *unstructured.Unstructured, in scope) error {
	o, err := typed(u)
	if err != nil {
		return err
	}
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *v1alpha1.RolloutProgress:
		if in.has(client.ObjectKeyFromObject(o)) {
			return c.of(o.Namespace, o.Name).addProgress(o)
		}
	case *v1alpha1.RolloutRecord:
		if in.has(types.NamespacedName{Namespace: o.Namespace, Name: o.Page.StatefulSet}) {
			return c.of(o.Namespace, o.Page.StatefulSet).addRecord(o)
		}
	}
	return nil
}

// addProgress keeps the newer one: files may have been written on different days.
func (h *history) addProgress(o *v1alpha1.RolloutProgress) error {
	switch was := h.progress; {
	case was == nil, was.Status.Sequence < o.Status.Sequence:
		h.progress = o
	case was.Status.Sequence == o.Status.Sequence && was.Status.Digest != o.Status.Digest:
		return fmt.Errorf("RolloutProgress %s is there twice, with two digests of transition %d: %s and %s", h, o.Status.Sequence, was.Status.Digest, o.Status.Digest)
	}
	return nil
}

// addRecord leaves out what is there already.
func (h *history) addRecord(o *v1alpha1.RolloutRecord) error {
	for _, was := range h.records {
		switch {
		case was.Name != o.Name:
		case equality.Semantic.DeepEqual(was.Page, o.Page):
			return nil
		default:
			return fmt.Errorf("RolloutRecord %s/%s is there twice, and the two are not the same", o.Namespace, o.Name)
		}
	}
	h.records = append(h.records, *o)
	return nil
}

func (s *source) readFiles(in scope, logs collection) error {
	infos, err := objectsIn(s.files)
	if err != nil {
		return err
	}
	found := false
	for _, info := range infos {
		u, is := info.Object.(*unstructured.Unstructured)
		if !is || !recorded(u) {
			continue
		}
		found = true
		if err := logs.add(u, in); err != nil {
			return fmt.Errorf("%s: %w", info.Source, err)
		}
	}
	if !found {
		return errors.New("no RolloutProgress and no RolloutRecord is in the files; write them with: kubectl get rp,rrec -o yaml")
	}
	return nil
}

// objectsIn reads the objects in files or directories, without a cluster.
func objectsIn(files resource.FilenameOptions) ([]*resource.Info, error) {
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, &files).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("read the files: %w", err)
	}
	return infos, nil
}

// recorded reports whether an object is part of a log.
func recorded(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupVersion() == v1alpha1.GroupVersion && (u.GetKind() == "RolloutProgress" || u.GetKind() == "RolloutRecord")
}

// typed is an object that is part of a log. A field that is not known is an error: left out, it would make the digests
// wrong.
func typed(u *unstructured.Unstructured) (client.Object, error) {
	var o client.Object = &v1alpha1.RolloutRecord{}
	if u.GetKind() == "RolloutProgress" {
		o = &v1alpha1.RolloutProgress{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, o, true); err != nil {
		return nil, fmt.Errorf("%s %s: %w; was it written by a newer Pawl?", u.GetKind(), u.GetName(), err)
	}
	return o, nil
}

// client of the cluster.
func (p *plugin) client() (client.Client, error) {
	config, err := p.cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// namespace that the flags or the kubeconfig say.
func (p *plugin) namespace() (string, error) {
	namespace, _, err := p.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return namespace, nil
}

// explained adds what to do about an error of the API server.
func explained(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w. Pawl is not installed in this cluster; another one is chosen with --context", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w. Reading the history takes the ClusterRole pawl-view; to wait takes view, which includes it", err)
	default:
		return err
	}
}
