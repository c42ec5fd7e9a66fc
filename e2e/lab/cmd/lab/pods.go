package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"pawl.dev/pawl/e2e/lab"
)

// kubelet speaks to the API server as the one that publishes pod statuses, so
// that the audit log says what happened and not who played it.
func (o *options) kubelet() (*lab.Client, error) {
	l, err := o.open()
	if err != nil {
		return nil, err
	}
	known, err := l.Info()
	if err != nil {
		return nil, fmt.Errorf("look at the lab: %w", err)
	}
	client, err := known.Client("kubelet")
	if err != nil {
		return nil, fmt.Errorf("speak to the lab: %w", err)
	}
	return client, nil
}

func kill(ctx context.Context, args []string) error {
	o := newOptions("kill")
	namespace := o.String("n", "default", "")
	container := o.String("container", "", "")
	code := o.Int("exit-code", 137, "")
	names, err := o.parse(args)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return errors.New("kill wants one pod; see lab help")
	}
	client, err := o.kubelet()
	if err != nil {
		return err
	}
	return client.Kill(ctx, *namespace, names[0], *container, *code)
}

func fate(ctx context.Context, args []string) error {
	o := newOptions("fate")
	namespace := o.String("n", "default", "")
	words, err := o.parse(args)
	if err != nil {
		return err
	}
	if len(words) != 2 {
		return errors.New("fate wants a pod and a fate; see lab help")
	}
	client, err := o.kubelet()
	if err != nil {
		return err
	}
	return client.SetFate(ctx, *namespace, words[0], words[1])
}

// kubectl becomes kubectl, so that its exit code, signals and terminal are its
// own. Only leading flags are ours: what follows belongs to kubectl.
func kubectl(_ context.Context, args []string) error {
	o := newOptions("kubectl")
	if err := o.Parse(args); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	known, err := l.Info()
	if err != nil {
		return fmt.Errorf("look at the lab: %w", err)
	}
	argv := append([]string{known.Kubectl}, o.Args()...)
	if err := syscall.Exec(known.Kubectl, argv, os.Environ()); err != nil {
		return fmt.Errorf("become kubectl: %w", err)
	}
	return nil
}

func logs(ctx context.Context, args []string) error {
	o := newOptions("logs")
	follow := o.Bool("f", false, "")
	names, err := o.parse(args)
	if err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = l.Logs(); err != nil {
			return fmt.Errorf("find the logs: %w", err)
		}
	}
	var paths []string
	for _, name := range names {
		path, err := l.Log(name)
		if err != nil {
			return fmt.Errorf("find the log: %w", err)
		}
		paths = append(paths, path)
	}
	if *follow {
		// tail marks whose lines they are, and is on every system that a lab
		// runs on.
		tail := exec.CommandContext(ctx, "tail", append([]string{"-n", "+1", "-f"}, paths...)...)
		tail.Stdout, tail.Stderr = os.Stdout, os.Stderr
		tail.WaitDelay = time.Second
		if err := tail.Run(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("follow the logs: %w", err)
		}
		return nil
	}
	return printLogs(names, paths)
}

func printLogs(names, paths []string) error {
	for i, path := range paths {
		if len(paths) > 1 {
			fmt.Printf("==> %s <==\n", names[i])
		}
		if err := printFile(path); err != nil {
			return err
		}
	}
	return nil
}

func printFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("print the log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(os.Stdout, file); err != nil {
		return fmt.Errorf("print the log: %w", err)
	}
	return nil
}
