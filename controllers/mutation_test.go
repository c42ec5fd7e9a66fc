package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"pawl.dev/pawl/statemachine"
)

// Recordings are samples. What other kubelets publish differs in what it leaves out, in its order, in its words and in
// its pace; what Pawl makes of it must not.

// mutation changes the lines of a recording.
type mutation struct {
	name string
	// harmless: the verdict is the same. Of what is not harmless only what is safe is asked.
	harmless bool
	apply    func(t *rapid.T, lines []map[string]any)
}

var mutations = []mutation{
	{"long messages", true, func(_ *rapid.T, lines []map[string]any) {
		each(lines, func(key string, v any, in map[string]any) {
			if s, is := v.(string); is && key == "message" && s != "" {
				in[key] = strings.Repeat("much ado about very little ", 230) + s
			}
		})
	}},
	{"new fields", true, func(_ *rapid.T, lines []map[string]any) {
		for _, l := range lines {
			l["resize"], l["hostIPs"] = "Proposed", []any{"10.0.0.9"}
		}
	}},
	{"no ids", true, func(_ *rapid.T, lines []map[string]any) {
		each(lines, func(key string, _ any, in map[string]any) {
			if slices.Contains([]string{"containerID", "imageID", "observedGeneration", "qosClass", "hostIP", "podIP"}, key) {
				delete(in, key)
			}
		})
	}},
	{"more conditions", true, func(_ *rapid.T, lines []map[string]any) {
		for _, l := range lines {
			if c, is := l["conditions"].(map[string]any); is {
				c["vendor.example/Checked"] = map[string]any{"status": "Unknown", "lastTransition": 0.0}
			}
		}
	}},
	{"said twice", true, nil}, // each line comes twice, see mutated
	{"fields are missing", false, func(t *rapid.T, lines []map[string]any) {
		gone := rapid.SampledFrom([]string{"reason", "message", "lastState", "startedAt", "finishedAt", "exitCode", "restartCount", "startTime", "started", "ready", "state", "phase"}).Draw(t, "missing")
		each(lines, func(key string, _ any, in map[string]any) {
			if key == gone {
				delete(in, key)
			}
		})
	}},
	{"a condition is missing", false, func(t *rapid.T, lines []map[string]any) {
		gone := rapid.SampledFrom([]string{"Ready", "ContainersReady", "PodScheduled", "Initialized"}).Draw(t, "missing")
		for _, l := range lines {
			if c, is := l["conditions"].(map[string]any); is {
				delete(c, gone)
			}
		}
	}},
	{"times of 1970", false, func(_ *rapid.T, lines []map[string]any) {
		each(lines, func(key string, v any, in map[string]any) {
			if _, is := v.(float64); is && (key == "startedAt" || key == "finishedAt") {
				in[key] = "1970-01-01T00:00:00Z"
			}
		})
	}},
	{"another pace", false, func(t *rapid.T, lines []map[string]any) {
		factor := rapid.SampledFrom([]float64{0.3, 0.7, 1.5, 4}).Draw(t, "factor")
		each(lines, func(key string, v any, in map[string]any) {
			if f, is := v.(float64); is && slices.Contains([]string{"t", "lastTransition", "startedAt", "finishedAt", "startTime", "deletionTimestamp"}, key) {
				in[key] = f * factor
			}
		})
	}},
	{"unknown words", false, func(_ *rapid.T, lines []map[string]any) {
		each(lines, func(key string, v any, in map[string]any) {
			if s, is := v.(string); is && key == "reason" && s != "" {
				in[key] = "Flibber" + s
			}
		})
	}},
}

// each visits all fields of all lines, however deep.
func each(lines []map[string]any, visit func(key string, v any, in map[string]any)) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				visit(key, value, v)
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	for _, l := range lines {
		walk(l)
	}
}

// mutated is the recording as the mutations leave it.
func mutated(t *rapid.T, name string, chosen []mutation) []line {
	all, err := readLines[map[string]any](filepath.Join(recordings, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range chosen {
		if m.apply != nil {
			m.apply(t, all)
			continue
		}
		var twice []map[string]any
		for _, l := range all {
			again := map[string]any{}
			maps.Copy(again, l)
			if again["ev"] == "ADDED" {
				again["ev"] = "MODIFIED"
			}
			if twice = append(twice, l); l["ev"] != "DELETED" {
				twice = append(twice, again)
			}
		}
		all = twice
	}
	lines := make([]line, len(all))
	for i, l := range all {
		data, err := json.Marshal(l)
		if err == nil {
			err = json.Unmarshal(data, &lines[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// single are the recordings of one pod each.
func single(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join(recordings, "*.jsonl"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".jsonl")
		if name != "node" && !strings.HasPrefix(name, "mariadb-") && !strings.Contains(name, "--") {
			names = append(names, name)
		}
	}
	return names
}

// verdict is the first Blocked; its reason, and when.
func (b *bench) verdict() (statemachine.Reason, float64) {
	for _, e := range b.log {
		if e.Type == statemachine.BlockedEvent {
			return e.Reason, e.Time.Sub(epoch).Seconds()
		}
	}
	return "", 0
}

func (b *bench) completed() float64 {
	for _, e := range b.log {
		if e.Type == statemachine.StepCompleted {
			return e.Time.Sub(epoch).Seconds()
		}
	}
	return 0
}

// wordsOf are the reasons that the kubelet gives for one and the same trouble in turn.
var wordsOf = [][]statemachine.Reason{
	{"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"},
	{"CrashLoopBackOff", "RestartLoop", "OOMKilled", "RunContainerError", "StartError", "PostStartHookError", "ContainerTerminated"},
}

func sameTrouble(a, b statemachine.Reason) bool {
	return a == b || slices.ContainsFunc(wordsOf, func(words []statemachine.Reason) bool {
		return slices.Contains(words, a) && slices.Contains(words, b)
	})
}

func TestMutatedRecordings(t *testing.T) {
	names := single(t)
	text, err := os.ReadFile("../docs/reasons.md") // generated from the table of reasons
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	table := string(text)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "recording")
		var chosen []mutation
		harmless := true
		for range rapid.IntRange(1, 3).Draw(t, "mutations") {
			m := rapid.SampledFrom(mutations).Draw(t, "mutation")
			chosen, harmless = append(chosen, m), harmless && m.harmless
		}
		what := name
		for _, m := range chosen {
			what += ", " + m.name
		}
		original, err := play(name, 0, 700, 0)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := playLines(name, mutated(t, name, chosen), 0, 700)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(changed.faults) > 0 {
			t.Fatalf("%s: %s", what, strings.Join(changed.faults, "\n"))
		}
		if length := changed.facts.now.Sub(epoch).Minutes(); float64(len(changed.log)) > 6+1.2*length {
			t.Fatalf("%s: %d events in %.0f minutes:\n%s", what, len(changed.log), length, changed.diary())
		}
		for _, e := range changed.log {
			if e.Reason != "" && !strings.Contains(table, fmt.Sprintf("</a>%s |", e.Reason)) {
				t.Fatalf("%s: the reason %s is in no table", what, e.Reason)
			}
		}
		if !harmless {
			return
		}
		was, at := original.verdict()
		is, then := changed.verdict()
		if !sameTrouble(was, is) || then-at > 1 || at-then > 1 || original.completed() != changed.completed() {
			t.Fatalf("%s: %s at %v, want %s at %v:\n%s", what, is, then, was, at, changed.diary())
		}
	})
}

func (b *bench) diary() string {
	var out strings.Builder
	for _, e := range b.log {
		fmt.Fprintf(&out, "%8.2f %s | %s\n", e.Time.Sub(epoch).Seconds(), short(e), e.Message)
	}
	return out.String()
}

// FuzzObserve lets any pod be the pod in flight: nothing panics, the log stays short, and nothing is released because of
// a pod that is not what it has to be.
func FuzzObserve(f *testing.F) {
	for _, pod := range []string{
		`{}`,
		`{"metadata":{"deletionTimestamp":"2026-05-01T10:00:30Z"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"main","ready":true,"restartCount":3,"state":{},"lastState":{"terminated":{"exitCode":1,"startedAt":"1970-01-01T00:00:00Z"}}}]}}`,
		`{"spec":{"initContainers":[{"name":"a","restartPolicy":"Always"},{"name":"b"}],"ephemeralContainers":[{"name":"debug"}]},"status":{"phase":"Pending","initContainerStatuses":[{"name":"b","state":{"waiting":{"reason":"ImagePullBackOff"}}},{"name":"nobody"}]}}`,
		`{"spec":{"schedulingGates":[{"name":"x"}]},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`,
		`{"status":{"phase":"Failed","reason":"Evicted","containerStatuses":null}}`,
		`{"metadata":{"labels":{"controller-revision-hash":""}},"status":{"phase":"Succeeded"}}`,
		`{"status":{"phase":"Odd","startTime":"2031-01-01T00:00:00Z","conditions":[{"type":"Ready","status":"Perhaps","lastTransitionTime":"2031-01-01T00:00:00Z"}]}}`,
	} {
		f.Add([]byte(pod))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBench()
		b.steps()
		b.log = nil
		pod := b.put(2, "r2").DeepCopy()
		if json.Unmarshal(data, pod) != nil {
			t.Skip("not a pod")
		}
		pod.Name, pod.Namespace, pod.UID = benchPod(2), "t1", "fuzzed"
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "U1", Controller: new(true)}}
		b.remove(2)
		b.facts.pods = append(b.facts.pods, *pod)
		b.until(epoch.Add(20 * time.Minute))
		if len(b.faults) > 0 {
			t.Fatal(strings.Join(b.faults, "\n"))
		}
		if len(b.log) > 12 {
			t.Fatalf("%d events of one pod that never changes:\n%s", len(b.log), b.diary())
		}
		if !mayFinish(pod) && b.completed() > 0 {
			t.Fatalf("the step completed:\n%s", b.diary())
		}
	})
}

// mayFinish is what a pod has to be at the least for its step to complete.
func mayFinish(pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	return ready && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && pod.Labels[appsv1.ControllerRevisionHashLabelKey] == "r2"
}
