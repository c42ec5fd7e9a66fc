package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// outputs are the forms that every command has; some have one more, for reading.
var outputs = []string{"table", "wide", "json", "yaml"}

func outputFlag(cmd *cobra.Command, into *string, first string) {
	cmd.Flags().StringVarP(into, "output", "o", first, allowed(first))
}

// allowed lists the forms of a command whose default is first.
func allowed(first string) string {
	all := outputs
	if !slices.Contains(outputs, first) {
		all = append([]string{first}, outputs...)
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

func checkOutput(output, first string) error {
	if output != first && !slices.Contains(outputs, output) {
		return fmt.Errorf("--output=%q: must be %s", output, allowed(first))
	}
	return nil
}

// structured reports whether a program reads the output.
func structured(output string) bool { return output == "json" || output == "yaml" }

// newTable has columns of which those after the first few are shown with -o wide only.
func newTable(few int, columns ...string) *metav1.Table {
	t := &metav1.Table{}
	for i, name := range columns {
		column := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if i >= few {
			column.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, column)
	}
	return t
}

func printTable(w io.Writer, t *metav1.Table, output string) error {
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: output == "wide"}).PrintObj(t, w); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printObject prints an object of the API as kubectl does.
func printObject(w io.Writer, o runtime.Object, output string) error {
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if output == "json" {
		printer = &printers.JSONPrinter{}
	}
	if err := printer.PrintObj(o, w); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printStructured prints what is no object of the API.
func printStructured(w io.Writer, output string, what any) error {
	text, err := json.MarshalIndent(what, "", "    ")
	if err == nil && output == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	fmt.Fprintf(w, "%s\n", strings.TrimSuffix(string(text), "\n"))
	return nil
}
