package version

import (
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhatIsKnownIsSaid(t *testing.T) {
	for _, c := range []struct {
		number string
		info   *debug.BuildInfo
		want   string
	}{
		{"v1.2.3", nil, "v1.2.3"},
		{"", nil, "unknown"},
		{"", &debug.BuildInfo{Main: debug.Module{Version: "v0.9.0"}}, "v0.9.0"},
		{"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown"},
		{"", &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}, "abc"},
		{"", &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}}, "abc+"},
	} {
		number = c.number
		NewWithT(t).Expect(from(c.info)).To(Equal(c.want))
	}
	number = "v1.2.3"
	g := NewWithT(t)
	g.Expect(Number()).To(Equal("v1.2.3"), "what a release says goes before what Go knows")
	g.Expect(Line("pawl")).To(MatchRegexp(`^pawl v1\.2\.3 \(go1\..*, \w+/\w+\)$`))
}
