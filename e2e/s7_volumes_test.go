package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// S7, with volumes: volumeClaimTemplates cannot be changed, so people delete the StatefulSet with its pods left behind
// and create it again.

// The claims keep their names and get another size: that is what it is mostly done for. Pods go one by one, on their old
// claims, and one that is lost comes back old.
func TestS7RecreatedWithLargerClaims(t *testing.T) {
	tell(t, "s7-claim-size", func(s *story) {
		s.volumes("data")
		s.create("1", claims("1Gi", "data"))
		before := s.claimsOfPods("data")
		s.pause(true)
		s.recreate("2", claims("2Gi", "data"))
		s.restored()
		for i := range 2 {
			s.Expect(revision(s.lose(i))).To(Equal(s.good), "pod %d comes back at the revision it had", i)
		}
		s.pause(false)
		s.goesOn()
		s.Expect(s.claimsOfPods("data")).To(Equal(before), "on the claims that they had")
	})
}

// A claim is added: the StatefulSet controller cannot give it to the pods that are there, stops at the first of them and
// replaces none. Pawl says so once its patience ends, touches nothing, and goes on when a person has replaced the pods.
func TestS7RecreatedWithAnotherClaim(t *testing.T) {
	tell(t, "s7-claim-added", func(s *story) {
		s.volumes("data", "logs")
		s.create("1", claims("1Gi", "data"))
		kept, before := s.uids(0, 1, 2), len(s.judge().effective())
		s.recreate("2", claims("1Gi", "data", "logs"))
		s.Eventually(func() string { return state("Blocked", "Unknown", "db-2")(s.progress().Status) }, 3*patience, time.Second).
			Should(BeEmpty(), "waiting for the verdict, after the progress deadline")
		s.Expect(s.progress().Status.Message).To(ContainSubstring("has not been replaced by the StatefulSet controller"))
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept), "no pod is touched")
		s.Expect(s.judge().effective()[before:]).To(Equal([]int32{2}), "one step, and no other")
		for i, at := range []string{s.good, s.good, s.target()} { // by hand, with their new claims
			s.Expect(revision(s.lose(i))).To(Equal(at), "pod %d comes back as the partition says", i)
		}
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.steps()).To(Equal([]string{"2", "1", "0"}))
	})
}

// claims gives the pods a volume from a claim each.
func claims(size string, names ...string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = nil
		for _, n := range names {
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claim(n, size))
		}
	}
}

func claim(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(string),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// volumes makes the claims of three pods and a PersistentVolume for each, and waits until they are bound: the scheduler
// takes its time to try again what was not.
func (s *story) volumes(names ...string) {
	for _, n := range names {
		for i := range 3 {
			pvc := claim(n+"-"+podName(i), "1Gi")
			pvc.Namespace = s.namespace
			pv := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + pvc.Name},
				Spec: corev1.PersistentVolumeSpec{
					AccessModes: pvc.Spec.AccessModes,
					Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
					ClaimRef:    &corev1.ObjectReference{Namespace: pvc.Namespace, Name: pvc.Name},
					PersistentVolumeSource: corev1.PersistentVolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/stories"}, // nobody mounts it
					},
				},
			}
			s.Expect(lab.admin.Create(s.t.Context(), pv)).To(Succeed())
			s.t.Cleanup(func() { _ = lab.admin.Delete(context.Background(), pv) })
			s.Expect(lab.alice.Create(s.t.Context(), &pvc)).To(Succeed())
			s.Eventually(func() corev1.PersistentVolumeClaimPhase {
				s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKeyFromObject(&pvc), &pvc)).To(Succeed())
				return pvc.Status.Phase
			}, patience).Should(Equal(corev1.ClaimBound), "waiting for the claim %s to be bound", pvc.Name)
		}
	}
}

// claimsOfPods are the claims that exist for three pods.
func (s *story) claimsOfPods(name string) map[int]types.UID {
	uids := map[int]types.UID{}
	for i := range 3 {
		pvc := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: s.namespace, Name: name + "-" + podName(i)}
		s.Expect(lab.alice.Get(s.t.Context(), key, pvc)).To(Succeed())
		uids[i] = pvc.UID
	}
	return uids
}
