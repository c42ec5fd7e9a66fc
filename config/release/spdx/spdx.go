// Package spdx says what a program is made of.
package spdx

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// Program is an executable of Go, and what it is called in the document.
type Program struct{ Name, Path string }

type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name      string        `json:"name"`
	ID        string        `json:"SPDXID"`
	Version   string        `json:"versionInfo"`
	Location  string        `json:"downloadLocation"`
	Analyzed  bool          `json:"filesAnalyzed"`
	Checksums []checksum    `json:"checksums,omitempty"`
	Refs      []externalRef `json:"externalRefs"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// Describe says what the programs are made of, by what the linker wrote into them: SPDX 2.3. It has no time of its own, so
// that the same programs have the same SBOM.
func Describe(programs []Program, version string) ([]byte, error) {
	doc := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "pawl " + version,
		Creation: creation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: pawl.dev/pawl/config/release/spdx"}},
	}
	all := sha256.New()
	for _, p := range programs {
		content, err := os.ReadFile(p.Path)
		if err != nil {
			return nil, fmt.Errorf("read the program: %w", err)
		}
		_, _ = all.Write(content)
		info, err := buildinfo.ReadFile(p.Path)
		if err != nil {
			return nil, fmt.Errorf("read what %s is made of: %w", p.Path, err)
		}
		program := "SPDXRef-" + p.Name
		main := module(info.Main.Path, version, program)
		main.Checksums = []checksum{{"SHA256", fmt.Sprintf("%x", sha256.Sum256(content))}}
		doc.Packages = append(doc.Packages, main)
		doc.Relationships = append(doc.Relationships, relationship{doc.ID, "DESCRIBES", program})
		std := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, dep := range slices.Concat([]*debug.Module{std}, info.Deps) {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			id := "SPDXRef-" + strings.NewReplacer("/", "-", "_", "-", "+", "-", "@", "-").Replace(dep.Path+"-"+dep.Version)
			if !slices.ContainsFunc(doc.Packages, func(p spdxPackage) bool { return p.ID == id }) {
				doc.Packages = append(doc.Packages, module(dep.Path, dep.Version, id))
			}
			doc.Relationships = append(doc.Relationships, relationship{program, "DEPENDS_ON", id})
		}
	}
	doc.Namespace = fmt.Sprintf("https://pawl.dev/spdx/%x", all.Sum(nil))
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the SBOM: %w", err)
	}
	return append(text, '\n'), nil
}

func module(path, version, id string) spdxPackage {
	return spdxPackage{
		Name: path, ID: id, Version: version, Location: "NOASSERTION",
		Refs: []externalRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
