package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request is one line of the audit log. Of reads, leases, events and access reviews only those of the accounts of Pawl are
// in it, and of bodies only the patches of StatefulSets, and of Pawl what it deletes pods with and its leases.
type request struct {
	At         metav1.MicroTime `json:"stageTimestamp"`
	Verb       string           `json:"verb"`
	RequestURI string           `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage   `json:"requestObject"`
	Annotations   map[string]string `json:"annotations"`
}

// changes reports whether the request is one by which Pawl does something to what it looks after.
func (r request) changes() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && !slices.Contains([]string{"leases", "events"}, r.ObjectRef.Resource) &&
		!slices.Contains([]string{"authorization.k8s.io", "authentication.k8s.io"}, r.ObjectRef.APIGroup)
}

// reads reports whether the request asks the API server for what a cache might have answered.
func (r request) reads() bool { return r.Verb == "get" || r.Verb == "list" }

// change is what a merge patch of a StatefulSet changes, as far as Pawl changes it; nothing of a patch in another form.
type change struct {
	Metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		UpdateStrategy struct {
			RollingUpdate struct {
				Partition *int32 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status struct {
		CurrentRevision string `json:"currentRevision"`
	} `json:"status"`
}

func (r request) change() change {
	var c change
	if json.Unmarshal(r.RequestObject, &c) != nil {
		return change{}
	}
	return c
}

// known reports whether a write by Pawl has a form that is matched with the log, or one that there is nothing to match of. What
// has another form would pass unseen: another verb, a patch of another kind, a field beside the one. The others are those at
// which a manager is killed.
func (r request) known() bool {
	var c change
	decoder := json.NewDecoder(bytes.NewReader(r.RequestObject))
	decoder.DisallowUnknownFields()
	guarded := decoder.Decode(&c) == nil && c.Metadata.UID != "" && c.Metadata.ResourceVersion != ""
	partition, revision := c.Spec.UpdateStrategy.RollingUpdate.Partition != nil, c.Status.CurrentRevision != ""
	switch r.write() {
	case "delete pods":
		p := r.preconditions()
		return p.UID != "" && p.ResourceVersion != ""
	case "patch statefulsets":
		return guarded && partition && !revision
	case "patch statefulsets/status":
		return guarded && revision && !partition
	default:
		return slices.ContainsFunc(kills, func(k kill) bool { return k.write == r.write() })
	}
}

// write is the request as the failpoints and the tables have it: "patch statefulsets/status".
func (r request) write() string {
	return strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// byPawl reports whether it comes from an account that a manager may run as.
func (r request) byPawl() bool {
	return strings.HasPrefix(r.User.Username, "system:serviceaccount:"+pawlNamespace+":")
}

// refused reports whether the request came to nothing.
func (r request) refused() bool { return r.ResponseStatus.Code >= 300 }

// audit is the audit log as far as it was read. It grows with every story, so each line is read once.
type audit struct {
	mu     sync.Mutex
	read   int64
	rest   []byte // a line that is not whole yet
	byRoom map[string][]request
	asked  map[string][]request // what Pawl read beside its watches, by namespace
	used   map[string]uses      // by Pawl's own account
	wrote  map[string]int       // by any account that a manager may run as
	leases []request
}

// in returns the requests in a namespace up to now.
func (a *audit) in(namespace, file string) ([]request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(f, a.read, math.MaxInt64-a.read))
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	a.read += int64(len(text))
	lines := bytes.Split(append(a.rest, text...), []byte("\n"))
	a.rest = bytes.Clone(lines[len(lines)-1])
	if a.byRoom == nil {
		a.byRoom, a.asked, a.used, a.wrote = map[string][]request{}, map[string][]request{}, map[string]uses{}, map[string]int{}
	}
	for _, line := range lines[:len(lines)-1] {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("a line of the audit log is no JSON: %w", err)
		}
		if r.User.Username == pawlUser {
			a.use(r)
		}
		if r.byPawl() && r.stores() {
			a.wrote[r.write()]++
		}
		if r.ObjectRef.Resource == "leases" {
			a.leases = append(a.leases, r)
		}
		if r.byPawl() && r.reads() {
			a.asked[r.ObjectRef.Namespace] = append(a.asked[r.ObjectRef.Namespace], r)
		}
		if r.changes() {
			a.byRoom[r.ObjectRef.Namespace] = append(a.byRoom[r.ObjectRef.Namespace], r)
		}
	}
	return slices.Clone(a.byRoom[namespace]), nil
}

// requests are those of a user in this namespace, the refused ones too.
func (s *story) requests(user string) []request {
	return slices.DeleteFunc(s.watched().requests(s), func(r request) bool { return r.User.Username != user })
}

// tried are the writes that a user tried in this namespace: "patch statefulsets/status".
func (s *story) tried(user string) []string {
	var found []string
	for _, r := range s.requests(user) {
		found = append(found, r.write())
	}
	return found
}

// asked are the reads of every account that a manager of the story may run as, in this namespace: what no cache answered.
func (s *story) asked() []string {
	_, err := lab.audit.in(s.namespace, lab.lab.AuditLog)
	s.Expect(err).NotTo(HaveOccurred())
	lab.audit.mu.Lock()
	defer lab.audit.mu.Unlock()
	var found []string
	for _, r := range lab.audit.asked[s.namespace] {
		found = append(found, r.write())
	}
	return found
}

// byManagers are the requests of every account that a manager of the story may run as, in this namespace.
func (s *story) byManagers() []request { return s.watched().byManagers(s) }

// audited are the requests of a user that came through, to a resource itself: the names of the objects.
func (s *story) audited(user, verb, resource string) []string {
	var found []string
	for _, r := range s.requests(user) {
		if r.write() == verb+" "+resource && !r.refused() {
			found = append(found, r.ObjectRef.Name)
		}
	}
	return found
}
