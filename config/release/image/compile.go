package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// source is what is compiled.
type source struct{ dir, command, version string }

// binary is a program for one platform.
type binary struct{ arch, path string }

var platforms = []string{"amd64", "arm64"} // all of linux

// compile builds the command for each platform: static, without paths of this machine, and without anything of git, which
// the version stands for.
func (s source) compile(dir string) ([]binary, error) {
	var made []binary
	for _, arch := range platforms {
		path := filepath.Join(dir, "pawl-"+arch)
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid= -X pawl.dev/pawl/cmd/internal/version.number="+s.version, "-o", path, s.command)
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile for %s: %w\n%s", arch, err, out)
		}
		made = append(made, binary{arch, path})
	}
	return made, nil
}
