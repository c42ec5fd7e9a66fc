package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"pawl.dev/pawl/e2e/lab"
	"pawl.dev/pawl/e2e/lab/selftest"
)

func build(ctx context.Context, args []string) error {
	o := newOptions("build")
	if _, err := o.parse(args); err != nil {
		return err
	}
	binaries, err := o.binaries(ctx)
	if err != nil {
		return err
	}
	return printJSON(binaries)
}

func (o *options) binaries(ctx context.Context) (lab.Binaries, error) {
	source, err := o.sourceDir()
	if err != nil {
		return lab.Binaries{}, err
	}
	cache, err := o.cacheDir()
	if err != nil {
		return lab.Binaries{}, err
	}
	binaries, err := lab.Build(ctx, source, cache, os.Stderr)
	if err != nil {
		return binaries, fmt.Errorf("prepare the binaries: %w", err)
	}
	return binaries, nil
}

func up(ctx context.Context, args []string) error {
	o := newOptions("up")
	asJSON := o.Bool("json", false, "")
	owner := o.Int("owner-pid", 0, "")
	if _, err := o.parse(args); err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	if l.Binaries, err = o.binaries(ctx); err != nil {
		return err
	}
	info, err := l.Up(ctx, *owner)
	if err != nil {
		return fmt.Errorf("bring the lab up: %w", err)
	}
	if *asJSON {
		return printJSON(info)
	}
	fmt.Printf("The lab is up after %.1f s: %s\n\n  %s get nodes\n  export KUBECONFIG=%s\n",
		info.UpSeconds, info.Server, info.Kubectl, info.Kubeconfig)
	return nil
}

func down(_ context.Context, args []string) error {
	o := newOptions("down")
	if _, err := o.parse(args); err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	if err := l.Down(); err != nil {
		return fmt.Errorf("take the lab down: %w", err)
	}
	return nil
}

func stop(_ context.Context, args []string) error {
	return single("stop", args, (*lab.Lab).Stop)
}

func start(_ context.Context, args []string) error {
	return single("start", args, (*lab.Lab).Start)
}

// add takes flags up to "--"; what follows belongs to the program.
func add(ctx context.Context, args []string) error {
	var program []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, program = args[:i], args[i+1:]
	}
	o := newOptions("add")
	ready := o.String("ready", "", "")
	names, err := o.parse(args)
	if err != nil {
		return err
	}
	if len(names) != 1 || len(program) == 0 {
		return errors.New("add wants a name, and a program behind --; see lab help")
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	if err := l.Add(ctx, lab.Program{Name: names[0], Command: program, Ready: *ready}); err != nil {
		return fmt.Errorf("add a component: %w", err)
	}
	return nil
}

// single does something to one component.
func single(name string, args []string, act func(*lab.Lab, string) error) error {
	o := newOptions(name)
	names, err := o.parse(args)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return fmt.Errorf("%s wants one component; see lab help", name)
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	if err := act(l, names[0]); err != nil {
		return fmt.Errorf("%s a component: %w", name, err)
	}
	return nil
}

func info(_ context.Context, args []string) error {
	o := newOptions("info")
	if _, err := o.parse(args); err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	known, err := l.Info()
	if err != nil {
		return fmt.Errorf("look at the lab: %w", err)
	}
	return printJSON(known)
}

func selfTest(ctx context.Context, args []string) error {
	o := newOptions("selftest")
	if _, err := o.parse(args); err != nil {
		return err
	}
	binaries, err := o.binaries(ctx)
	if err != nil {
		return err
	}
	if err := selftest.Run(ctx, binaries, os.Stdout); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	return nil
}

func printJSON(value any) error {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
