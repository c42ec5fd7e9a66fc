package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"pawl.dev/pawl/statemachine"
)

func observePod(t *testing.T, published string, nodes map[string]corev1.Node) statemachine.Pod {
	t.Helper()
	o := observe(facts{statefulSet: statefulSetOfThree(), pods: []corev1.Pod{podFrom(t, "db-2", published)}, nodes: nodes})
	return o.Pods[2]
}

// A pod that nobody has looked at yet publishes nothing at all (field case A13 b).
func TestAPodWithoutConditions(t *testing.T) {
	g := NewWithT(t)
	p := observePod(t, `{"spec":{"containers":[{"name":"db","image":"db:1"}],"readinessGates":[{"conditionType":"x/y"}]},
		"status":{"phase":"Pending"}}`, nil)
	g.Expect(p.Present).To(BeTrue())
	g.Expect(p.Ready).To(BeFalse())
	g.Expect(p.ReadySince.IsZero()).To(BeTrue())
	g.Expect(p.ScheduledReason).To(BeEmpty())
	g.Expect(p.UnsetGates).To(Equal([]string{"x/y"}))
	g.Expect(p.Unprobed).To(BeTrue())
	g.Expect(p.Containers).To(Equal([]statemachine.Container{{Name: "db", Image: "db:1"}}))
}

// StartError publishes 1970 as startedAt, and null where nothing is.
func TestAContainerThatNeverStarted(t *testing.T) {
	g := NewWithT(t)
	p := observePod(t, `{"spec":{"containers":[{"name":"db","image":"db:1","readinessProbe":{}}]},
		"status":{"phase":"Running","conditions":null,"containerStatuses":[{"name":"db","restartCount":3,"started":null,
		"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},
		"lastState":{"terminated":{"exitCode":128,"reason":"StartError","startedAt":"1970-01-01T00:00:00Z",
		"finishedAt":"2026-12-01T12:00:00Z"}}}]}}`, nil)
	g.Expect(p.Unprobed).To(BeFalse())
	c := p.Containers[0]
	g.Expect(c.Waiting).To(Equal("CrashLoopBackOff"))
	g.Expect(c.Restarts).To(Equal(int32(3)))
	g.Expect(c.Terminated).To(BeNil())
	g.Expect(*c.Last).To(Equal(statemachine.Exit{Code: 128, Reason: "StartError", FinishedAt: noon}))
}

// Main container gone, native sidecar keeps the pod Running (field case A09).
func TestASidecarComesFirstAndIsToldFromAnInitContainer(t *testing.T) {
	g := NewWithT(t)
	p := observePod(t, `{"spec":{
		"initContainers":[{"name":"migrate"},{"name":"plugin","restartPolicy":"Always"}],"containers":[{"name":"main"}]},
		"status":{"phase":"Running",
		"initContainerStatuses":[{"name":"plugin","ready":true,"started":true,"state":{"running":{"startedAt":"2026-12-01T12:00:00Z"}}},
			{"name":"migrate","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}],
		"containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`, nil)
	g.Expect(p.Containers).To(Equal([]statemachine.Container{
		{Name: "migrate", Init: true, Terminated: &statemachine.Exit{Reason: "Completed"}},
		{Name: "plugin", Init: true, Sidecar: true, Ready: true, Started: true, RunningSince: noon},
		{Name: "main", Terminated: &statemachine.Exit{Reason: "Completed"}},
	}))
}

func TestATerminatingPodOnASilentNode(t *testing.T) {
	g := NewWithT(t)
	published := `{"metadata":{"deletionTimestamp":"2026-12-01T12:00:30Z","finalizers":["x/y"],
		"labels":{"controller-revision-hash":"db-a"}},"spec":{"nodeName":"n1"},
		"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady","lastTransitionTime":"2026-12-01T12:00:00Z"},
		{"type":"PodScheduled","status":"True","reason":"Old"}]}}`
	silent := corev1.Node{}
	silent.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	p := observePod(t, published, map[string]corev1.Node{"n1": silent})
	g.Expect(p.Terminating).To(BeTrue())
	g.Expect(p.DeletionTime).To(Equal(noon.Add(30 * time.Second)))
	g.Expect(p.Revision).To(Equal("db-a"))
	g.Expect(p.ReadySince).To(Equal(noon))
	g.Expect(p.ReadyReason).To(Equal("NodeNotReady"))
	g.Expect(p.ScheduledReason).To(BeEmpty(), "it is scheduled")
	g.Expect(p.NodeNotReady).To(BeTrue())
	g.Expect(observePod(t, published, nil).NodeNotReady).To(BeFalse(), "nodes may not be read")
	gone := observePod(t, published, map[string]corev1.Node{})
	g.Expect(gone.NodeNotReady && gone.NodeGone).To(BeTrue(), "nothing runs on a node that does not exist")
}
