package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"pawl.dev/pawl/e2e/lab"
)

// options are the flags that every command knows.
type options struct {
	*flag.FlagSet
	dir, cache, source string
}

func newOptions(name string) *options {
	o := &options{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	o.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	o.StringVar(&o.dir, "dir", envOr("LAB_DIR", ".lab"), "")
	o.StringVar(&o.cache, "cache", os.Getenv("LAB_CACHE"), "")
	o.StringVar(&o.source, "source", os.Getenv("LAB_SOURCE"), "")
	return o
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// parse accepts flags on either side of the arguments and returns those.
func (o *options) parse(args []string) ([]string, error) {
	var positional []string
	for {
		if err := o.Parse(args); err != nil {
			return nil, fmt.Errorf("read the flags: %w", err)
		}
		if args = o.Args(); len(args) == 0 {
			return positional, nil
		}
		positional, args = append(positional, args[0]), args[1:]
	}
}

func (o *options) open() (*lab.Lab, error) {
	l, err := lab.Open(o.dir, os.Stderr)
	if err != nil {
		return nil, fmt.Errorf("open the lab: %w", err)
	}
	return l, nil
}

func (o *options) cacheDir() (string, error) {
	if o.cache != "" {
		cache, err := filepath.Abs(o.cache)
		if err != nil {
			return "", fmt.Errorf("resolve the cache: %w", err)
		}
		return cache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache (or give --cache): %w", err)
	}
	return filepath.Join(dir, "pawl-lab"), nil
}

// sourceDir finds the sources of the programs: they are no part of this
// binary, because a module cannot embed the files of another.
func (o *options) sourceDir() (string, error) {
	candidates := []string{o.source}
	if o.source == "" {
		candidates = nil
		if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
			candidates = append(candidates, filepath.Join(filepath.Dir(file), "..", ".."))
		}
		for dir, err := os.Getwd(); err == nil; dir = filepath.Dir(dir) {
			candidates = append(candidates, dir, filepath.Join(dir, "e2e", "lab"))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "controlplane", "go.mod")); err == nil {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return "", fmt.Errorf("resolve the sources: %w", err)
			}
			return abs, nil
		}
	}
	return "", errors.New("cannot find the sources of the lab: run it inside the checkout, or give --source e2e/lab")
}
