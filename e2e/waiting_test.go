package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Waiting: what docs/waiting.md tells people to do is done here, word for word.

// With no manager at all, right after a change: the tools that look at the StatefulSet call it complete, and Ready
// answers for the rollout before. The way of docs/waiting.md does not.
func TestWaitingTooEarly(t *testing.T) {
	tell(t, "waiting-too-early", func(s *story) {
		s.create("1")
		s.parkedNow()
		kept := s.uids(0, 1, 2)
		s.stopManager(syscall.SIGTERM)
		s.setImage("2")
		s.target() // until the StatefulSet controller has seen it kubectl says that it waits for that
		s.Expect(s.kubectl("rollout", "status", "sts/"+name, "--timeout=30s")).
			To(HavePrefix("partitioned roll out complete: 0 new pods have been updated"), "with exit code 0")
		s.Expect(s.kubectl("wait", "rp/"+name, "--for=condition=Ready", "--timeout=30s")).
			To(Equal("rolloutprogress.pawl.dev/db condition met\n"), "of yesterday's rollout")
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept), "not one pod is updated")

		code, said := s.waitByScript(3 * time.Second)
		s.Expect(said).To(ContainSubstring("time is up: Done Completed"))
		s.Expect(code).To(Equal(2))
		s.startManager()
		code, said = s.waitByScript(patience)
		s.Expect(said).To(HavePrefix("complete: "))
		s.Expect(code).To(BeZero())
		s.complete("2")
	})
}

// Created again from the same template while no manager runs: the revision is that of yesterday, and so is the status, which
// speaks of the StatefulSet that is gone.
func TestWaitingRecreated(t *testing.T) {
	tell(t, "waiting-recreated", func(s *story) {
		s.create("1")
		s.parkedNow()
		s.stopManager(syscall.SIGTERM)
		s.recreate("1")
		s.target()
		s.Expect(s.kubectl("wait", "rp/"+name, "--for=condition=Ready", "--timeout=30s")).
			To(Equal("rolloutprogress.pawl.dev/db condition met\n"), "of the StatefulSet before")
		code, said := s.waitByScript(3 * time.Second)
		s.Expect(said).To(ContainSubstring("time is up: Done Completed"))
		s.Expect(code).To(Equal(2))
		s.Expect(s.pawl(2, "wait", name, "--timeout", "3s")).To(ContainSubstring("Pawl has not seen this StatefulSet yet"))
		s.startManager()
		code, said = s.waitByScript(patience)
		s.Expect(said).To(HavePrefix("complete: "))
		s.Expect(code).To(BeZero())
		s.waitedFor(0, "done: ")
		s.complete("1")
	})
}

// Right after each kind of change: success only when the rollout is complete, and failure with a reason in bounded time.
func TestWaitingRightly(t *testing.T) {
	tell(t, "waiting-rightly", func(s *story) {
		s.create("1")
		s.setImageByKubectl("2")
		code, said := s.waitAs(documented(s, 0), patience)
		s.Expect(said).To(HaveSuffix("rolloutprogress.pawl.dev/db condition met\n"), "the last of three waits by hand")
		s.Expect(code).To(BeZero())
		s.complete("2")

		s.setImageByKubectl("3")
		code, said = s.waitByScript(patience)
		s.Expect(said).To(HavePrefix("complete: All 3 pods run"))
		s.Expect(code).To(BeZero())
		s.complete("3")
		code, said = s.waitByScript(patience)
		s.Expect(said).To(HavePrefix("complete: All 3 pods run"), "and when nothing changed")
		s.Expect(code).To(BeZero())

		s.setImageByKubectl("bad")
		code, said = s.waitByScript(patience)
		s.Expect(said).To(MatchRegexp(`^Blocked: (ErrImagePull|ImagePullBackOff): db-2 .*mysqld`), "which pod, and why")
		s.Expect(code).To(Equal(3))
		s.setImageByKubectl("3")
		code, said = s.waitByScript(patience)
		s.Expect(said).To(HavePrefix("complete: All 3 pods run the stable revision"), "Blocked was yesterday's")
		s.Expect(code).To(BeZero())
		s.complete("3")
	})
}

// A change that is overtaken will never be complete, and whoever waits for it is told.
func TestWaitingOvertaken(t *testing.T) {
	tell(t, "waiting-overtaken", func(s *story) {
		s.create("1")
		s.pause(true)
		s.setImageByKubectl("2")
		var code int
		var said string
		done := make(chan struct{})
		go func() {
			defer close(done)
			code, said = s.waitByScript(patience)
		}()
		s.waitFor("the rollout", state("Waiting", "Paused", ""))
		second := s.target()
		s.Consistently(done, 3*time.Second).ShouldNot(BeClosed(), "it is not complete, and nothing is wrong")
		s.setImageByKubectl("3")
		s.Eventually(done, patience).Should(BeClosed(), "waiting for the script")
		s.Expect(said).To(ContainSubstring("another change came: " + second + " is no longer the target"))
		s.Expect(code).To(Equal(4))
		s.pause(false)
		s.waitFor("the rollout to complete", rolloutDone(3))
	})
}

// complete: what was waited for is so, at the moment in which the wait was over.
func (s *story) complete(tag string) {
	s.t.Helper()
	set := s.set()
	for i := range 3 {
		pod := s.pod(i)
		s.Expect(ready(pod)).To(BeTrue(), "pod %d", i)
		s.Expect(pod.Spec.Containers[0].Image).To(Equal(image(tag)), "pod %d", i)
		s.Expect(revision(pod)).To(Equal(set.Status.UpdateRevision), "pod %d", i)
	}
	s.Expect(set.Status.CurrentRevision).To(Equal(set.Status.UpdateRevision))
	s.parkedNow()
}

func (s *story) setImageByKubectl(tag string) {
	s.t.Helper()
	s.Expect(s.kubectl("set", "image", "sts/"+name, "mysqld="+image(tag))).To(ContainSubstring("image updated"))
}

// documented is the n-th shell script in docs/waiting.md.
func documented(s *story, n int) string {
	text, err := os.ReadFile("../docs/waiting.md")
	s.Expect(err).NotTo(HaveOccurred())
	blocks := strings.Split(string(text), "```sh\n")[1:]
	s.Expect(blocks).To(HaveLen(2), "one by hand, one in a script")
	script, _, closed := strings.Cut(blocks[n], "\n```\n")
	s.Expect(closed).To(BeTrue())
	return script + "\n"
}

func (s *story) waitByScript(timeout time.Duration) (code int, said string) {
	return s.waitAs(documented(s, 1), timeout)
}

// waitAs runs a script as it stands, with kubectl in its path. It has to end soon after its own timeout.
func (s *story) waitAs(script string, timeout time.Duration) (code int, said string) {
	return lab.sh(s.t.Context(), s.t.TempDir(), script, timeout, "NAME="+name, "NAMESPACE="+s.namespace, fmt.Sprintf("TIMEOUT=%d", int(timeout.Seconds())))
}

// sh runs a script of the docs in a directory, with kubectl and its plugin in its path.
func (c *cluster) sh(ctx context.Context, dir, script string, timeout time.Duration, env ...string) (code int, said string) {
	ctx, cancel := context.WithTimeout(ctx, timeout+patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second // what it started may hold its output
	cmd.Env = append(append(os.Environ(), "PATH="+strings.Join([]string{filepath.Dir(c.lab.Kubectl), c.bin, os.Getenv("PATH")}, string(os.PathListSeparator))), env...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return -1, fmt.Sprintf("the script did not end: %s (%v)", out, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
