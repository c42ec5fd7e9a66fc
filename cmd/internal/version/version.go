// Package version says what a binary was built of.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// number is set by what builds a release: -ldflags "-X pawl.dev/pawl/cmd/internal/version.number=v0.1.0".
var number string

// Number is the version: of a release; else of the module, as `go install pawl.dev/pawl/cmd/…@v0.1.0` knows it; else the
// commit, with a plus if files were changed since; and "unknown" if nobody wrote anything down.
func Number() string {
	info, known := debug.ReadBuildInfo()
	if number != "" || !known {
		info = nil
	}
	return from(info)
}

func from(info *debug.BuildInfo) string {
	if info == nil {
		if number == "" {
			return "unknown"
		}
		return number
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		return "unknown"
	}
	if settings["vcs.modified"] == "true" {
		commit += "+"
	}
	return commit
}

// Line is what the command version prints.
func Line(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", program, Number(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
