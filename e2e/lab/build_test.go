package lab

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheCacheGoesByEverythingThatIsBuilt(t *testing.T) {
	source := t.TempDir()
	p := programs[1]
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := func(version string) string {
		t.Helper()
		path, err := p.cached(source, "cache", []byte(version))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range p.inputs {
		write(name, "one")
	}
	first := path("go1.26")
	if path("go1.26") != first {
		t.Error("the same inputs are built twice")
	}
	if path("go1.27") == first {
		t.Error("another Go builds the same")
	}
	for _, name := range p.inputs {
		write(name, "two")
		if path("go1.26") == first {
			t.Errorf("%s is not looked at", name)
		}
		write(name, "one")
	}
}

func TestTheFlagsAreAlwaysTheSame(t *testing.T) {
	first := versionFlags()
	for range 20 {
		if versionFlags() != first {
			t.Fatal("the cache would miss at random")
		}
	}
}
