package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pawl.dev/pawl/config"
)

// first are the kinds that others need: a namespace before what is in it.
var first = []string{"Namespace", "CustomResourceDefinition"}

// dispensable are the kinds that Pawl works without, on a Kubernetes that does not serve them.
var dispensable = []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}

// install applies the custom resources, the permissions and the admission policies, and waits until the first are served.
func install(ctx context.Context, person *rest.Config, out io.Writer) error {
	objects, err := manifests()
	if err != nil {
		return err
	}
	c, err := client.New(person, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := applyAll(ctx, c, objects, out); err != nil {
		return err
	}
	k, err := kubernetes.NewForConfig(person)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	served := func(context.Context) (bool, error) {
		all, err := installed(k)
		return err == nil && all, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 30*time.Second, true, served); err != nil {
		return fmt.Errorf("wait until RolloutProgress is served: %w", err)
	}
	return nil
}

// applier is what applyAll needs of a client.
type applier interface {
	Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error
}

func applyAll(ctx context.Context, c applier, objects []*unstructured.Unstructured, out io.Writer) error {
	told := false
	for _, o := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("pawl-run-local"), client.ForceOwnership)
		switch {
		case meta.IsNoMatchError(err) && slices.Contains(dispensable, o.GetKind()):
			if !told {
				fmt.Fprintln(out, "  this Kubernetes has no MutatingAdmissionPolicy (on by default from 1.36): "+
					"Pawl works without, but a new template is parked only once Pawl has seen it")
			}
			told = true
			continue
		case apierrors.IsForbidden(err):
			return fmt.Errorf("apply %s %s: your user may not, use one that may install Pawl: %w", o.GetKind(), o.GetName(), err)
		case err != nil:
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(out, "  applied %s %s\n", o.GetKind(), o.GetName())
	}
	return nil
}

// manifests are the objects of config/crd, config/rbac and config/admission, in the order in which they can be applied.
func manifests() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(config.Manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "kustomization.yaml" {
			return err
		}
		text, err := fs.ReadFile(config.Manifests, path)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
			o := &unstructured.Unstructured{}
			if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("decode %s: %w", path, err)
			}
			if len(o.Object) > 0 {
				objects = append(objects, o)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return objects, nil
}

func rank(o *unstructured.Unstructured) int {
	if i := slices.Index(first, o.GetKind()); i >= 0 {
		return i
	}
	return len(first)
}
