package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// cluster is an owner as an operator publishes it.
const cluster = `{
	"metadata": {"name": "test", "generation": 4},
	"spec": {"replicas": 3, "weight": 0.5},
	"status": {
		"phase": "Cluster in healthy state",
		"reconcileInfo": {"generation": 3},
		"conditions": [
			{"type": "Available", "status": "True"},
			{"type": "Healthy", "status": "False", "reason": "Lag", "message": "replica 2 is behind"}
		]
	}
}`

func input(g Gomega, object string) Input {
	in := Input{StatefulSet: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}
	if object != "" {
		in.Owner = decode(g, object)
	}
	for i := range 3 {
		in.Pods = append(in.Pods, decode(g, fmt.Sprintf(`{"metadata":{"name":"db-%d"},"status":{"phase":"Running"}}`, i)))
	}
	return in
}

// decode reads JSON as apimachinery does: whole numbers are int64.
func decode(g Gomega, text string) map[string]any {
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	g.Expect(d.Decode(&object)).To(Succeed())
	return whole(object).(map[string]any)
}

func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

func TestAsk(t *testing.T) {
	const open, closed, failed = statemachine.GateOpen, statemachine.GateClosed, statemachine.GateError
	for _, c := range []struct {
		name, expression, message string
		owner                     string
		want                      statemachine.Verdict
		says                      string
	}{
		{"true", "true", "", "", open, ""},
		{"false names itself", "1 > 2", "", "", closed, "1 > 2 is false"},
		{"condition", "owner.condition('Available').status == 'True'", "", cluster, open, ""},
		{"condition as a function", "condition(owner, 'Available').status == 'True'", "", cluster, open, ""},
		{"condition that is False", "owner.condition('Healthy').status == 'True'", "'Healthy=' + owner.condition('Healthy').status + ': ' + owner.condition('Healthy').message", cluster, closed, "Healthy=False: replica 2 is behind"},
		{"condition that is not there is Unknown", "owner.condition('Ready').status == 'True'", "'Ready=' + owner.condition('Ready').status", cluster, closed, "Ready=Unknown"},
		{"condition of an owner without status", "owner.condition('Ready').status == 'True'", "owner.condition('Ready').reason + 'none'", `{"metadata":{}}`, closed, "none"},
		{"condition of no owner", "owner.condition('Ready').status == 'True'", "", "", closed, "owner.condition('Ready').status == 'True' is false"},
		{"no owner is null", "owner == null", "", "", open, ""},
		{"whole numbers", "owner.status.reconcileInfo.generation == owner.metadata.generation", "'reconciled ' + string(owner.status.reconcileInfo.generation) + ' of ' + string(owner.metadata.generation)", cluster, closed, "reconciled 3 of 4"},
		{"fractions and whole numbers compare", "owner.spec.weight < 1 && owner.spec.replicas == 3.0", "", cluster, open, ""},
		{"missing field", "owner.status.ready", "", cluster, failed, "no such key: ready"},
		{"missing field with a default", "owner.?status.?ready.orValue(true)", "", cluster, open, ""},
		{"field of no owner", "owner.status.ready", "", "", failed, "no such key: status"},
		{"not a bool", "owner.metadata.name", "", cluster, failed, "the expression yields string, not a bool"},
		{"strings", "owner.status.phase.lowerAscii().contains('healthy')", "", cluster, open, ""},
		{"pods", "pods.all(p, p.status.phase == 'Running') && pods.size() == statefulSet.spec.replicas", "", "", open, ""},
		{"pods in order", "pods[2].metadata.name == 'db-2'", "", "", open, ""},
		{"message that fails", "false", "owner.nothing", cluster, closed, "messageExpression: no such key: nothing"},
		{"message that is no string", "false", "owner.metadata.generation", cluster, closed, "messageExpression yields int64, not a string"},
		{"empty message", "false", "' '", "", closed, "false is false"},
		{"long message of several lines", "false", "'a\\n' + owner.metadata.name + '" + strings.Repeat("x", 300) + "'", cluster, closed, "a test" + strings.Repeat("x", 121) + "…"},
		{"too expensive", "lists.range(1000).all(i, lists.range(1000).all(j, i + j >= 0))", "", "", failed, "it needs more than 100000 units of CEL's cost; look at fewer pods or fields"},
		{"divide by zero", "1 / (owner.spec.replicas - 3) > 0", "", cluster, failed, "division by zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			p := Compile([]v1alpha1.Gate{{Name: "g", Expression: c.expression, MessageExpression: c.message, Bypass: v1alpha1.BypassWhenPodDown}})
			g.Expect(p.Err()).NotTo(HaveOccurred())
			got := p.Ask(t.Context(), input(g, c.owner))
			g.Expect(got).To(HaveLen(1))
			g.Expect(got[0].Verdict).To(Equal(c.want), got[0].Message)
			g.Expect(got[0].Bypass).To(Equal(statemachine.BypassWhenPodDown))
			if c.want == failed {
				g.Expect(got[0].Message).To(ContainSubstring(c.says))
			} else {
				g.Expect(got[0].Message).To(Equal(c.says))
			}
		})
	}
}

func TestCompileSaysWhatIsWrongAndWhere(t *testing.T) {
	good := v1alpha1.Gate{Name: "good", Expression: "true"}
	for _, c := range []struct {
		gate v1alpha1.Gate
		want string
	}{
		{v1alpha1.Gate{Name: "bad", Expression: "ownr.status == 1"}, "gates[1] bad: expression: 1:1: undeclared reference to 'ownr' (in container '')"},
		{v1alpha1.Gate{Name: "bad", Expression: "true &&\n  1"}, "gates[1] bad: expression: 2:3: expected type 'bool' but found 'int'"},
		{v1alpha1.Gate{Name: "bad", Expression: "1 + 1"}, "gates[1] bad: expression: it yields int, and has to yield bool"},
		{v1alpha1.Gate{Name: "bad", Expression: "true", MessageExpression: "1"}, "gates[1] bad: messageExpression: it yields int, and has to yield string"},
		{v1alpha1.Gate{Name: "bad", Expression: "true &&"}, "gates[1] bad: expression: 1:8: Syntax error"},
	} {
		t.Run(c.want, func(t *testing.T) {
			g := NewWithT(t)
			p := Compile([]v1alpha1.Gate{good, c.gate})
			g.Expect(p.Err()).To(MatchError(ContainSubstring(c.want)))
			got := p.Ask(t.Context(), Input{})
			g.Expect(got[0].Verdict).To(Equal(statemachine.GateOpen), "a good gate beside a bad one")
			g.Expect(got[1].Verdict).To(Equal(statemachine.GateError))
		})
	}
}

// What Kubernetes runs at most of, and Pawl is measured with.
func TestAQuestionAboutAThousandPodsFits(t *testing.T) {
	g := NewWithT(t)
	in := Input{}
	for range 1000 {
		in.Pods = append(in.Pods, decode(g, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`))
	}
	p := Compile([]v1alpha1.Gate{{Name: "g", Expression: "pods.all(p, p.status.phase == 'Running' && p.condition('Ready').status == 'True')"}})
	got := p.Ask(t.Context(), in)
	g.Expect(got[0].Verdict).To(Equal(statemachine.GateOpen), got[0].Message)
}

func TestWhatIsAsked(t *testing.T) {
	g := NewWithT(t)
	p := Compile([]v1alpha1.Gate{{Name: "a", Expression: "'owner' != 'pods'"}})
	g.Expect([]bool{p.AsksOwner(), p.AsksPods(), p.AsksStatefulSet()}).To(Equal([]bool{false, false, false}))
	p = Compile([]v1alpha1.Gate{{Name: "a", Expression: "true", MessageExpression: "string(pods.size())"}, {Name: "b", Expression: "owner != null"}})
	g.Expect([]bool{p.AsksOwner(), p.AsksPods(), p.AsksStatefulSet()}).To(Equal([]bool{true, true, false}))
}

func TestAnOwnerThatCannotBeReadIsAnErrorOfTheGatesThatAskIt(t *testing.T) {
	g := NewWithT(t)
	p := Compile([]v1alpha1.Gate{{Name: "a", Expression: "true"}, {Name: "b", Expression: "owner == null"}})
	got := p.Ask(t.Context(), Input{OwnerProblem: "MySQLCluster test does not exist"})
	g.Expect(got[0].Verdict).To(Equal(statemachine.GateOpen))
	g.Expect(got[1].Verdict).To(Equal(statemachine.GateError))
	g.Expect(got[1].Message).To(Equal("MySQLCluster test does not exist"))
}

func TestAskIsInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := Compile([]v1alpha1.Gate{{Name: "a", Expression: "lists.range(1000).all(i, i >= 0)"}}).Ask(ctx, Input{})
	g.Expect(got[0].Verdict).To(Equal(statemachine.GateError), got[0].Message)
}

// A gate is open only if its expression says true: whatever else it says, or does, is no step.
func FuzzAsk(f *testing.F) {
	for _, expression := range []string{
		"true", "owner.status.ready", "owner.condition('A').status == 'True'", "pods.all(p, p.status.phase == 'Running')", "1/0 == 1",
		"owner.a.b.c", "[1,2,3].exists(x, x > owner.n)", "{'a': 1}['b'] == 1", "timestamp(owner.t) > timestamp('2026-01-01T00:00:00Z')",
		"owner.condition(owner.t).x", "lists.range(9999).map(x, x).size() > 0", "optional.of(true)", "'%d'.format([owner.n]) == '1'",
	} {
		f.Add(expression, `{"status":{"ready":true,"conditions":[{"type":"A","status":"True"}]},"n":1,"t":"x"}`)
	}
	f.Fuzz(func(t *testing.T, expression, object string) {
		if len(expression) > 2048 {
			return // the API server refuses it
		}
		var decoded map[string]any
		_ = json.Unmarshal([]byte(object), &decoded) // none is an owner too
		p := Compile([]v1alpha1.Gate{{Name: "g", Expression: expression, MessageExpression: expression}, {Name: "not", Expression: "!(" + expression + ")"}})
		got := p.Ask(t.Context(), Input{Owner: decoded, StatefulSet: decoded, Pods: []any{decoded}})
		for _, a := range got {
			if utf8.RuneCountInString(a.Message) > statemachine.MaxGateMessage || strings.ContainsAny(a.Message, "\n\r\t") || !utf8.ValidString(a.Message) {
				t.Errorf("%q is no message", a.Message)
			}
		}
		if got[0].Verdict == statemachine.GateOpen && (p.gates[0].invalid != nil || got[1].Verdict == statemachine.GateOpen) {
			t.Errorf("%q is open, and so is its opposite: %v", expression, got)
		}
	})
}

func BenchmarkAsk(b *testing.B) {
	g := NewWithT(b)
	in := input(g, cluster)
	for _, c := range []struct {
		name, expression string
		pods             int
	}{
		{"a condition of the owner", "owner.condition('Available').status == 'True'", 3},
		{"all of 1000 pods", "pods.all(p, p.status.phase == 'Running')", 1000},
	} {
		p := Compile([]v1alpha1.Gate{{Name: "g", Expression: c.expression}})
		in.Pods = in.Pods[:3:3]
		for len(in.Pods) < c.pods {
			in.Pods = append(in.Pods, in.Pods[0])
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if got := p.Ask(b.Context(), in); got[0].Verdict != statemachine.GateOpen {
					b.Fatal(got)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if err := Compile([]v1alpha1.Gate{{Name: "g", Expression: "owner.condition('Available').status == 'True'"}}).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// An owner that is named from the root is the owner too: Pawl has to read it, or the gate would see none (I12).
func TestTheOwnerIsAskedByEitherName(t *testing.T) {
	for _, expression := range []string{"owner.ready", ".owner.ready", "[1].all(owner, .owner.ready)", "has(.owner.ready)"} {
		g := NewWithT(t)
		p := Compile([]v1alpha1.Gate{{Name: "g", Expression: expression}})
		g.Expect(p.Err()).NotTo(HaveOccurred(), expression)
		g.Expect(p.AsksOwner()).To(BeTrue(), expression)
	}
}
