package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// api is an API server that answers what a test tells it to, by path; the discovery of the two groups it knows. What the
// commands make of a real one is told in the stories.
type api map[string]func() any

func (a api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group := func(name, version string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	resources := func(version string, named ...string) metav1.APIResourceList {
		list := metav1.APIResourceList{GroupVersion: version}
		for _, n := range named {
			name, kind, _ := strings.Cut(n, "/")
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: true})
		}
		return list
	}
	var answer any
	switch r.URL.Path {
	case "/api":
		answer = metav1.APIVersions{}
	case "/apis":
		answer = metav1.APIGroupList{Groups: []metav1.APIGroup{group("pawl.dev", "v1alpha1"), group("apps", "v1")}}
	case "/apis/pawl.dev/v1alpha1":
		answer = resources("pawl.dev/v1alpha1", "rolloutprogresses/RolloutProgress", "rolloutrecords/RolloutRecord")
	case "/apis/apps/v1":
		answer = resources("apps/v1", "statefulsets/StatefulSet")
	default:
		if f := a[r.URL.Path]; f != nil {
			answer = f()
		}
	}
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: r.URL.Path + " is not there"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// said is what a command line prints when it is told of this API server, and its exit code.
func (a api) said(t *testing.T, args ...string) (out, err string, code int) {
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", "testdata/absent")
	return said(t, append(args, "--server", server.URL, "-n", "shop")...)
}

// list is a list as the API server answers it.
func list(t *testing.T, kind string, objects ...any) map[string]any {
	items := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		text, err := json.Marshal(o)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		var item map[string]any
		NewWithT(t).Expect(json.Unmarshal(text, &item)).To(Succeed())
		items = append(items, item)
	}
	return map[string]any{"apiVersion": "pawl.dev/v1alpha1", "kind": kind + "List", "metadata": map[string]any{}, "items": items}
}

// apiOf answers with a log.
func apiOf(n *notes) api {
	objects := func(kind string) func() any {
		return func() any {
			var of []any
			for _, o := range n.objects() {
				if o.GetObjectKind().GroupVersionKind().Kind == kind {
					of = append(of, o)
				}
			}
			return list(n.t, kind, of...)
		}
	}
	const at = "/apis/pawl.dev/v1alpha1/namespaces/shop/"
	return api{at + "rolloutprogresses": objects("RolloutProgress"), at + "rolloutrecords": objects("RolloutRecord")}
}
