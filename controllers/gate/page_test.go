package gate

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"pawl.dev/pawl/api/v1alpha1"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// docs/policy.md has a section for each field of a policy, with an example of it that is valid.
func TestPolicyPage(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/policy.md")
	g.Expect(err).NotTo(HaveOccurred())
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[heading] = text
	}
	for field := range reflect.TypeFor[v1alpha1.RolloutPolicySpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		g.Expect(sections).To(HaveKey(name), "a field without a section")
		var set bool
		for _, example := range examplesIn(g, sections[name]) {
			set = set || !reflect.ValueOf(example.Spec).FieldByIndex(field.Index).IsZero()
		}
		g.Expect(set).To(BeTrue(), "the section %s has no example of it", name)
	}
	for _, example := range examplesIn(g, string(page)) {
		g.Expect(Compile(example.Spec.Gates).Err()).NotTo(HaveOccurred())
	}
}

func examplesIn(g Gomega, text string) (examples []v1alpha1.RolloutPolicy) {
	for _, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
		var policy v1alpha1.RolloutPolicy
		g.Expect(yaml.UnmarshalStrict([]byte(block[1]), &policy)).To(Succeed(), block[1])
		examples = append(examples, policy)
	}
	return examples
}
