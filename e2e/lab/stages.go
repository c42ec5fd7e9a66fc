package lab

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed stages
var stageFiles embed.FS

// podStep is one step in the life of a pod. When it comes, and how soon, is
// decided in stages/pod.jq; what it publishes is written in
// stages/pod-status.tmpl.
type podStep struct {
	name    string
	silent  bool // publishes nothing
	deletes bool // the pod is gone afterwards
}

var podSteps = []podStep{
	{name: "create"},
	{name: "start"},
	{name: "start-ready"},
	{name: "become-ready"},
	{name: "unready"},
	{name: "publish"},
	{name: "revive"},
	{name: "pull-fails"},
	{name: "pull-backs-off"},
	{name: "exit"},
	{name: "back-off"},
	// Publishing is always a change here, and thereby guarded against a pod that
	// is no longer this one; the deletion that follows is not.
	{name: "terminate", deletes: true},
	{name: "remove", silent: true, deletes: true},
	// KWOK cancels a step that is due only when another one takes its place:
	// without this one, a pod healed while its exit is pending would exit.
	{name: "settled", silent: true},
}

// kwokOptions are complete on purpose: what is left out here is not defaulted but
// zero, and a KWOK without workers for leases or nodes does not complain.
const kwokOptions = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: true
  podPlayStageParallelism: 32
  nodePlayStageParallelism: 4
  nodeLeaseParallelism: 4
  podsOnNodeSyncParallelism: 4
  # Without leases of its own, the node controller gives a node up after 50 s.
  nodeLeaseDurationSeconds: 40
`

// kwokConfig is the whole configuration of KWOK: its options, the stage of
// nodes and those of pods.
func kwokConfig() (string, error) {
	texts := map[string]string{}
	for _, name := range []string{"node.yaml", "pod.jq", "pod-status.tmpl", "stage.yaml.tmpl"} {
		data, err := stageFiles.ReadFile("stages/" + name)
		if err != nil {
			return "", fmt.Errorf("read the stages: %w", err)
		}
		texts[name] = string(data)
	}
	stage, err := template.New("stage").Funcs(template.FuncMap{"indent": indent}).Parse(texts["stage.yaml.tmpl"])
	if err != nil {
		return "", fmt.Errorf("parse the stage template: %w", err)
	}
	var config strings.Builder
	config.WriteString(kwokOptions + "---\n" + texts["node.yaml"])
	for _, step := range podSteps {
		config.WriteString("---\n")
		err := stage.Execute(&config, map[string]any{
			"Step": step.name, "Deletes": step.deletes, "Publishes": !step.silent,
			"Decision": texts["pod.jq"], "Status": texts["pod-status.tmpl"],
		})
		if err != nil {
			return "", fmt.Errorf("render the stage %s: %w", step.name, err)
		}
	}
	return config.String(), nil
}

// indent puts text inside a YAML block scalar.
func indent(spaces int, text string) string {
	pad := strings.Repeat(" ", spaces)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = pad + line
		}
	}
	return strings.Join(lines, "\n")
}
