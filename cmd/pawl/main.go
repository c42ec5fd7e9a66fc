// Command pawl is the manager: it rolls out the StatefulSets that ask for it, one pod at a time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"pawl.dev/pawl/cmd/internal/version"
)

const usage = `usage: pawl [manager] [flags]     run the manager in a cluster, or with --kubeconfig
       pawl run-local [flags]     install Pawl into the cluster of $PAWL_KUBECONFIG and run the manager here,
                                  as its own service account
       pawl version               say which version this is

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr, os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "pawl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, answer io.Writer) error {
	command := "manager"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	if command == "version" {
		fmt.Fprintln(answer, version.Line("pawl"))
		return nil
	}
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	if err := setLogger(o, out); err != nil {
		return err
	}
	switch command {
	case "manager":
		return manage(ctx, o)
	case "run-local":
		return runLocal(ctx, o, out)
	default:
		return fmt.Errorf("unknown command %q: want manager, run-local or version", command)
	}
}
