package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are the two programs that a lab consists of.
type Binaries struct {
	ControlPlane string `json:"controlplane"`
	KWOK         string `json:"kwok"`
}

// kubernetesVersion is what the control plane says it is. It has to be the
// version that controlplane/go.mod requires; a build from modules alone would
// say v0.0.0-master, and kubectl would warn about the skew.
const kubernetesVersion = "v1.37.2"

// program is one of the two, each in a module of its own: they agree on no
// version of anything.
type program struct {
	name, what string
	inputs     []string // everything that decides what is built
	build      []string // arguments of go build
}

var programs = []program{
	{
		name:   "kwok",
		what:   "kwok from Go modules; the first time takes about 2 minutes on 2 cores",
		inputs: []string{"go.mod", "go.sum"},
		build:  []string{"-ldflags=-s -w", "sigs.k8s.io/kwok/cmd/kwok"},
	},
	{
		name: "controlplane",
		what: "etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl from Go modules; " +
			"the first time takes about 7 minutes on 2 cores",
		inputs: []string{"go.mod", "go.sum", "main.go"},
		build:  []string{"-ldflags=" + versionFlags(), "."},
	},
}

// versionFlags has one order, for the cache goes by it.
func versionFlags() string {
	version := strings.Split(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, setting := range []string{
			"gitVersion=" + kubernetesVersion, "gitMajor=" + version[0], "gitMinor=" + version[1],
			"gitTreeState=clean", "gitCommit=gomodules", "buildDate=2026-01-01T00:00:00Z",
		} {
			flags = append(flags, "-X", pkg+"."+setting)
		}
	}
	return strings.Join(flags, " ")
}

// Build returns the binaries, building those that the cache does not hold.
// source is the directory of this package; out receives progress.
func Build(ctx context.Context, source, cache string, out io.Writer) (Binaries, error) {
	version, err := goCommand(ctx, source, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask go for its version: %w", err)
	}
	built := map[string]string{}
	for _, p := range programs {
		path, err := p.cached(filepath.Join(source, p.name), cache, version)
		if err != nil {
			return Binaries{}, err
		}
		if err := p.ensure(ctx, filepath.Join(source, p.name), path, out); err != nil {
			return Binaries{}, err
		}
		built[p.name] = path
	}
	return Binaries{ControlPlane: built["controlplane"], KWOK: built["kwok"]}, nil
}

// cached is where the cache holds the program, if it does: the path says from
// what it is built.
func (p program) cached(source, cache string, version []byte) (string, error) {
	hash := sha256.New()
	hash.Write(version)
	hash.Write([]byte(strings.Join(p.build, "\n")))
	for _, name := range p.inputs {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read what %s is built from: %w", p.name, err)
		}
		sum := sha256.Sum256(data)
		hash.Write(sum[:])
	}
	return filepath.Join(cache, p.name+"-"+hex.EncodeToString(hash.Sum(nil))[:16], p.name), nil
}

// ensure builds the program unless it is there. Of two at the same time, one
// builds and the other finds it done.
func (p program) ensure(ctx context.Context, source, path string, out io.Writer) (err error) {
	if isFile(path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	lock, err := lockFile(path+".lock", func() {
		if out != nil {
			_, _ = fmt.Fprintf(out, "waiting for another build of %s\n", p.name)
		}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if isFile(path) {
		return nil
	}
	done := showProgress(out, "building "+p.what)
	err = p.compile(ctx, source, path)
	done(err == nil)
	return err
}

func (p program) compile(ctx context.Context, source, path string) error {
	temp := path + ".building" // under the lock, so nobody else's
	build := goCommand(ctx, source, append([]string{"build", "-o", temp}, p.build...)...)
	var output bytes.Buffer
	build.Stdout, build.Stderr = &output, &output
	if err := build.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		return fmt.Errorf("build %s: %w; the end of what go said:\n%s", p.name, err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("keep %s: %w", p.name, err)
	}
	return nil
}

// goCommand runs go inside a module, free of flags and workspaces that were
// meant for another. Without cgo and -trimpath, as the Makefile builds: what
// both use, at the same version, is compiled once.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0", "PWD="+dir)
	return cmd
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
