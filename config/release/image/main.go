// Command image builds the image of the manager, without Docker: one static binary on nothing, for each platform, as an OCI
// archive, and beside it what is in the binary, as SPDX. The same sources give the same bytes, wherever and whenever they are
// built. Run it in config/release: make image does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pawl.dev/pawl/config/release/spdx"
)

func main() {
	version := flag.String("version", "v0.0.0-dev", "what pawl version says, and the tag of the image")
	name := flag.String("name", "pawl", "the name of the image, which containerd imports it under")
	out := flag.String("out", "../../bin/pawl-image", "the archive, without .tar; the SBOM is beside it")
	arch := flag.String("arch", strings.Join(platforms, ","), "the architectures, of linux all")
	flag.Parse()
	platforms = strings.Split(*arch, ",")
	digest, err := build(source{dir: "../..", command: "./cmd/pawl", version: *version}, *name, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s.tar: %s:%s@%s\n", filepath.Clean(*out), *name, *version, digest)
}

// build writes the archive and the SBOM, and returns the digest of the index.
func build(s source, name, out string) (digest string, err error) {
	dir, err := os.MkdirTemp("", "pawl-image-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries, err := s.compile(dir)
	if err != nil {
		return "", err
	}
	var programs []spdx.Program
	for _, b := range binaries {
		programs = append(programs, spdx.Program{Name: "pawl-" + b.arch, Path: b.path})
	}
	bom, err := spdx.Describe(programs, s.version)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(out+".spdx.json", bom, 0o644); err != nil {
		return "", fmt.Errorf("write the SBOM: %w", err)
	}
	index, err := pack(binaries, s.version)
	if err != nil {
		return "", err
	}
	layout := filepath.Join(dir, "layout")
	if err := write(index, layout, name, s.version); err != nil {
		return "", err
	}
	if err := archive(layout, out+".tar"); err != nil {
		return "", err
	}
	hash, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("digest the image: %w", err)
	}
	return hash.String(), nil
}
