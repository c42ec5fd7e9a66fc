package gate

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

// The variables.
const (
	owner       = "owner"
	statefulSet = "statefulSet"
	pods        = "pods"
)

const (
	// costLimit is what one evaluation may cost: a tenth of what Kubernetes allows for one of its own expressions
	// (PerCallLimit), as a gate is asked at every look at a StatefulSet. A question about each of 1,000 pods fits.
	costLimit = 100_000
	// interruptEvery is after how many steps of a loop to see whether the manager is being stopped.
	interruptEvery = 100
	// maxRange is how long a list lists.range may make.
	maxRange = 10_000
)

// environment is the language of gates: the standard one with strings, lists and optional fields, and condition().
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(owner, cel.DynType), cel.Variable(statefulSet, cel.DynType), cel.Variable(pods, cel.ListType(cel.DynType)),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)),
		cel.Function("condition",
			cel.Overload("condition_dyn_string", []*cel.Type{cel.DynType, cel.StringType}, cel.DynType, cel.BinaryBinding(condition)),
			cel.MemberOverload("dyn_condition_string", []*cel.Type{cel.DynType, cel.StringType}, cel.DynType, cel.BinaryBinding(condition)),
		),
	)
})

// program compiles one expression that has to yield a type, and notes the variables that it uses.
func program(source string, yields *cel.Type, uses map[string]bool) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("make the environment: %w", err)
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if t := checked.OutputType(); !t.IsExactType(yields) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it yields %s, and has to yield %s", t, yields)
	}
	for _, reference := range checked.NativeRep().ReferenceMap() {
		uses[strings.TrimPrefix(reference.Name, ".")] = true // .owner is owner, whatever a macro calls so
	}
	p, err := env.Program(checked, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(interruptEvery), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err //nolint:wrapcheck // it names what is wrong with the expression; the caller names the gate
	}
	return p, nil
}

// firstOf is the first thing that is wrong with an expression, as line:column: what.
func firstOf(issues *cel.Issues) error {
	first := issues.Errors()[0]
	if first.Location.Line() < 1 {
		return errors.New(first.Message)
	}
	return fmt.Errorf("%d:%d: %s", first.Location.Line(), first.Location.Column()+1, first.Message)
}

// condition is the entry of this type in status.conditions of an object. Without one the status is Unknown, as Kubernetes
// has it: a gate that wants True is closed then, and not in error.
func condition(object, kind ref.Val) ref.Val {
	found := map[string]any{"type": kind.Value(), "status": "Unknown", "reason": "", "message": ""}
	whole, _ := object.Value().(map[string]any)
	status, _ := whole["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, entry := range list {
		if c, _ := entry.(map[string]any); c["type"] == kind.Value() {
			maps.Copy(found, c)
			break
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(found)
}
