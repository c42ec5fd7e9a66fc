package controllers

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	appsv1 "k8s.io/api/apps/v1"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// TestCases runs the situations under testdata/cases: objects as the API server shows them go through observe and the
// decision. Rewrite the expectations with: go test ./controllers -run TestCases -rewrite
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		c := &caseScript{bench: newBench()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			out, err := c.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

type caseScript struct {
	*bench
	told int // events that were printed
	done int // intents that were printed
}

func (c *caseScript) run(d *datadriven.TestData) (string, error) {
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	switch d.Cmd {
	case "begin": // a fresh bench
		c.bench, c.told, c.done = newBench(), 0, 0
		return "", c.setAll(d.CmdArgs)
	case "stepping": // a rollout to r2 with db-2 in flight and absent
		if err := c.setAll(d.CmdArgs); err != nil {
			return "", err
		}
		c.steps()
		c.told, c.done = len(c.log), len(c.intents)
		return "", nil
	case "set":
		return "", c.setAll(d.CmdArgs)
	case "template":
		c.template(arg(0))
		if arg(1) == "behind" {
			c.set().Status.ObservedGeneration--
			c.set().Status.UpdateRevision = "r1"
			c.facts.behindSince = c.facts.now
		}
		return "", nil
	case "caught-up":
		c.set().Status.ObservedGeneration, c.set().Status.UpdateRevision = c.set().Generation, c.facts.digest
		c.facts.behindSince = time.Time{}
		return "", nil
	case "pod":
		return "", c.podCommand(d)
	case "node":
		c.nodeCommand(arg(0), arg(1))
		return "", nil
	case "claim":
		c.claimCommand(arg(0), arg(1))
		return "", nil
	case "event":
		return "", c.event(d)
	case "forget": // Events expire
		c.facts.said = map[types.UID][]corev1.Event{}
		return "", nil
	case "namesake":
		return "", c.namesake(arg(0), arg(1))
	case "run":
		dur, err := time.ParseDuration(arg(0))
		if err != nil {
			return "", err
		}
		c.until(c.facts.now.Add(dur))
		return c.tell()
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
}

// tell prints what was recorded and done since it was asked last, and how things stand.
func (c *caseScript) tell() (string, error) {
	if len(c.faults) > 0 {
		return "", errors.New(strings.Join(c.faults, "\n"))
	}
	var b strings.Builder
	for ; c.told < len(c.log); c.told++ {
		e := c.log[c.told]
		fmt.Fprintf(&b, "+%s %s", e.Time.Sub(c.start), short(e))
		if e.Partition != nil && *e.Partition != *e.PreviousPartition {
			fmt.Fprintf(&b, " P %s", partitionText(*e.Partition))
		}
		fmt.Fprintf(&b, " | %s\n", e.Message)
	}
	for ; c.done < len(c.intents); c.done++ {
		switch i := c.intents[c.done]; i.Kind {
		case statemachine.SetPartition:
			fmt.Fprintf(&b, "write partition %s\n", partitionText(i.Partition))
		case statemachine.ReplacePod:
			fmt.Fprintf(&b, "delete %s\n", i.Pod.Name)
		case statemachine.RestoreRevision:
			fmt.Fprintf(&b, "write currentRevision %s\n", i.Revision)
		case statemachine.NoIntent:
		}
	}
	fmt.Fprintf(&b, "= %s %s %s %d/%d P %s", c.state.Name, c.state.Reason, c.state.Pod, c.state.Finished.Len(), c.state.Replicas,
		partitionText(partitionOf(c.set())))
	return b.String(), nil
}

func partitionText(p int32) string {
	if p == statemachine.Parked {
		return "parked"
	}
	return strconv.Itoa(int(p))
}

func (c *caseScript) setAll(args []datadriven.CmdArg) error {
	for _, a := range args {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		if err := c.setOne(a.Key, v); err != nil {
			return err
		}
	}
	return nil
}

func (c *caseScript) setOne(key, v string) error {
	set := c.set()
	n, _ := strconv.Atoi(v)
	dur, _ := time.ParseDuration(v)
	switch key {
	case "p":
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(n))}
		c.edited()
	case "replicas":
		set.Spec.Replicas, set.Status.Replicas = new(int32(n)), int32(n)
		c.edited()
	case "no-replicas":
		set.Spec.Replicas = nil
		c.edited()
	case "no-rolling-update":
		set.Spec.UpdateStrategy.RollingUpdate = nil
		c.edited()
	case "on-delete":
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		c.edited()
	case "cur":
		set.Status.CurrentRevision = v
	case "updated":
		set.Status.UpdatedReplicas = int32(n)
	case "parallel":
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	case "min-ready":
		set.Spec.MinReadySeconds = int32(dur.Seconds())
	case "uid": // deleted and created again
		set.UID, set.Generation, set.CreationTimestamp = types.UID(v), 1, metav1.NewTime(c.facts.now)
		set.Status.ObservedGeneration = 1
	case "new": // not known to Pawl before, and created just now
		set.CreationTimestamp, c.state, c.log, c.facts.pods = metav1.NewTime(c.facts.now), statemachine.State{}, nil, nil
	case "deleting":
		set.DeletionTimestamp = &metav1.Time{Time: c.facts.now}
	case "paused":
		c.facts.progress = &v1alpha1.RolloutProgress{Spec: v1alpha1.RolloutProgressSpec{Paused: new(v != "false")}}
	case "grace":
		c.facts.patience.StallGrace = dur
	case "deadline":
		c.facts.patience.ProgressDeadline = dur
	case "manager":
		set.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: v, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:updateStrategy":{"f:rollingUpdate":{"f:partition":{}}}}}`),
		}}
	case "blind":
		c.facts.nodes, c.facts.claims, c.facts.mayListen = nil, nil, false
	default:
		return fmt.Errorf("unknown fact %q", key)
	}
	return nil
}

// podCommand is "pod N [revision] [healthy|absent|delete=GRACE]", followed by YAML that is laid over the pod. {-40s} in
// it is the time 40 seconds ago.
func (c *caseScript) podCommand(d *datadriven.TestData) error {
	i, err := strconv.Atoi(d.CmdArgs[0].Key)
	if err != nil {
		return fmt.Errorf("no pod %q: %w", d.CmdArgs[0].Key, err)
	}
	for _, a := range d.CmdArgs[1:] {
		switch {
		case a.Key == "absent":
			c.remove(i)
		case a.Key == "healthy":
			c.makeReady(i)
		case a.Key == "delete":
			grace, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				return err
			}
			c.pod(i).DeletionTimestamp = &metav1.Time{Time: c.facts.now.Add(grace)}
		case strings.HasPrefix(a.Key, "r"):
			c.put(i, a.Key)
		default:
			return fmt.Errorf("unknown state %q", a.Key)
		}
	}
	if d.Input == "" {
		return nil
	}
	p := c.pod(i)
	text := caseTime.ReplaceAllStringFunc(d.Input, func(s string) string {
		dur, _ := time.ParseDuration(strings.Trim(s, "{}"))
		return c.facts.now.Add(dur).UTC().Format(time.RFC3339)
	})
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		return fmt.Errorf("read the pod: %w", err)
	}
	return nil
}

var caseTime = regexp.MustCompile(`\{[-+]?[0-9hms]+\}`)

func (c *caseScript) nodeCommand(name, how string) {
	switch how {
	case "gone":
		delete(c.facts.nodes, name)
	case "silent":
		c.addNode(name, false)
	default:
		c.addNode(name, true)
	}
}

func (c *caseScript) claimCommand(name, phase string) {
	if phase == "absent" {
		delete(c.facts.claims, name)
		return
	}
	c.facts.claims[name] = corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.PersistentVolumeClaimPhase(phase)},
	}
}

// event is "event on=db-2|db|CLAIM reason=REASON [type=Normal] [after=DURATION]", followed by its message.
func (c *caseScript) event(d *datadriven.TestData) error {
	e := corev1.Event{Type: corev1.EventTypeWarning, Message: strings.TrimSpace(d.Input), LastTimestamp: metav1.NewTime(c.facts.now)}
	uid := types.UID("")
	for _, a := range d.CmdArgs {
		switch v := a.Vals[0]; a.Key {
		case "on":
			uid = types.UID(v) // a claim
			if v == "db" {
				uid = "U1"
			}
			for _, p := range c.facts.pods {
				if p.Name == v {
					uid = p.UID
				}
			}
		case "reason":
			e.Reason = v
		case "type":
			e.Type = v
		case "after":
			dur, err := time.ParseDuration(v)
			if err != nil {
				return err
			}
			e.LastTimestamp = metav1.NewTime(c.facts.now.Add(dur))
		}
	}
	e.FirstTimestamp = e.LastTimestamp
	c.facts.said[uid] = append(c.facts.said[uid], e)
	return nil
}

// namesake is "namesake N UID": a pod of the StatefulSet of another uid has the name of pod N.
func (c *caseScript) namesake(pod, uid string) error {
	i, err := strconv.Atoi(pod)
	if err != nil {
		return err
	}
	c.remove(i)
	if uid == "gone" {
		delete(c.facts.namesakes, benchPod(i))
		return nil
	}
	c.facts.namesakes[benchPod(i)] = corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: benchPod(i), OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: types.UID(uid), Controller: new(true),
	}}}}
	return nil
}
