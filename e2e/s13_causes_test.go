package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S13: causes that are not in the pod: what refuses it, what its volumes wait for, where its node is. Each is named, and
// the rollout goes on by itself when the cause is gone.

// A quota does not let the new pod be created: the pod is absent, and only an Event says why.
func TestS13Quota(t *testing.T) {
	tell(t, "s13-quota", func(s *story) {
		raise := s.quota("350m")
		s.create("1", cpu("100m"))
		kept := s.uids(0, 1)
		s.edit(cpu("200m"))
		s.refused("QuotaExceeded")
		s.says("exceeded quota: compute", "Raise the quota")
		s.Expect(s.uids(0, 1)).To(Equal(kept), "the others are untouched")
		s.Expect(partition(s.set())).To(BeEquivalentTo(2))

		raise("1")
		s.waitFor("the rollout to complete by itself", rolloutDone(2))
		s.Expect(s.deletions()).To(BeEmpty())
	})
}

// Events, nodes and claims are good to have, not needed. A manager that may read none of them says once what it cannot
// see, tells of the absent pod what it knows, and that Events would say more; it goes on when the cause is gone. The admission
// policies except no account but Pawl's own, so they are not there.
func TestS13Blind(t *testing.T) {
	tellWithoutAdmission(t, "s13-blind", func(s *story) {
		s.deadline = "30s"
		s.runAs(blindAccount)
		for _, verb := range []string{"list nodes", "watch nodes", "list persistentvolumeclaims", "watch persistentvolumeclaims", "list events"} {
			s.Eventually(func() []string { return s.manager.lines("Pawl may not " + verb) }, patience).Should(HaveLen(1), "waiting for what the manager says it may not: "+verb)
		}
		raise := s.quota("350m")
		s.create("1", cpu("100m"))
		kept := s.uids(0, 1)
		s.edit(cpu("200m"))
		s.waitFor("the absent pod to be named", state("Blocked", "PodMissing", podName(2)))
		s.says("the cause is in Events, which Pawl may not list")
		s.Expect(s.uids(0, 1)).To(Equal(kept), "the others are untouched")
		s.Expect(partition(s.set())).To(BeEquivalentTo(2))

		raise("1")
		s.waitFor("the rollout to complete by itself", rolloutDone(2))
		s.Expect(s.deletions()).To(BeEmpty())
		s.Expect(s.manager.errors()).To(BeEmpty(), "nothing that is needed is missing")
	})
}

// quota bounds what the pods of the story may request together; the function that it returns changes the bound.
func (s *story) quota(cpu string) func(cpu string) {
	hard := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"requests.cpu": resource.MustParse(cpu)}
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "compute", Namespace: s.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard(cpu)},
	}
	s.Expect(lab.admin.Create(s.t.Context(), quota)).To(Succeed())
	return func(cpu string) {
		before := quota.DeepCopy()
		quota.Spec.Hard = hard(cpu)
		s.Expect(lab.admin.Patch(s.t.Context(), quota, client.MergeFrom(before))).To(Succeed())
	}
}

// refused waits until the StatefulSet controller has said that the pod may not be created, and then until Pawl has heard
// it. That controller writes its Events one after another, and with many stories at once some are a minute late; Pawl asks
// ever more rarely the longer there is nothing to hear.
func (s *story) refused(reason string) {
	s.t.Helper()
	s.Eventually(func() bool {
		var list corev1.EventList
		s.Expect(lab.admin.List(s.t.Context(), &list, client.InNamespace(s.namespace))).To(Succeed())
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "FailedCreate" })
	}, 3*patience, 200*time.Millisecond).Should(BeTrue(), "waiting for the StatefulSet controller to say why the pod is not there")
	s.Eventually(func() string { return state("Blocked", reason, podName(2))(s.observer.status()) }, 3*patience, tick).
		Should(BeEmpty(), "waiting for the refusal to be named")
}

// cpu sets what each pod requests.
func cpu(amount string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}

// An admission policy denies the pod. The revert heals it, and nobody deletes anything: there is nothing to delete.
func TestS13AdmissionDenies(t *testing.T) {
	tell(t, "s13-denied", func(s *story) {
		s.denyTag("denied")
		s.create("1")
		s.setImage("denied")
		s.refused("AdmissionRejected")
		s.says(notAllowed, "Fix or revert the template")
		s.setImage("1")
		s.waitFor("the rollback", done("RolledBack"))
		s.Expect(s.deletions()).To(BeEmpty())
	})
}

// denyTag forbids pods of the story whose image has this tag.
func (s *story) denyTag(tag string) {
	s.forbid(admissionregistrationv1.Create, "", "pods", fmt.Sprintf("!object.spec.containers.exists(c, c.image.endsWith(':%s'))", tag),
		"run", "probe", "--image="+image(tag), "--dry-run=server")
}

// notAllowed is what is said of what is forbidden.
const notAllowed = "this is not allowed here"

// forbid lets only pass what the expression is true of, and waits until this command is refused for it. The function that it
// returns ends that.
func (s *story) forbid(operation admissionregistrationv1.OperationType, group, resource, expression string, refused ...string) (allow func()) {
	s.t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{operation},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: notAllowed}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: s.namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			},
		},
	}
	for _, o := range []client.Object{policy, binding} {
		s.Expect(lab.admin.Create(s.t.Context(), o)).To(Succeed())
		s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), o) })
	}
	s.refusedWith(notAllowed, refused...)
	return func() { s.Expect(lab.admin.Delete(s.t.Context(), binding)).To(Succeed()) }
}

// refusedWith waits until kubectl is refused with this.
func (s *story) refusedWith(words string, command ...string) {
	s.t.Helper()
	s.Eventually(func() string { return s.kubectl(command...) }, patience, 200*time.Millisecond).
		Should(ContainSubstring(words), "waiting for kubectl %s to be refused", strings.Join(command, " "))
}

// Pod security of the namespace refuses the new template.
func TestS13PodSecurity(t *testing.T) {
	tell(t, "s13-pod-security", func(s *story) {
		s.create("1")
		ns := &corev1.Namespace{}
		s.Expect(lab.admin.Get(s.t.Context(), client.ObjectKey{Name: s.namespace}, ns)).To(Succeed())
		before := ns.DeepCopy()
		ns.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
		s.Expect(lab.admin.Patch(s.t.Context(), ns, client.MergeFrom(before))).To(Succeed())
		s.edit(func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.HostNetwork = true })
		s.refused("AdmissionRejected")
		s.says(`violates PodSecurity "baseline:latest"`)
		s.edit(func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.HostNetwork = false })
		s.waitFor("the rollback", done("RolledBack"))
		s.Expect(s.deletions()).To(BeEmpty())
	})
}

// The volume of the next pod is lost while the pod works: no step, however healthy everything is. A claim that is bound
// again lets it go on.
func TestS13ClaimLost(t *testing.T) {
	tell(t, "s13-claim-lost", func(s *story) {
		s.volumes("data")
		s.create("1", claims("1Gi", "data"))
		kept := s.uids(0, 1, 2)
		lost := s.loseVolume("data-" + podName(2))
		s.setImage("2")
		s.waitFor("the claim to be named", state("Blocked", "PVCLost", podName(2)))
		s.says("claim data-db-2 has lost its volume")
		s.Consistently(func() bool { return partition(s.set()) >= 3 }, 3*time.Second, 200*time.Millisecond).Should(BeTrue(), "no pod is released")
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept), "no pod is touched")

		lost.ResourceVersion, lost.UID = "", ""
		s.Expect(lab.admin.Create(s.t.Context(), lost)).To(Succeed())
		s.waitFor("the rollout to complete by itself", rolloutDone(2))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
	})
}

// loseVolume takes the volume of a claim away, whatever protects it, and waits until the claim is Lost.
func (s *story) loseVolume(claim string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{}
	s.Expect(lab.admin.Get(s.t.Context(), client.ObjectKey{Name: s.namespace + "-" + claim}, pv)).To(Succeed())
	gone := pv.DeepCopy()
	s.Expect(lab.admin.Delete(s.t.Context(), gone)).To(Succeed())
	s.Eventually(func() error {
		left := &corev1.PersistentVolume{}
		err := lab.admin.Get(s.t.Context(), client.ObjectKeyFromObject(pv), left)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		left.Finalizers = nil
		return fmt.Errorf("it is still there: %w", lab.admin.Update(s.t.Context(), left))
	}, patience, 100*time.Millisecond).Should(Succeed(), "waiting for the volume to be gone")
	s.Eventually(func() corev1.PersistentVolumeClaimPhase {
		pvc := &corev1.PersistentVolumeClaim{}
		s.Expect(lab.admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: claim}, pvc)).To(Succeed())
		return pvc.Status.Phase
	}, patience, 100*time.Millisecond).Should(Equal(corev1.ClaimLost), "waiting for the claim to be Lost")
	return pv
}

// The new template names a claim that does not exist. It is created, and the pod comes up where it stands.
func TestS13ClaimMissing(t *testing.T) {
	tell(t, "s13-claim-missing", func(s *story) {
		s.create("1")
		s.edit(mounts("shared"))
		s.waitFor("the claim to be named", state("Stepping", "PVCMissing", podName(2)))
		s.says("needs claim shared, which does not exist")
		casualty := s.pod(2).UID
		pvc := claim("shared", "1Gi")
		pvc.Namespace = s.namespace
		s.Expect(lab.alice.Create(s.t.Context(), &pvc)).To(Succeed())
		s.waitFor("the claim to be pending", state("Stepping", "PVCPending PVCMissing", podName(2)))
		pv := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-shared"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: pvc.Spec.AccessModes, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: "shared"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/stories"}},
			},
		}
		s.Expect(lab.admin.Create(s.t.Context(), pv)).To(Succeed())
		s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), pv) })
		s.waitForEvent("StepCompleted", 1)
		s.Expect(s.pod(2).UID).To(Equal(casualty), "the pod that waited came up")
		s.waitFor("the rollout to complete", rolloutDone(2))
	})
}

// A volume cannot be mounted: the pod says ContainerCreating and no more, an Event says why.
func TestS13Mount(t *testing.T) {
	tell(t, "s13-mount", func(s *story) {
		s.create("1")
		s.setImage("creating")
		s.waitForEvent("StepStarted", 1)
		s.Eventually(func() string { return s.waitsWith(2) }, patience, 100*time.Millisecond).Should(Equal("ContainerCreating"), "waiting for the new pod")
		pod := s.pod(2)
		now := metav1.Now()
		s.Expect(lab.admin.Create(s.t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: s.namespace, Name: "mount"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pod.Name, UID: pod.UID, APIVersion: "v1"},
			Type:           corev1.EventTypeWarning, Reason: "FailedMount", Source: corev1.EventSource{Component: "kubelet"},
			Message:        `MountVolume.SetUp failed for volume "config" : configmap "db-config" not found`,
			FirstTimestamp: now, LastTimestamp: now, Count: 3,
		})).To(Succeed())
		s.waitFor("the volume to be named", state("Stepping", "VolumeNotReady", podName(2)))
		s.says(`configmap "db-config" not found`, "container mysqld")
		s.fate(2, "ready")
		s.waitForEvent("StepCompleted", 1)
		s.setImage("1")
		s.waitFor("the rollback", done("RolledBack"))
	})
}

// waitsWith is what the first container of a pod waits with.
func (s *story) waitsWith(i int) string {
	pod := s.find(i)
	if pod == nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
		return ""
	}
	return pod.Status.ContainerStatuses[0].State.Waiting.Reason
}

// A pod that is not of the StatefulSet has the name of one that it needs.
func TestS13NameTaken(t *testing.T) {
	tell(t, "s13-name-taken", func(s *story) {
		s.create("1")
		squatter := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: podName(3), Labels: map[string]string{"app": "other"}}, // else it is adopted
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: image("1")}}},
		}
		s.Expect(lab.alice.Create(s.t.Context(), squatter)).To(Succeed())
		s.excused[podName(3)] = true
		s.edit(func(set *appsv1.StatefulSet) {
			replicas(4)(set)
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})
		s.waitFor("the pod in the way to be named", state("Waiting", "NameTaken", podName(3)))
		s.says("its name is that of another pod")
		s.Expect(partition(s.set())).To(BeNumerically(">=", 3), "no pod is released")
		s.Expect(lab.alice.Delete(s.t.Context(), squatter)).To(Succeed())
		s.waitFor("the rollout to complete by itself", rolloutDone(2))
	})
}

// A pod of the step is held by a finalizer past its grace period.
func TestS13Finalizer(t *testing.T) {
	tell(t, "s13-finalizer", func(s *story) {
		s.create("1")
		s.keep(2, true)
		s.setImage("2")
		s.waitFor("the finalizer to be named", state("Stepping", "StuckTerminating", podName(2)))
		s.says("is held by finalizer stories.pawl.dev/keep")
		s.keep(2, false)
		s.waitFor("the rollout to complete by itself", rolloutDone(2))
	})
}

// The node of a pod is gone. Its pod is not healthy, whatever it says of itself, and no other is touched.
func TestS13NodeGone(t *testing.T) {
	tell(t, "s13-node-gone", func(s *story) {
		node := s.node(s.namespace)
		s.create("1", onNode(s.namespace))
		s.pause(true)
		s.setImage("2")
		s.waitFor("the hold", state("Waiting", "Paused", ""))
		again := node.DeepCopy()
		s.Expect(lab.admin.Delete(s.t.Context(), node)).To(Succeed())
		s.pause(false)
		s.waitFor("the node to be named", state("Waiting", "NodeNotReady", ""))
		s.says("is on node " + s.namespace + ", which does not exist")
		s.Expect(s.steps()).To(BeEmpty())
		again.ResourceVersion, again.UID = "", ""
		s.Expect(lab.admin.Create(s.t.Context(), again)).To(Succeed())
		s.waitFor("the rollout to complete by itself", rolloutDone(2))
	})
}

// onNode keeps the pods on the node of the story.
func onNode(story string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.NodeSelector = map[string]string{"story": story}
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}

// says expects all of these in the message.
func (s *story) says(words ...string) {
	s.t.Helper()
	s.Eventually(func() string {
		message := s.progress().Status.Message
		for _, w := range words {
			if !strings.Contains(message, w) {
				return fmt.Sprintf("%q does not say %q", message, w)
			}
		}
		return ""
	}, patience, 200*time.Millisecond).Should(BeEmpty(), "waiting for the message")
}
