package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is who the manager runs as; the Deployment says the same. It owns nothing in the image.
const user = "65532:65532"

// pack makes an index with an image for each platform.
func pack(binaries []binary, version string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		image, err := b.image(version)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}},
		})
	}
	return index, nil
}

// image is one layer with one file in it.
func (b binary) image(version string) (v1.Image, error) {
	content, err := os.ReadFile(b.path)
	if err != nil {
		return nil, fmt.Errorf("read the binary: %w", err)
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	_, err = io.Copy(entry(w, "pawl", 0o555, len(content)), bytes.NewReader(content))
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, fmt.Errorf("append the layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", b.arch
	file.Config = v1.Config{
		Entrypoint: []string{"/pawl"}, User: user, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": "pawl", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return image, nil
}

// failing is a writer for a file whose header could not be written.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// entry begins a file of an archive; it has no time and belongs to root.
func entry(w *tar.Writer, name string, mode int64, size int) io.Writer {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(size), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return failing{err}
	}
	return w
}

// write lays the index out in a folder, under a name for those who import it.
func write(index v1.ImageIndex, dir, name, version string) error {
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": version, "io.containerd.image.name": name + ":" + version,
		}))
	}
	if err != nil {
		return fmt.Errorf("lay the image out: %w", err)
	}
	return nil
}

// archive puts a folder into a tar file, in the order of names.
func archive(dir, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("make the archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	walk := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		_, err = entry(w, filepath.ToSlash(name), 0o444, len(content)).Write(content)
		return err //nolint:wrapcheck // wrapped below
	})
	if err := errors.Join(walk, w.Close()); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}
