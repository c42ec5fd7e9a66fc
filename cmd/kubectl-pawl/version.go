package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pawl.dev/pawl/cmd/internal/version"
)

func newVersion(p *plugin) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(p.Out, version.Line("kubectl-pawl")) },
	}
}
