// Command chart writes what follows from other manifests: the bindings of the roles that controller-gen writes, the overlay
// for some namespaces only, and the templates of the Helm chart, which are what kustomize makes of config/default with
// holes where a value of the chart goes. Run it in config/release: make generate does.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(".."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(config string) error {
	if err := write(config, bindings); err != nil {
		return err
	}
	return write(config, templates) // of what kustomize makes of the bindings
}

// write writes the files that a step makes of the manifests, by their path in config.
func write(config string, step func(string) (map[string]string, error)) error {
	files, err := step(config)
	if err != nil {
		return err
	}
	for path, text := range files {
		path = filepath.Join(config, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write what was made: %w", err)
		}
	}
	return nil
}
