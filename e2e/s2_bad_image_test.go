package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// S2: a bad image hurts one pod. Reason and pod are in the columns from the first second, Blocked after the grace.
func TestS2BadImage(t *testing.T) {
	tell(t, "s2-bad-image", func(s *story) {
		s.create("1")
		first, second := s.pod(1).UID, s.pod(0).UID
		s.setImage("bad")
		s.waitFor("the reason to show", state("Stepping", pullReasons, "db-2"))
		s.waitFor("Blocked", state("Blocked", pullReasons, "db-2"))

		st := s.progress().Status
		s.Expect(*st.Partition).To(BeEquivalentTo(2), "the effective partition")
		s.Expect(st.Message).To(And(ContainSubstring("db-2"), ContainSubstring("mysqld"), HaveSuffix("no pod needs deleting.")))
		s.Expect(s.kubectl("get", "rolloutprogress", "--no-headers")).To(MatchRegexp(`^db\s+Blocked\s+(ErrImagePull|ImagePullBackOff)\s+db-2\s+0/3\s`))
		s.Consistently(func() []any { return []any{s.pod(1).UID, s.pod(0).UID, partition(s.set())} }, 3*time.Second, 200*time.Millisecond).
			Should(Equal([]any{first, second, int32(2)}), "pods 1 and 0 are untouched")
		s.Expect(s.deletions()).To(BeEmpty())

		blocked := 0
		for _, line := range s.diary() {
			if line == "Blocked ErrImagePull 2" || line == "Blocked ImagePullBackOff 2" {
				blocked++
			}
		}
		s.Expect(blocked).To(Equal(1), "the pull reasons alternate, the verdict does not")
	})
}
