// Command kubectl-pawl is a plugin of kubectl: it reads the history of rollouts, proves that nobody changed it, and waits
// for a rollout. It writes nothing to the cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, time.Now)
	stop()
	os.Exit(code)
}

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	cluster *genericclioptions.ConfigFlags
	now     func() time.Time
}

// run runs a command line and returns its exit code: 0, or 1 for an error. Commands that answer a question have further ones.
func run(ctx context.Context, args []string, streams genericiooptions.IOStreams, now func() time.Time) int {
	p := &plugin{IOStreams: streams, cluster: genericclioptions.NewConfigFlags(true), now: now}
	root := &cobra.Command{
		Use:           "kubectl-pawl",
		Short:         "Read the history of StatefulSet rollouts, verify it, wait for one, and try gates",
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pawl"},
	}
	p.cluster.AddFlags(root.PersistentFlags())
	root.AddCommand(newHistory(p), newVerify(p), newWait(p), newGate(p), newVersion(p))
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(streams.ErrOut, "error:", explained(err))
	if answer, is := errors.AsType[*answerError](err); is {
		return answer.code
	}
	return 1
}

// answerError is an answer with an exit code of its own.
type answerError struct {
	code int
	said string
}

func (e *answerError) Error() string { return e.said }
