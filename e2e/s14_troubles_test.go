package e2e

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// trouble is how a reason comes about on the lab, for TestS14Runbooks.
type trouble struct {
	reason string // as it is shown
	create func(*story)
	bare   bool  // the admission policies do not let it happen
	parts  []int // the commands under "What to do" that are for this case; all of them if empty

	cause func(*story) beside
}

// beside is what others do while a person follows the runbook, before its commands or after; mostly nothing.
type beside struct{ before, after func() }

// page is the name of the runbook.
func (c trouble) page() string {
	if c.reason == "LogDamaged" {
		return "LedgerBroken" // the name of its alert
	}
	return c.reason
}

// by is a cause that the commands of the runbook heal.
func by(cause func(*story)) func(*story) beside {
	return func(s *story) beside {
		cause(s)
		return beside{}
	}
}

func images(tag string) func(*story) beside { return by(func(s *story) { s.setImage(tag) }) }

func edits(change func(*appsv1.StatefulSet)) func(*story) beside {
	return by(func(s *story) { s.edit(change) })
}

func specs(change func(*corev1.PodSpec)) func(*story) beside {
	return edits(func(set *appsv1.StatefulSet) { change(&set.Spec.Template.Spec) })
}

// troublesOfPods come of the template, and a revert heals most of them.
func troublesOfPods() []trouble {
	return []trouble{
		{reason: "NotReady", cause: images("never")},
		{reason: "VolumeNotReady", create: withVolumes, cause: images("creating")},
		{reason: "Unschedulable", cause: specs(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"no": "such"} })},
		{reason: "NotScheduled", cause: specs(func(p *corev1.PodSpec) { p.SchedulerName = "nobody" })},
		{reason: "SchedulingGated", cause: specs(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}} })},
		{reason: "ReadinessGate", cause: specs(func(p *corev1.PodSpec) {
			p.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/in-sync"}}
		})},
		{reason: "AdmissionRejected", cause: by(func(s *story) { s.denyTag("denied"); s.setImage("denied") })},
		{reason: "QuotaExceeded", cause: by(func(s *story) {
			s.edit(cpu("100m"))
			s.waitFor("the first pods to ask for something", rolloutDone(2))
			s.quota("350m")
			s.edit(cpu("200m"))
		})},
		// With a new template, and nothing but the command to hold the pods back.
		{reason: "UnsupportedStrategy", bare: true, parts: []int{0}, cause: edits(func(set *appsv1.StatefulSet) {
			onDelete(set)
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})},
		{reason: "UnsupportedStrategy", parts: []int{1}, cause: edits(onDelete)},
		{reason: "PVCMissing", create: withVolumes, cause: edits(mounts("shared"))},
		{reason: "PVCPending", cause: by(func(s *story) {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Provisioner: "stories.pawl.dev/nobody"}
			s.Expect(lab.admin.Create(s.t.Context(), class)).To(Succeed())
			s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), class) })
			pvc := claim("shared", "1Gi")
			pvc.Namespace, pvc.Spec.StorageClassName = s.namespace, &class.Name
			s.Expect(lab.alice.Create(s.t.Context(), &pvc)).To(Succeed())
			s.edit(mounts("shared"))
		})},
		{reason: "SupersededPodStuck", cause: by(func(s *story) {
			s.stepTo("2", 1)
			s.fate(1, "bad")
			s.waitFor("pod 1 to be dead", state("Blocked", pullReasons, podName(1)))
			s.setImage("3")
			s.pause(false)
		})},
	}
}

func onDelete(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

// withVolumes creates the StatefulSet with a claim for each pod.
func withVolumes(s *story) {
	s.volumes("data")
	s.create("1", claims("1Gi", "data"))
}

// volumeFor makes a volume for a claim that is still to come.
func (s *story) volumeFor(claim string) {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/stories"}}, // nobody mounts it
		},
	}
	s.Expect(lab.admin.Create(s.t.Context(), pv)).To(Succeed())
	s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), pv) })
}

// troublesOfKubelets are what the played kubelet does not publish by itself: it is published for it.
func troublesOfKubelets() []trouble {
	var all []trouble
	for _, reason := range []string{
		"InvalidImageName", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError",
	} {
		all = append(all, trouble{reason: reason, cause: published("creating", waits(reason))})
	}
	now := metav1.Now
	before := func() metav1.Time { return metav1.NewTime(time.Now().Add(-20 * time.Second)) } // longer than a first restart takes
	return append(all,
		trouble{reason: "Unknown", cause: published("creating", waits("SomethingNew"))},
		trouble{reason: "CrashLoopBackOff", cause: published("creating", func(p *corev1.Pod) {
			waits("CrashLoopBackOff")(p)
			c := &p.Status.ContainerStatuses[0]
			c.RestartCount = 3
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: now(), FinishedAt: now()}
		})},
		trouble{reason: "RestartLoop", cause: published("creating", func(p *corev1.Pod) {
			c := &p.Status.ContainerStatuses[0]
			c.RestartCount = 3
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: now(), FinishedAt: now()}}
		})},
		trouble{reason: "OOMKilled", cause: published("creating", func(p *corev1.Pod) {
			waits("CrashLoopBackOff")(p)
			c := &p.Status.ContainerStatuses[0]
			c.RestartCount = 3
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", StartedAt: now(), FinishedAt: now()}
		})},
		trouble{reason: "ContainerTerminated", cause: published("creating", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error", StartedAt: before(), FinishedAt: before(),
			}}
		})},
		trouble{
			reason: "InitNotFinished",
			create: func(s *story) { s.create("1", waitsForPeers) },
			cause: published("creating", func(p *corev1.Pod) {
				waits("PodInitializing")(p)
				c := &p.Status.InitContainerStatuses[0]
				c.State, c.Ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}}, false
			}),
		},
		trouble{reason: "Evicted", cause: notReplaced(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		})},
		trouble{reason: "PodTerminated", cause: notReplaced(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
	)
}

func waitsForPeers(set *appsv1.StatefulSet) {
	set.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "wait-for-peers", Image: image("1")}}
}

// published has the kubelet say this of the first pod of the new image.
func published(tag string, change func(*corev1.Pod)) func(*story) beside {
	return by(func(s *story) {
		s.setImage(tag)
		s.publish(2, change)
	})
}

// notReplaced has the kubelet say that the pod has ended while the StatefulSet controller may not replace it, until it is
// mended as the page asks.
func notReplaced(change func(*corev1.Pod)) func(*story) beside {
	const controller = "system:serviceaccount:kube-system:statefulset-controller"
	return func(s *story) beside {
		s.setImage("creating")
		s.isCreated(2)
		allow := s.forbid(admissionregistrationv1.Delete, "", "pods", `request.userInfo.username != "`+controller+`"`,
			"--as="+controller, "delete", "pod", podName(1), "--dry-run=server")
		s.publish(2, change)
		return beside{before: allow}
	}
}

// troublesAround are those of what the pods need, or what is in their way.
func troublesAround() []trouble {
	return []trouble{
		{reason: "StuckTerminating", parts: []int{0}, cause: by(func(s *story) {
			s.keep(2, true)
			s.setImage("2")
		})},
		{reason: "StuckTerminating", parts: []int{1}, cause: by(func(s *story) { // the kubelet does not end it
			s.annotate(2, "lab.pawl.dev/terminate-after", "1h")
			s.setImage("2")
		})},
		// Two pods have got the new template and one has not, when the database goes down.
		{reason: "TotalOutage", cause: func(s *story) beside {
			s.stepTo("2", 1)
			s.outage()
			s.pause(false)
			return beside{after: func() { s.fate(0, "ready") }} // once the others do not run the new one any more
		}},
		{reason: "NameTaken", cause: by(func(s *story) {
			squatter := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: podName(3), Labels: map[string]string{"app": "other"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: image("1")}}},
			}
			s.Expect(lab.alice.Create(s.t.Context(), squatter)).To(Succeed())
			s.edit(func(set *appsv1.StatefulSet) {
				replicas(4)(set)
				set.Spec.Template.Spec.Containers[0].Image = image("2")
			})
		})},
		{
			reason: "PVCLost",
			parts:  []int{0},
			create: withVolumes,
			cause: by(func(s *story) {
				backup := s.loseVolume("data-" + podName(2))
				backup.ResourceVersion, backup.UID = "", ""
				backup.APIVersion, backup.Kind = "v1", "PersistentVolume"
				manifest, err := yaml.Marshal(backup)
				s.Expect(err).NotTo(HaveOccurred())
				file := filepath.Join(s.t.TempDir(), "volume.yaml")
				s.Expect(os.WriteFile(file, manifest, 0o600)).To(Succeed())
				s.fills("VOLUME", file)
				s.fills("CLAIM", "data-"+podName(2))
				s.setImage("2")
			}),
		},
		{
			reason: "PVCLost",
			parts:  []int{1},
			create: withVolumes,
			cause: func(s *story) beside {
				s.loseVolume("data-" + podName(2))
				s.fills("CLAIM", "data-"+podName(2))
				s.setImage("2")
				return beside{before: func() {
					s.excused[string(s.pod(2).UID)] = true
					s.volumeFor("data-" + podName(2)) // an empty one
				}}
			},
		},
		{
			reason: "NodeNotReady",
			create: func(s *story) {
				s.node(s.namespace)
				s.create("1", onNode(s.namespace))
			},
			cause: func(s *story) beside {
				s.pause(true)
				s.setImage("2")
				s.waitFor("the hold", state("Waiting", "Paused", ""))
				s.silences(s.namespace)
				s.pause(false)
				first := s.uids(0, 1, 2)
				return beside{
					before: func() {
						for _, uid := range first {
							s.excused[string(uid)] = true // garbage collection takes them
						}
						s.node(s.namespace + "-elsewhere")
					},
					after: func() {
						s.Eventually(func() bool {
							pod := s.find(0)
							return pod != nil && pod.UID != first[0]
						}, 2*patience, tick).Should(BeTrue(), "waiting for the pods of a node that is gone to be taken away")
					},
				}
			},
		},
		{reason: "PodMissing", cause: by(func(s *story) {
			s.fills("CONFIGURATION", s.unreachableWebhook().GetName())
			s.fills("WEBHOOK", "nobody.example.com")
			s.setImage("2")
		})},
		{reason: "LogDamaged", cause: by((*story).damage)},
		{reason: "UnknownMode", cause: edits(func(set *appsv1.StatefulSet) { set.Labels["pawl.dev/mode"] = "Enforcing" })},
	}
}

// troublesOfControllers are those of who writes the StatefulSet beside Pawl, and of who does not get on with it.
func troublesOfControllers() []trouble {
	return []trouble{
		// A quota on its revisions keeps the StatefulSet controller from looking at the new template.
		{reason: "StatusStale", cause: by(func(s *story) {
			s.fills("QUOTA", s.countQuota("count/controllerrevisions.apps", "1").Name)
			s.setImage("2")
		})},
		{
			reason: "NotPromoted",
			create: func(s *story) { s.create("1", slowly) },
			cause: by(func(s *story) {
				s.stepTo("2", 1)
				s.keep(2, true)
				s.pause(false)
				s.replaced(0)
				s.edit(replicas(2)) // while the last pod comes up
				s.fills("POD", podName(2))
			}),
		},
		// Of a policy; for a permission see TestBadEnvironment.
		{reason: "PartitionNotWritten", parts: []int{1}, cause: by(func(s *story) {
			s.forbid(admissionregistrationv1.Update, "apps", "statefulsets", `request.userInfo.username != "`+pawlUser+`"`,
				"--as="+pawlUser, "annotate", "statefulset", name, "probe=1", "--dry-run=server")
			s.fills("POLICY", s.namespace)
			s.setImage("2")
			s.Eventually(s.warnings, patience).Should(ContainElement(ContainSubstring(notAllowed)), "waiting for an Event that says what refuses the write")
		})},
		{reason: "PartitionContested", bare: true, cause: by((*story).contested)},
		{reason: "RevisionUnstable", cause: by(func(s *story) {
			s.pause(true)
			for range 3 {
				s.newRevisionOfTheSame()
			}
			s.troubled("RevisionUnstable")
			s.pause(false)
		})},
	}
}

// troublesOfPolicies are what a RolloutPolicy asks for and does not get.
func troublesOfPolicies() []trouble {
	return []trouble{
		{reason: "PolicyNotFound", cause: edits(func(set *appsv1.StatefulSet) {
			set.Labels["pawl.dev/policy"] = "no-such"
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})},
		{reason: "GateClosed", cause: gated(`statefulSet.metadata.?annotations[?'window'].orValue('closed') == 'open'`)},
		{reason: "GateError", cause: gated("statefulSet.status.nothing > 0")},
		{reason: "DisruptionBudget", cause: by(func(s *story) {
			never := intstr.FromInt32(0)
			s.Expect(lab.alice.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: "strict", Namespace: s.namespace},
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &never, Selector: s.set().Spec.Selector},
			})).To(Succeed())
			s.fills("BUDGET", "strict")
			s.setImage("2")
		})},
	}
}

// gated updates under a policy with a gate that does not open.
func gated(expression string) func(*story) beside {
	return by(func(s *story) {
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{Gates: []pawlv1alpha1.Gate{{Name: "ready", Expression: expression}}})
		s.edit(func(set *appsv1.StatefulSet) {
			s.governed(set)
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})
		s.fillsGate("statefulSet.status.readyReplicas > 0")
	})
}

// fillsGate says which gate to mend, and how.
func (s *story) fillsGate(expression string) {
	s.fills("POLICY", s.namespace)
	s.fills("GATE", "0")
	s.fills("EXPRESSION", expression)
}

// contested has someone write the partition three times.
func (s *story) contested() {
	s.parkedNow()
	for n := range 3 {
		s.someone(0)
		s.waitForEvent("PartitionOverridden", n+1)
		if n < 2 {
			s.parkedNow()
		}
	}
}

// newRevisionOfTheSame has the StatefulSet controller make another revision of the same template, as a control plane of
// another version may.
func (s *story) newRevisionOfTheSame() {
	before, started := s.target(), s.count("RolloutStarted")
	s.Expect(lab.admin.DeleteAllOf(s.t.Context(), &appsv1.ControllerRevision{}, client.InNamespace(s.namespace))).To(Succeed())
	s.Eventually(func() string { // until the StatefulSet controller has seen that they are gone
		set := s.set()
		old := set.DeepCopy()
		collisions := int32(1)
		if set.Status.CollisionCount != nil {
			collisions += *set.Status.CollisionCount
		}
		set.Status.CollisionCount = &collisions
		s.Expect(lab.admin.Status().Patch(s.t.Context(), set, client.MergeFrom(old))).To(Succeed())
		return s.target()
	}, patience, time.Second).ShouldNot(Equal(before), "waiting for another revision")
	s.waitForEvent("RolloutStarted", started+1)
}

// countQuota bounds how many objects of a kind there may be, and waits until that is in force.
func (s *story) countQuota(what corev1.ResourceName, most string) *corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "objects", Namespace: s.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{what: resource.MustParse(most)}},
	}
	s.Expect(lab.admin.Create(s.t.Context(), quota)).To(Succeed())
	s.Eventually(func() string {
		s.Expect(lab.admin.Get(s.t.Context(), client.ObjectKeyFromObject(quota), quota)).To(Succeed())
		used := quota.Status.Used[what]
		return used.String()
	}, patience, tick).Should(Equal(most), "waiting for the quota to count what is there")
	return quota
}

// unreachableWebhook has the API server ask somebody who does not answer before a pod is created.
func (s *story) unreachableWebhook() client.Object {
	nobody, none := "https://127.0.0.1:1/", admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "nobody.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &nobody},
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	s.Expect(lab.admin.Create(s.t.Context(), hook)).To(Succeed())
	s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), hook) })
	s.refusedWith("nobody.example.com", "run", "probe", "--image="+image("1"), "--dry-run=server")
	return hook
}

// node adds a node that takes the pods of this story only.
func (s *story) node(name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"story": s.namespace}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "story", Value: s.namespace, Effect: corev1.TaintEffectNoSchedule}}},
	}
	s.Expect(lab.admin.Create(s.t.Context(), node)).To(Succeed())
	s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), node) })
	return node
}

// silences has a node be not Ready.
func (s *story) silences(name string) {
	node := &corev1.Node{}
	s.Expect(lab.admin.Get(s.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Annotations = map[string]string{"lab.pawl.dev/fate": "silent"}
	s.Expect(lab.admin.Patch(s.t.Context(), node, client.MergeFrom(before))).To(Succeed())
	before = node.DeepCopy()
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, "KubeletNotReady", metav1.Now()
		}
	}
	s.Expect(lab.admin.Status().Patch(s.t.Context(), node, client.MergeFrom(before))).To(Succeed())
}

// mounts has the template mount a claim of this name.
func mounts(claim string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
}

// isCreated waits until the new pod of a step is there and the kubelet has not started it.
func (s *story) isCreated(i int) {
	s.t.Helper()
	s.waitForEvent("StepStarted", 1)
	s.Eventually(func() string { return s.waitsWith(i) }, patience, tick).Should(Equal("ContainerCreating"), "waiting for the new pod")
}

// publish changes what the kubelet says of a pod that it has not started.
func (s *story) publish(i int, change func(*corev1.Pod)) {
	s.t.Helper()
	s.isCreated(i)
	pod := s.pod(i)
	before := pod.DeepCopy()
	change(pod)
	s.Expect(lab.admin.Status().Patch(s.t.Context(), pod, client.MergeFrom(before))).To(Succeed())
}

func waits(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "as a kubelet would say"}
	}
}
