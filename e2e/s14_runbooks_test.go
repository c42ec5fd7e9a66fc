package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trouble is how a reason comes about on the lab, and how it goes: by the commands of its runbook, or, where that asks
// for something that no command does, by heal.
type trouble struct {
	reason string
	cause  func(*story)
	heal   func(*story)
}

// Each runbook is followed from Blocked to Done: what it says to look at is there, and what it says to do is enough.
func TestS14Runbooks(t *testing.T) {
	t.Parallel()
	for _, c := range troubles() {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			tellWithAdmission(t, "s14-runbook-"+strings.ToLower(strings.Fields(c.reason)[0]), func(s *story) {
				s.deadline = "30s"
				s.runAs(pawlAccount)
				s.create("1")
				c.cause(s)
				reason := s.troubled(c.reason)
				s.looks(reason)
				if c.heal != nil {
					c.heal(s)
				} else {
					s.runs(runbook(s, reason, "What to do"))
				}
				s.waitFor("the end of the trouble", done(""))
				s.runs(runbook(s, reason, "How to make sure"))
			})
		})
	}
}

func troubles() []trouble {
	edits := func(change func(*appsv1.StatefulSet)) func(*story) {
		return func(s *story) { s.edit(change) }
	}
	spec := func(change func(*corev1.PodSpec)) func(*story) {
		return edits(func(set *appsv1.StatefulSet) { change(&set.Spec.Template.Spec) })
	}
	images := func(tag string) func(*story) { return func(s *story) { s.setImage(tag) } }
	all := []trouble{
		{reason: "ErrImagePull ImagePullBackOff", cause: images("bad")},
		{reason: "CrashLoopBackOff RestartLoop", cause: images("crash")},
		{reason: "NotReady", cause: images("never")},
		{reason: "VolumeNotReady", cause: images("creating")},
		{reason: "Unschedulable", cause: spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"no": "such"} })},
		{reason: "NotScheduled", cause: spec(func(p *corev1.PodSpec) { p.SchedulerName = "nobody" })},
		{reason: "SchedulingGated", cause: spec(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}} })},
		{reason: "AdmissionRejected", cause: func(s *story) { s.denyTag("denied"); s.setImage("denied") }},
		{reason: "QuotaExceeded", cause: func(s *story) {
			s.edit(cpu("100m"))
			s.waitFor("the first pods to ask for something", rolloutDone(2))
			s.quota("350m")
			s.edit(cpu("200m"))
		}},
		{reason: "UnsupportedStrategy", cause: edits(func(set *appsv1.StatefulSet) {
			set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		})},
		{reason: "PVCMissing", cause: edits(mounts("shared")), heal: func(s *story) { s.runs(runbook(s, "PVCMissing", "What to do")[1:]) }}, // not a claim of the StatefulSet itself
		{reason: "StuckTerminating", cause: func(s *story) { s.keep(2, true); s.setImage("2") }, heal: func(s *story) { s.keep(2, false) }},
		{reason: "TotalOutage", cause: func(s *story) {
			s.outage()
			time.Sleep(time.Second) // after the pods, so that it is no bring-up
			s.setImage("2")
		}, heal: func(s *story) {
			for i := range 3 {
				s.fate(i, "ready")
			}
		}},
	}
	all = append(all, troublesAround()...)
	// What the played kubelet does not publish by itself is published for it.
	for _, reason := range []string{
		"InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError",
	} {
		all = append(all, trouble{reason: reason, cause: func(s *story) { s.setImage("creating"); s.publish(2, waits(reason)) }})
	}
	return append(all,
		trouble{reason: "Unknown", cause: func(s *story) { s.setImage("creating"); s.publish(2, waits("SomethingNew")) }},
		trouble{reason: "OOMKilled", cause: func(s *story) {
			s.setImage("creating")
			s.publish(2, func(c *corev1.ContainerStatus) {
				waits("CrashLoopBackOff")(c)
				now := metav1.Now()
				c.RestartCount = 3
				c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: now, FinishedAt: now}
			})
		}})
}

// troublesAround are those that are not in the pod.
func troublesAround() []trouble {
	return []trouble{
		{reason: "PVCPending", cause: func(s *story) {
			pvc := claim("shared", "1Gi")
			pvc.Namespace = s.namespace
			s.Expect(lab.alice.Create(s.t.Context(), &pvc)).To(Succeed())
			s.edit(mounts("shared"))
		}},
		{reason: "NameTaken", cause: func(s *story) {
			squatter := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: podName(3), Labels: map[string]string{"app": "other"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: image("1")}}},
			}
			s.Expect(lab.alice.Create(s.t.Context(), squatter)).To(Succeed())
			s.excused[podName(3)] = true
			s.edit(func(set *appsv1.StatefulSet) {
				replicas(4)(set)
				set.Spec.Template.Spec.Containers[0].Image = image("2")
			})
		}},
		{reason: "LogDamaged", cause: func(s *story) {
			rp := s.progress()
			before := rp.DeepCopy()
			rp.Status.Transitions[0].Message = "someone was here"
			s.Expect(lab.alice.Status().Patch(s.t.Context(), rp, client.MergeFrom(before))).To(Succeed())
			s.logLost = true
		}},
		{reason: "UnknownMode", cause: func(s *story) {
			s.edit(func(set *appsv1.StatefulSet) { set.Labels["pawl.dev/mode"] = "Enforcing" })
		}},
	}
}

// mounts has the template mount a claim of this name.
func mounts(claim string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
}

// publish changes what the kubelet says of the container of a pod that it has not started.
func (s *story) publish(i int, change func(*corev1.ContainerStatus)) {
	s.waitForEvent("StepStarted", 1)
	s.Eventually(func() string { return s.waitsWith(i) }, patience, tick).Should(Equal("ContainerCreating"), "waiting for the new pod")
	pod := s.pod(i)
	before := pod.DeepCopy()
	change(&pod.Status.ContainerStatuses[0])
	s.Expect(lab.admin.Status().Patch(s.t.Context(), pod, client.MergeFrom(before))).To(Succeed())
}

func waits(reason string) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "as a kubelet would say"}
	}
}

// troubled waits for one of these reasons, which stand for each other, and returns the one that an alert would show. Of
// a log that is damaged, and of a mode that means nothing, the condition Stalled tells.
func (s *story) troubled(reasons string) (shown string) {
	s.t.Helper()
	s.Eventually(func() bool {
		st := s.progress().Status
		stalled := apimeta.FindStatusCondition(st.Conditions, "Stalled")
		if stalled == nil || stalled.Status != metav1.ConditionTrue {
			return false
		}
		shown = stalled.Reason
		return slices.Contains(strings.Fields(reasons), shown)
	}, 3*patience, tick).Should(BeTrue(), "waiting for %s", reasons)
	if shown == "LogDamaged" {
		return "LedgerBroken" // the name of its alert
	}
	return shown
}

// runbook is the commands of one section of a runbook.
func runbook(s *story, reason, section string) []string {
	text, err := os.ReadFile("../docs/runbooks/" + reason + ".md")
	s.Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	s.Expect(found).To(BeTrue(), "the runbook of %s has no section %q", reason, section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var scripts []string
	for _, block := range strings.Split(rest, "```sh\n")[1:] {
		script, _, closed := strings.Cut(block, "\n```")
		s.Expect(closed).To(BeTrue())
		scripts = append(scripts, script)
	}
	s.Expect(scripts).NotTo(BeEmpty(), "the section %q of %s has no command", section, reason)
	return scripts
}

// looks: every command that shows the cause works, but for the logs of containers, which nobody plays.
func (s *story) looks(reason string) {
	for _, script := range runbook(s, reason, "How to look") {
		for line := range strings.SplitSeq(script, "\n") {
			if !strings.HasPrefix(line, "kubectl logs ") {
				s.runs([]string{line})
			}
		}
	}
}

// runs runs the commands of a runbook as they stand, with the labels of the alert.
func (s *story) runs(scripts []string) {
	s.t.Helper()
	for _, script := range scripts {
		code, said := s.waitAs("set -e\nPOD="+s.progress().Status.Pod+"\n"+script, time.Minute)
		s.Expect(code).To(BeZero(), "%s\n%s", script, said)
	}
}
