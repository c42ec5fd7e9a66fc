package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// S10: there are many ways to write a template, and all end alike: no pod moves before its turn, then one after the
// other from the top. Some of them write the partition as well; with the admission policy it is put back in the same
// write, without it Pawl parks it when it sees it, and at most the pod moves that Kubernetes had begun with.

// With manifests: kubectl apply and server-side apply, the partition in the manifest or not, or taken out of it.
func TestS10Manifests(t *testing.T) {
	tell(t, "s10-manifests", func(s *story) {
		s.alice(s.manifest("1"), "apply", "-f", "-")
		s.waitFor("the first pods to come up", done("Completed"))
		apply := func(manifest string, flags ...string) func() {
			return func() { s.alice(manifest, append([]string{"apply", "-f", "-"}, flags...)...) }
		}
		for _, w := range []way{
			{"apply without the partition", apply(s.manifest("2")), false},
			{"apply with partition 0", apply(s.manifest("3", withPartition(0))), true},
			{"apply with the partition taken out", apply(s.manifest("4")), true},
			{"server-side apply", apply(s.manifest("5"), "--server-side", "--force-conflicts"), false},
		} {
			s.rollsOut(w)
		}
		fields := s.manifest("6", withPartition(1))
		out, err := s.aliceTries(fields, "apply", "-f", "-", "--server-side")
		s.Expect(err).To(HaveOccurred(), "the partition has an owner, and the API server says so")
		s.Expect(out).To(ContainSubstring(`conflict with "pawl"`))
		s.rollsOut(way{"server-side apply of the partition", apply(fields, "--server-side", "--force-conflicts"), true})
		s.rollsOut(way{"server-side apply without the partition again", apply(s.manifest("7"), "--server-side", "--force-conflicts"), true})
	})
}

// With commands: replace, patch, set image, rollout restart and undo. Scaling rolls nothing out.
func TestS10Commands(t *testing.T) {
	tell(t, "s10-commands", func(s *story) {
		s.create("1")
		command := func(args ...string) func() { return func() { s.alice("", args...) } }
		template := func(tag string) string {
			return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"mysqld","image":%q}]}}}}`, image(tag))
		}
		for _, w := range []way{
			{"replace", func() { s.alice(s.manifest("2"), "replace", "-f", "-") }, true},
			{"a strategic merge patch", command("patch", "sts", name, "-p", template("3")), false},
			{"a merge patch", command("patch", "sts", name, "--type=merge", "-p", template("4")), false},
			{"set image", command("set", "image", "sts/"+name, "mysqld=registry.example/db:5"), false},
			{"rollout restart", command("rollout", "restart", "sts/"+name), false},
			{"rollout undo", command("rollout", "undo", "sts/"+name), false},
		} {
			s.rollsOut(w)
		}
		rollouts := s.count("RolloutStarted")
		for n, replicas := range []int{4, 3} {
			s.alice("", "scale", "sts", name, fmt.Sprintf("--replicas=%d", replicas))
			s.waitForEvent("Scaled", n+1)
			s.allReady(replicas)
		}
		s.Expect(s.count("RolloutStarted")).To(Equal(rollouts), "the template is the same")
		s.Expect(partition(s.set())).To(BeEquivalentTo(parked))
	})
}

// I9: a write that gives Pawl nothing to do leaves no trace: no event, and no write by Pawl. With the admission policy
// that is so for the partition as well, because it is put back before anyone sees it.
func TestS10Quiet(t *testing.T) {
	tell(t, "s10-quiet", func(s *story) {
		s.alice(s.manifest("1"), "apply", "-f", "-")
		s.waitFor("the first pods to come up", done("Completed"))
		s.parkedNow()
		kept := s.uids(0, 1, 2)
		before, written := s.progress(), len(s.tried(pawlUser))

		s.alice(s.manifest("1"), "apply", "-f", "-")
		s.alice(s.manifest("1"), "apply", "-f", "-", "--server-side", "--force-conflicts")
		s.alice("", "set", "image", "sts/"+name, "mysqld="+image("1"))
		s.alice("", "patch", "sts", name, "--type=merge", "-p", partitionPatch(parked))
		s.Expect(s.set().Generation).To(BeNumerically("<=", 2), "that was nothing but the same")
		s.alice("", "annotate", "sts", name, "kubernetes.io/change-cause=none")
		s.alice("", "label", "sts", name, "team=storage")
		s.alice("", "annotate", "pod", podName(1), "note=seen")
		s.alice("", "patch", "sts", name, "--type=merge", "-p", `{"spec":{"revisionHistoryLimit":5}}`)
		if s.admission {
			for _, p := range []int32{0, 1, 2} {
				s.alice("", "patch", "sts", name, "--type=merge", "-p", partitionPatch(p))
			}
		}
		s.Consistently(func() []any {
			now := s.progress()
			return []any{now.Status.Sequence, now.ResourceVersion, len(s.tried(pawlUser)), partition(s.set()), s.uids(0, 1, 2)}
		}, 5*time.Second, 500*time.Millisecond).
			Should(Equal([]any{before.Status.Sequence, before.ResourceVersion, written, int32(parked), kept}), "no event, no write, no pod")
	})
}
