package main

import (
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheDefaultsAreAllowed(t *testing.T) {
	o, err := parse(nil, io.Discard)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(o.leaderElect).To(BeTrue())
}

func TestAFlagOutOfBoundsIsNamedWithItsValueAndWhatIsAllowed(t *testing.T) {
	for flag, want := range map[string]string{
		"--stall-grace=500ms":             "--stall-grace=500ms: must be from 1s to 1h0m0s",
		"--stall-grace=2h":                "--stall-grace=2h0m0s: must be from 1s to 1h0m0s",
		"--progress-deadline=5s":          "--progress-deadline=5s: must be from 10s to 24h0m0s",
		"--progress-deadline=30s":         "--progress-deadline=30s: must be more than --stall-grace=30s",
		"--concurrency=0":                 "--concurrency=0: must be from 1 to 64",
		"--log-format=xml":                `--log-format="xml": must be one of json, console`,
		"--log-level=loud":                `--log-level="loud": must be one of debug, info, error`,
		"--namespace=a,B":                 `--namespace="B": must be the name of a namespace`,
		"--leader-election-namespace=a/b": `--leader-election-namespace="a/b": must be the name of a namespace`,
		"--concurrency=many":              "many",
		"stray":                           `unexpected argument "stray"`,
	} {
		_, err := parse([]string{flag}, io.Discard)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), flag)
	}
}

func TestNamespacesCanBeListedAndRepeated(t *testing.T) {
	o, err := parse([]string{"--namespace=a,b", "--namespace", "c"}, io.Discard)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(o.namespaces).To(Equal([]string{"a", "b", "c"}))
}
