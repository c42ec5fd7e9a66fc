package controllers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/statemachine"
)

// Recordings are what a real kubelet, the StatefulSet controller and the node controller published; see the README
// beside them. Here they are played to Pawl with a clock that is turned by hand.

const recordings = "testdata/recordings"

// line is one line of a recording: only what changed, with times in seconds since the recording began.
type line struct {
	T          float64                    `json:"t"`
	Event      string                     `json:"ev"`
	Pod        string                     `json:"pod"`
	Revision   string                     `json:"rev"`
	Containers json.RawMessage            `json:"containers"`
	Init       json.RawMessage            `json:"init"`
	Conditions map[string]json.RawMessage `json:"conditions"`
	Rest       map[string]any             `json:"-"`
}

func (l *line) UnmarshalJSON(data []byte) error {
	type plain line
	if err := json.Unmarshal(data, (*plain)(l)); err != nil {
		return err
	}
	return json.Unmarshal(data, &l.Rest)
}

// recorded is a pod as the lines so far leave it.
type recorded struct {
	fields     map[string]any
	conditions map[string]map[string]any
	created    time.Time
	seen       bool
}

// replay plays one recording.
type replay struct {
	*bench
	name     string
	pods     map[string]*recorded
	specs    map[string]corev1.PodSpec
	events   []recordedEvent
	nodes    []line
	base     float64 // when the recording began, on the clock of node.jsonl
	snapshot map[string]bool
	old      string // the revision that is left, where the recording shows two
	native   string // the revision that is r1, where Kubernetes rolls all by itself and Pawl only observes
}

type recordedEvent struct {
	T       float64 `json:"t"`
	Object  string  `json:"obj"`
	Type    string  `json:"type"`
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
}

// nodeClocks is when those recordings began during which the node went away, on the clock of node.jsonl.
var nodeClocks = map[string]float64{
	"healthy": 1796155578.8, "flapping-ready": 1796155578.7,
	"node-lost": 1796155808.9, "slow-termination": 1796155808.9, "prestop-slow": 1796155808.9, "evicted-sts": 1796155808.9,
	"mariadb-node-notready": 1796156322.9, "mariadb-node-power-loss": 1796156684,
}

func newReplay(name string) (*replay, error) {
	r := &replay{bench: newBench(), name: name, pods: map[string]*recorded{}, snapshot: map[string]bool{}}
	var err error
	if r.specs, err = specs(); err != nil {
		return nil, err
	}
	plain, _, _ := strings.Cut(name, "--")
	r.events, err = readLines[recordedEvent](filepath.Join(recordings, "events", plain+".jsonl"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if r.base = nodeClocks[plain]; r.base > 0 {
		if r.nodes, err = readLines[line](filepath.Join(recordings, "node.jsonl")); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func readLines[T any](path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []T
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var one T
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, one)
	}
	return all, scanner.Err()
}

// specs are the pods that were recorded, by recording.
func specs() (map[string]corev1.PodSpec, error) {
	data, err := os.ReadFile(filepath.Join(recordings, "specs.json"))
	if err != nil {
		return nil, err
	}
	var all map[string]struct {
		Kind string
		Spec json.RawMessage
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	found := map[string]corev1.PodSpec{}
	for name, one := range all {
		var spec corev1.PodSpec
		var set appsv1.StatefulSetSpec
		if one.Kind == "StatefulSet" {
			err = json.Unmarshal(one.Spec, &set)
			spec = set.Template.Spec
		} else {
			err = json.Unmarshal(one.Spec, &spec)
		}
		if err != nil {
			return nil, fmt.Errorf("spec of %s: %w", name, err)
		}
		found[name] = spec
	}
	return found, nil
}

// spec is what was recorded of this pod's spec; where that is nothing, the containers of which a status was published.
func (r *replay) spec(pod corev1.Pod) corev1.PodSpec {
	plain, _, _ := strings.Cut(r.name, "--")
	for _, name := range []string{plain, strings.TrimSuffix(plain, "-60s")} {
		if spec, known := r.specs[name]; known {
			return spec
		}
	}
	if strings.HasPrefix(pod.Name, "db-") && (strings.HasPrefix(plain, "mariadb-") || plain == "crashloop-entrypoint-error") {
		return r.specs["mariadb-*"]
	}
	var spec corev1.PodSpec
	for _, c := range pod.Status.ContainerStatuses {
		spec.Containers = append(spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return spec
}

func at(t float64) time.Time { return epoch.Add(time.Duration(t * float64(time.Second))) }

// times turns seconds of the recording into the times of objects, which are whole seconds.
func times(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if t, is := value.(float64); is && (key == "startedAt" || key == "finishedAt") {
				v[key] = at(t).Truncate(time.Second).Format(time.RFC3339)
				continue
			}
			v[key] = times(value)
		}
	case []any:
		for i := range v {
			v[i] = times(v[i])
		}
	}
	return v
}

// take lays a line over what is known of its pod.
func (r *replay) take(l line) error {
	p := r.pods[l.Pod]
	if p == nil || l.Event == "ADDED" || l.Event == "LIST" || l.Event == "SNAPSHOT" {
		p = &recorded{fields: map[string]any{}, conditions: map[string]map[string]any{}, created: at(l.T)}
		r.pods[l.Pod] = p
	}
	for key, value := range l.Rest {
		if key != "conditions" {
			p.fields[key] = times(value)
		}
	}
	for kind, raw := range l.Conditions {
		var c map[string]any
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		c["type"] = kind
		if t, is := c["lastTransition"].(float64); is {
			c["lastTransitionTime"] = at(t).Truncate(time.Second).Format(time.RFC3339)
			if !p.seen { // a pod is never younger than its conditions
				p.created = earlier(p.created, at(t))
			}
		}
		p.conditions[kind] = c
	}
	p.seen = true
	return r.publish(l)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// publish puts the pod into the cluster as the recording has it now.
func (r *replay) publish(l line) error {
	i := r.ordinal(l.Pod)
	if l.Event == "DELETED" {
		r.remove(i)
		delete(r.pods, l.Pod)
		return nil
	}
	p := r.pods[l.Pod]
	status := map[string]any{
		"phase": p.fields["phase"], "reason": p.fields["reason"], "message": p.fields["message"],
		"containerStatuses": p.fields["containers"], "initContainerStatuses": p.fields["init"],
	}
	if start, is := p.fields["startTime"].(float64); is {
		status["startTime"] = at(start).Truncate(time.Second).Format(time.RFC3339)
	}
	var conditions []any
	for _, c := range p.conditions {
		conditions = append(conditions, c)
	}
	status["conditions"] = conditions
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "t1", Name: l.Pod, UID: types.UID(fmt.Sprint(p.fields["uid"])), ResourceVersion: fmt.Sprint(l.T),
		CreationTimestamp: metav1.NewTime(p.created.Truncate(time.Second)),
		Labels:            map[string]string{appsv1.ControllerRevisionHashLabelKey: r.revision(i, l.Revision)},
		OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "U1", Controller: new(true)}},
	}}
	if err := json.Unmarshal(data, &pod); err != nil {
		return fmt.Errorf("%s at %v: %w", l.Pod, l.T, err)
	}
	if t, is := p.fields["deletionTimestamp"].(float64); is {
		pod.DeletionTimestamp = &metav1.Time{Time: at(t).Truncate(time.Second)}
	}
	if list, is := p.fields["finalizers"].([]any); is {
		for _, f := range list {
			pod.Finalizers = append(pod.Finalizers, fmt.Sprint(f))
		}
	}
	pod.Spec = r.spec(pod)
	pod.Spec.NodeName, _ = p.fields["spec.nodeName"].(string)
	if r.snapshot[l.Pod] = r.snapshot[l.Pod] || l.Event == "SNAPSHOT"; r.snapshot[l.Pod] {
		pod.Spec.NodeName = "node-1" // a snapshot leaves it out
	}
	pod.Name = benchPod(i)
	r.remove(i)
	r.facts.pods = append(r.facts.pods, pod)
	return nil
}

// ordinal of a recorded pod; one that stands alone is the highest.
func (r *replay) ordinal(pod string) int {
	for i := range 3 {
		if pod == benchPod(i) && strings.HasPrefix(r.name, "mariadb-") {
			return i
		}
	}
	return 2
}

// revision: the recorded pod is at the target, its peers are not; where a file shows two revisions, the first is old.
func (r *replay) revision(i int, recorded string) string {
	if r.native != "" {
		return map[bool]string{true: "r1", false: "r2"}[recorded == r.native]
	}
	if i != 2 || r.old != "" && recorded == r.old {
		return "r1"
	}
	return "r2"
}

// hear gives Pawl the Events and the node as they are by now.
func (r *replay) hear(t float64) {
	r.facts.said = map[types.UID][]corev1.Event{}
	late, _ := statemachine.Unexplained(observe(r.facts))
	for _, e := range r.events {
		if pod := r.pod(2); e.T <= t && strings.HasPrefix(e.Object, "Pod/") && pod != nil && slices.Contains(late, 2) {
			r.facts.said[pod.UID] = append(r.facts.said[pod.UID], corev1.Event{
				Type: e.Type, Reason: e.Reason, Message: e.Message,
				FirstTimestamp: metav1.NewTime(at(e.T).Truncate(time.Second)), LastTimestamp: metav1.NewTime(at(e.T).Truncate(time.Second)),
			})
		}
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	for _, l := range r.nodes {
		var now corev1.NodeCondition
		wall, _ := l.Rest["wall"].(float64)
		if json.Unmarshal(l.Conditions["Ready"], &now) == nil && wall-r.base <= t && now.Status != ready.Status {
			ready.Status, ready.LastTransitionTime = now.Status, metav1.NewTime(at(wall-r.base).Truncate(time.Second))
		}
	}
	r.facts.nodes["node-1"] = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{ready},
	}}
}
