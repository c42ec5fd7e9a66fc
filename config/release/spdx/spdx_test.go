package spdx

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// The SBOM names every program by its digest, and what it depends on.
func TestDescribe(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "hello")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = "../image/testdata/hello"
	g.Expect(cmd.Run()).To(Succeed())
	text, err := Describe([]Program{{"pawl-amd64", path}, {"pawl-arm64", path}}, "v1.2.3")
	g.Expect(err).NotTo(HaveOccurred())
	var doc document
	g.Expect(json.Unmarshal(text, &doc)).To(Succeed())
	g.Expect(doc.Version).To(Equal("SPDX-2.3"))
	names := map[string]int{}
	for _, p := range doc.Packages {
		names[p.Name]++
		g.Expect(p.ID).To(MatchRegexp(`^SPDXRef-[a-zA-Z0-9.-]+$`))
		g.Expect(p.Refs[0].Locator).To(HavePrefix("pkg:golang/" + p.Name + "@"))
	}
	g.Expect(names).To(Equal(map[string]int{"pawl.dev/pawl/hello": 2, "stdlib": 1}))
	g.Expect(doc.Relationships).To(ContainElement(relationship{"SPDXRef-pawl-arm64", "DEPENDS_ON", doc.Packages[1].ID}))

	_, err = Describe([]Program{{"pawl", "spdx_test.go"}}, "v1.2.3")
	g.Expect(err).To(HaveOccurred(), "what is no program is an error")
}
