// Command lab runs a Kubernetes control plane with played nodes on this
// machine; see the package lab and its README.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"pawl.dev/pawl/e2e/lab"
)

const usage = `usage: lab COMMAND [flags]

  build                       build the binaries into the cache
  up [--json] [--owner-pid N] start a fresh lab; what ran here before is ended first.
                              with an owner, the lab goes when process N is gone
  down                        end the lab and remove its directory
  status [--json]             what runs; exit 1 if anything does not
  stop|start COMPONENT        end one component, start it again
  add NAME [--ready URL] -- PROGRAM ARGS...
                              run one more program as a component; {port} in its
                              arguments and in URL becomes a free one. With a URL,
                              wait until that answers
  info                        print again what "up --json" printed
  logs [-f] [COMPONENT]       print logs
  kubectl ARGS...             kubectl against the lab, as admin
  kill [-n NS] [--container C] [--exit-code N] POD
                              end a container of a pod
  fate [-n NS] POD ready|bad|crash|creating|never|exits
                              change what becomes of one pod
  selftest                    bring a lab up elsewhere, try every fate, take it down

common flags, before or after the command's own:
  --dir DIR      the lab (default $LAB_DIR, else .lab)
  --cache DIR    the binaries (default $LAB_CACHE, else in the user's cache)
  --source DIR   the sources (default $LAB_SOURCE, else found from here)
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// commands by name.
var commands = map[string]func(ctx context.Context, args []string) error{
	"build": build, "up": up, "down": down, "status": status, "info": info, "logs": logs,
	"kubectl": kubectl, "kill": kill, "fate": fate, "stop": stop, "start": start, "add": add, "selftest": selfTest,
}

func run(name string, args []string) error {
	switch name {
	case lab.ShimCommand:
		return lab.Shim(args[0])
	case lab.WatchdogCommand:
		return lab.Watch(args[0], args[1], args[2])
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	command, ok := commands[name]
	if !ok {
		return fmt.Errorf("no command %q; see lab help", name)
	}
	// An interrupted "up" takes back what it started.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command(ctx, args)
}
