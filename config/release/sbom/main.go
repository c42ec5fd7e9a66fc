// Command sbom writes what a program is made of, as SPDX: sbom VERSION PROGRAM FILE. goreleaser asks it for each of an archive.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pawl.dev/pawl/config/release/spdx"
)

func main() {
	if err := describe(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func describe(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want VERSION PROGRAM FILE, not %q", args)
	}
	version, path, file := args[0], args[1], args[2]
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	text, err := spdx.Describe([]spdx.Program{{Name: name, Path: path}}, version)
	if err != nil {
		return fmt.Errorf("describe %s: %w", path, err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // it is published
		return fmt.Errorf("write the SBOM: %w", err)
	}
	return nil
}
