package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// older is a Kubernetes that does not serve some kinds.
type older struct {
	without []string
	applied []string
	err     error
}

func (o *older) Apply(_ context.Context, a runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	u, ok := a.(interface {
		GroupVersionKind() schema.GroupVersionKind
	})
	if !ok {
		return errors.New("not an object")
	}
	kind := u.GroupVersionKind()
	if slices.Contains(o.without, kind.Kind) {
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	o.applied = append(o.applied, kind.Kind)
	return o.err
}

func TestEveryFolderIsInstalled(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifests()
	g.Expect(err).NotTo(HaveOccurred())
	cluster, out := &older{}, &bytes.Buffer{}
	g.Expect(applyAll(t.Context(), cluster, objects, out)).To(Succeed())
	g.Expect(cluster.applied).To(ContainElements("CustomResourceDefinition", "ClusterRole", "MutatingAdmissionPolicy",
		"MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"))
	g.Expect(out.String()).NotTo(ContainSubstring("this Kubernetes"))
}

func TestAKubernetesWithoutThePolicyIsToldOnceAndGoneOnWith(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifests()
	g.Expect(err).NotTo(HaveOccurred())
	cluster, out := &older{without: []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}}, &bytes.Buffer{}
	g.Expect(applyAll(t.Context(), cluster, objects, out)).To(Succeed())
	g.Expect(strings.Count(out.String(), "this Kubernetes has no MutatingAdmissionPolicy (on by default from 1.36)")).To(Equal(1))
	g.Expect(out.String()).NotTo(ContainSubstring("applied MutatingAdmissionPolicy"))
	g.Expect(cluster.applied).To(ContainElements("ClusterRoleBinding", "ValidatingAdmissionPolicyBinding"))
}

func TestWhatElseCannotBeAppliedIsAnError(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifests()
	g.Expect(err).NotTo(HaveOccurred())
	out := &bytes.Buffer{}
	g.Expect(applyAll(t.Context(), &older{without: []string{"ValidatingAdmissionPolicy"}}, objects, out)).
		To(MatchError(ContainSubstring("apply ValidatingAdmissionPolicy pawl-force")))
	g.Expect(applyAll(t.Context(), &older{err: errors.New("no")}, objects, out)).
		To(MatchError("apply Namespace pawl-system: no"))
}
