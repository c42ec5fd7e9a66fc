// Package gate asks the gates of a RolloutPolicy: CEL expressions over a StatefulSet, its owner and its pods. A gate
// that cannot be compiled or evaluated answers with an error, never with open (invariant I12).
package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// Program is the gates of one generation of a RolloutPolicy, compiled. It may be used by several goroutines at once.
type Program struct {
	gates []compiled
}

type compiled struct {
	name    string
	bypass  statemachine.Bypass
	source  string
	asks    cel.Program
	says    cel.Program // nil without a messageExpression
	uses    map[string]bool
	invalid error
}

// Input is what gates look at.
type Input struct {
	Owner        map[string]any // nil is null
	OwnerProblem string         // why the owner could not be read: a gate that asks it is in error
	StatefulSet  map[string]any
	Pods         []any // of map[string]any, in the order of their ordinals
}

func (in Input) variables() map[string]any {
	variables := map[string]any{owner: types.NullValue, statefulSet: types.NullValue, pods: in.Pods}
	if in.Owner != nil {
		variables[owner] = in.Owner
	}
	if in.StatefulSet != nil {
		variables[statefulSet] = in.StatefulSet
	}
	return variables
}

// Compile compiles gates. It never fails as a whole: a gate that does not compile answers with that error.
func Compile(gates []v1alpha1.Gate) *Program {
	p := &Program{gates: make([]compiled, len(gates))}
	for i, g := range gates {
		p.gates[i] = compile(i, g)
	}
	return p
}

func compile(i int, g v1alpha1.Gate) compiled {
	c := compiled{name: g.Name, bypass: statemachine.Bypass(g.Bypass), source: g.Expression, uses: map[string]bool{}}
	wrong := func(field string, err error) compiled {
		c.invalid = fmt.Errorf("gates[%d] %s: %s: %w", i, g.Name, field, err)
		return c
	}
	var err error
	if c.asks, err = program(g.Expression, cel.BoolType, c.uses); err != nil {
		return wrong("expression", err)
	}
	if g.MessageExpression == "" {
		return c
	}
	if c.says, err = program(g.MessageExpression, cel.StringType, c.uses); err != nil {
		return wrong("messageExpression", err)
	}
	return c
}

// Err is the first gate that does not compile: which it is, which field, where in it, and what is wrong.
func (p *Program) Err() error {
	for i := range p.gates {
		if err := p.gates[i].invalid; err != nil {
			return err
		}
	}
	return nil
}

// Names are those of the gates.
func (p *Program) Names() []string {
	names := make([]string, len(p.gates))
	for i := range p.gates {
		names[i] = p.gates[i].name
	}
	return names
}

// AsksOwner reports whether a gate looks at the owner.
func (p *Program) AsksOwner() bool { return p.use(owner) }

// AsksStatefulSet reports whether a gate looks at the StatefulSet itself.
func (p *Program) AsksStatefulSet() bool { return p.use(statefulSet) }

// AsksPods reports whether a gate looks at the pods.
func (p *Program) AsksPods() bool { return p.use(pods) }

func (p *Program) use(variable string) bool {
	for i := range p.gates {
		if p.gates[i].uses[variable] {
			return true
		}
	}
	return false
}

// Ask evaluates all gates, also after one that is closed.
func (p *Program) Ask(ctx context.Context, in Input) []statemachine.Gate {
	variables := in.variables()
	answers := make([]statemachine.Gate, len(p.gates))
	for i := range p.gates {
		c := &p.gates[i]
		answers[i] = statemachine.Gate{Name: c.name, Bypass: c.bypass}
		answers[i].Verdict, answers[i].Message = c.ask(ctx, in.OwnerProblem, variables)
	}
	return answers
}

// Messages are what the messageExpressions yield now, whether the gates are closed or not; empty where there is none. They
// are for whoever writes a policy.
func (p *Program) Messages(ctx context.Context, in Input) []string {
	variables := in.variables()
	said := make([]string, len(p.gates))
	for i := range p.gates {
		if c := &p.gates[i]; c.says != nil && c.invalid == nil && (in.OwnerProblem == "" || !c.uses[owner]) {
			said[i] = c.message(ctx, variables)
		}
	}
	return said
}

func (c *compiled) ask(ctx context.Context, ownerProblem string, variables map[string]any) (statemachine.Verdict, string) {
	failed := func(why string) (statemachine.Verdict, string) { return statemachine.GateError, line(why) }
	if c.invalid != nil {
		return failed(c.invalid.Error())
	}
	if ownerProblem != "" && c.uses[owner] {
		return failed(ownerProblem)
	}
	answer, err := evaluate(ctx, c.asks, variables)
	if err != nil {
		return failed(err.Error())
	}
	switch open, is := answer.(bool); {
	case !is:
		return failed(fmt.Sprintf("the expression yields %T, not a bool", answer))
	case open:
		return statemachine.GateOpen, ""
	}
	return statemachine.GateClosed, c.message(ctx, variables)
}

// message is what to show while the gate is closed. Its own faults never change the answer of the gate.
func (c *compiled) message(ctx context.Context, variables map[string]any) string {
	if c.says == nil {
		return line(c.source + " is false")
	}
	said, err := evaluate(ctx, c.says, variables)
	text, is := said.(string)
	switch {
	case err != nil:
		return line("messageExpression: " + err.Error())
	case !is:
		return line(fmt.Sprintf("messageExpression yields %T, not a string", said))
	case strings.TrimSpace(text) == "":
		return line(c.source + " is false")
	default:
		return line(text)
	}
}

var errCost = fmt.Errorf("it needs more than %d units of CEL's cost; look at fewer pods or fields", costLimit)

// evaluate runs a program to its end, its error, or the limit of its cost. A panic in it is an error.
func evaluate(ctx context.Context, p cel.Program, variables map[string]any) (answer any, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the expression cannot be evaluated: %v", broken)
		}
	}()
	value, _, err := p.ContextEval(ctx, variables)
	switch {
	case err != nil && strings.Contains(err.Error(), "cost limit"):
		return nil, errCost
	case err != nil:
		return nil, err //nolint:wrapcheck // it names what is wrong with the expression; the caller names the gate
	case types.IsUnknownOrError(value):
		return nil, errors.New(fmt.Sprint(value))
	}
	return value.Value(), nil
}

// line makes a text one line of at most statemachine.MaxGateMessage characters.
func line(text string) string {
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " "))
	if len(runes) > statemachine.MaxGateMessage {
		return string(runes[:statemachine.MaxGateMessage-1]) + "…"
	}
	return string(runes)
}
