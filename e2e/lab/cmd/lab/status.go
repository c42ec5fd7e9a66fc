package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"pawl.dev/pawl/e2e/lab"
)

func status(_ context.Context, args []string) error {
	o := newOptions("status")
	asJSON := o.Bool("json", false, "")
	if _, err := o.parse(args); err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	all, err := l.Status()
	if err != nil {
		return fmt.Errorf("look at the lab: %w", err)
	}
	if *asJSON {
		err = printJSON(all)
	} else {
		err = printStatus(all)
	}
	for _, c := range all {
		if !c.Up {
			err = errors.Join(err, fmt.Errorf("%s is down", c.Name))
		}
	}
	return err
}

func printStatus(all []lab.ComponentStatus) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "COMPONENT\tPID\tSTATE\tPORT\tRSS\tLOG")
	for _, c := range all {
		state, port := "down", "-"
		if c.Up {
			state = "up"
		}
		if c.Port != 0 {
			port = fmt.Sprint(c.Port)
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d MiB\t%s\n", c.Name, c.PID, state, port, c.Bytes>>20, c.Log)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}
