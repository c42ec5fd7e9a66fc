package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	. "github.com/onsi/gomega"
)

// The same sources, in two places, give the same archive and the same SBOM, byte by byte.
func TestTheSameSourcesGiveTheSameBytes(t *testing.T) {
	g := NewWithT(t)
	var digests []string
	var archives, boms [][]byte
	for range 2 {
		dir, out := t.TempDir(), filepath.Join(t.TempDir(), "image")
		g.Expect(os.CopyFS(dir, os.DirFS("testdata/hello"))).To(Succeed())
		digest, err := build(source{dir: dir, command: ".", version: "v1.2.3"}, "registry.example/pawl", out)
		g.Expect(err).NotTo(HaveOccurred())
		archive, err := os.ReadFile(out + ".tar")
		g.Expect(err).NotTo(HaveOccurred())
		bom, err := os.ReadFile(out + ".spdx.json")
		g.Expect(err).NotTo(HaveOccurred())
		digests, archives, boms = append(digests, digest), append(archives, archive), append(boms, bom)
	}
	g.Expect(digests[0]).To(Equal(digests[1]))
	g.Expect(bytes.Equal(archives[0], archives[1])).To(BeTrue())
	g.Expect(string(boms[0])).To(Equal(string(boms[1])))

	other, err := build(source{dir: "testdata/hello", command: ".", version: "v1.2.4"}, "registry.example/pawl", filepath.Join(t.TempDir(), "image"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).NotTo(Equal(digests[0]), "another version is another image")
}

// For each platform there is one file, which needs nothing else, and it does not run as root.
func TestTheImageIsOneStaticBinary(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	binaries, err := source{dir: "testdata/hello", command: ".", version: "v1.2.3"}.compile(dir)
	g.Expect(err).NotTo(HaveOccurred())
	index, err := pack(binaries, "v1.2.3")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(write(index, filepath.Join(dir, "layout"), "pawl", "v1.2.3")).To(Succeed())
	read, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	g.Expect(err).NotTo(HaveOccurred())
	top, err := read.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(top.Manifests).To(HaveLen(1))
	g.Expect(top.Manifests[0].Annotations).To(HaveKeyWithValue("io.containerd.image.name", "pawl:v1.2.3"))

	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	var found []string
	for i, d := range manifest.Manifests {
		found = append(found, d.Platform.String())
		image, err := index.Image(d.Digest)
		g.Expect(err).NotTo(HaveOccurred())
		config, err := image.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Config.User).To(Equal("65532:65532"))
		g.Expect(config.Config.Entrypoint).To(Equal([]string{"/pawl"}))
		g.Expect(config.Created.IsZero()).To(BeTrue(), "no time")
		layers, err := image.Layers()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(layers).To(HaveLen(1))
		content, err := layers[0].Uncompressed()
		g.Expect(err).NotTo(HaveOccurred())
		files := tar.NewReader(content)
		header, err := files.Next()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(header.Name).To(Equal("pawl"))
		g.Expect(header.Mode).To(BeEquivalentTo(0o555), "nobody may write it")
		_, err = files.Next()
		g.Expect(err).To(Equal(io.EOF), "and nothing else")

		program, err := elf.Open(binaries[i].path)
		g.Expect(err).NotTo(HaveOccurred())
		for _, part := range program.Progs {
			g.Expect(part.Type).NotTo(Equal(elf.PT_INTERP), "it is static")
		}
	}
	g.Expect(found).To(Equal([]string{"linux/amd64", "linux/arm64"}))
}

func TestWhatCannotBeCompiledIsAnError(t *testing.T) {
	g := NewWithT(t)
	binaries, err := source{dir: "testdata/hello", command: "./nothing", version: "v1"}.compile(t.TempDir())
	g.Expect(err).To(HaveOccurred())
	g.Expect(binaries).To(BeEmpty())
}
