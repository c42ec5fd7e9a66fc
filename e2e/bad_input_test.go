package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// Bad input: each is answered with words that say what to do, and nothing moves.

func TestBadInputOnDelete(t *testing.T) {
	tell(t, "bad-on-delete", func(s *story) {
		s.create("1")
		kept := s.uids(0, 1, 2)
		s.edit(func(set *appsv1.StatefulSet) {
			set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
			set.Spec.Template.Spec.Containers[0].Image = image("2")
		})
		s.waitFor("the refusal", state("Blocked", "UnsupportedStrategy", ""))
		s.Expect(s.progress().Status.Message).To(ContainSubstring("RollingUpdate"))
		s.Expect(s.set().Spec.UpdateStrategy.Type).To(Equal(appsv1.OnDeleteStatefulSetStrategyType), "left alone")
		s.Expect(s.uids(0, 1, 2)).To(Equal(kept))

		// The way back of the runbook, with no manager to hurry: it releases no pod.
		s.stopManager(syscall.SIGTERM)
		s.follows("UnsupportedStrategy", 0)
		s.target() // until the StatefulSet controller has seen it
		s.stays(parked, "parked in the same write")
		s.startManager()
		s.waitFor("the rollout", rolloutDone(2))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
	})
}

func TestBadInputUnknownMode(t *testing.T) {
	tell(t, "bad-unknown-mode", func(s *story) {
		s.create("1")
		s.edit(func(set *appsv1.StatefulSet) { set.Labels["pawl.dev/mode"] = "enforced" })
		s.Eventually(func() string {
			var list eventsv1.EventList
			s.Expect(lab.alice.List(s.t.Context(), &list, client.InNamespace(s.namespace))).To(Succeed())
			for _, e := range list.Items {
				if e.Reason == "UnknownMode" && e.Type == "Warning" && e.Regarding.Kind == "StatefulSet" {
					return e.Note
				}
			}
			return ""
		}, patience).Should(And(ContainSubstring("enforced"), ContainSubstring("Enforce"), ContainSubstring("Observe")), "a warning Event that says what is allowed")
		// A word that means nothing is no order to let go: the StatefulSet stays as safe as it was.
		s.Eventually(func() string {
			c := apimeta.FindStatusCondition(s.progress().Status.Conditions, "Stalled")
			return c.Reason + " " + string(c.Status)
		}, patience).Should(Equal("UnknownMode True"), "the conditions say so")
		s.toolsSay("Failed", "Degraded", "Healthy")
		kept := s.uids(0, 1, 2)
		s.setImage("2")
		s.Consistently(func() bool { return partition(s.set()) == parked && s.uids(0, 1, 2)[2] == kept[2] }, 3*time.Second, 200*time.Millisecond).
			Should(BeTrue(), "parked, and no pod moves")
		s.edit(func(set *appsv1.StatefulSet) { set.Labels["pawl.dev/mode"] = "Enforce" })
		s.waitFor("the rollout", rolloutDone(2))
	})
}

// The label goes: finished, the StatefulSet gets back what it would have without Pawl.
func TestLeaving(t *testing.T) {
	tell(t, "leaving", func(s *story) {
		s.create("1")
		s.edit(func(set *appsv1.StatefulSet) { delete(set.Labels, "pawl.dev/mode") })
		s.waitFor("the end of it", state("Done", "Unmanaged", ""))
		s.Eventually(func() int32 { return partition(s.set()) }, patience).Should(BeZero(), "handed back with partition 0")
		s.toolsSay("InProgress", "Progressing", "Healthy") // of a rollout that nobody drives nothing good is known
	})
}

// A RolloutProgress that a person makes is no opt-in.
func TestBadInputMadeByHand(t *testing.T) {
	tell(t, "bad-made-by-hand", func(s *story) {
		s.create("1")
		other := s.set()
		plain := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: s.namespace}, Spec: *other.Spec.DeepCopy()}
		plain.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "plain"}}
		plain.Spec.Template.Labels = map[string]string{"app": "plain"}
		plain.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
		s.Expect(lab.alice.Create(s.t.Context(), plain)).To(Succeed())
		for name, reason := range map[string]string{"plain": "NotManaged", "absent": "StatefulSetNotFound"} {
			rp := &pawlv1alpha1.RolloutProgress{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
			s.Expect(lab.alice.Create(s.t.Context(), rp)).To(Succeed())
			s.Eventually(func() string {
				s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKeyFromObject(rp), rp)).To(Succeed())
				c := apimeta.FindStatusCondition(rp.Status.Conditions, "Ready")
				if c == nil || c.Status != metav1.ConditionFalse {
					return fmt.Sprintf("no condition Ready=False on %s", name)
				}
				return c.Reason
			}, patience).Should(Equal(reason), "waiting for conditions on %s", name)
			s.Expect(rp.Status.State).To(BeEmpty())
			s.Expect(rp.Status.Sequence).To(BeZero())
		}
		s.Expect(lab.alice.Get(s.t.Context(), client.ObjectKeyFromObject(plain), plain)).To(Succeed())
		s.Expect(partition(plain)).To(BeZero(), "an unlabelled StatefulSet is not touched")
	})
}

// A status that was edited does not fold: a condition with the remedy, and no step until it is gone.
func TestBadInputDamagedLog(t *testing.T) {
	tell(t, "bad-damaged-log", func(s *story) {
		s.create("1")
		s.damage()
		s.Expect(s.pawl(1, "verify", name)).To(MatchRegexp(`%s/db: FAULT: the log of db is damaged at transition \d+: `, s.namespace), "anyone sees it with one command")
		s.Eventually(func() string {
			c := apimeta.FindStatusCondition(s.progress().Status.Conditions, "Stalled")
			if c == nil || c.Status != metav1.ConditionTrue {
				return ""
			}
			return c.Reason + ": " + c.Message
		}, patience).Should(And(HavePrefix("LogDamaged"), ContainSubstring("kubectl delete rp db")), "a condition with the remedy")
		s.toolsSay("Failed", "Degraded", "Healthy")

		s.setImage("2")
		s.Consistently(func() int32 { return partition(s.set()) }, 3*time.Second, 100*time.Millisecond).Should(BeEquivalentTo(parked), "no step on a log that does not fold")
		s.Expect(lab.alice.Delete(s.t.Context(), s.progress())).To(Succeed())
		s.waitFor("the rollout after the remedy", rolloutDone(2))
		s.Expect(s.judge().endings).To(Equal([]int{2, 1, 0}))
		s.Expect(s.events()).To(ContainElement(HaveField("Reason", "LogRestarted")), "the log says that it began again")
	})
}

// damage edits the log behind Pawl's back.
func (s *story) damage() {
	rp := s.progress()
	before := rp.DeepCopy()
	rp.Status.Transitions[0].Message = "someone was here"
	s.Expect(lab.alice.Status().Patch(s.t.Context(), rp, client.MergeFrom(before))).To(Succeed())
}

// Observe: everything is reported, nothing is written.
func TestObserveOnly(t *testing.T) {
	tell(t, "observe-only", func(s *story) {
		s.create("1", func(set *appsv1.StatefulSet) { set.Labels["pawl.dev/mode"] = "Observe" })
		s.setImage("bad")
		s.waitFor("the stall to be reported", state("Blocked", pullReasons, "db-2"))
		s.Expect(partition(s.set())).To(BeZero(), "the partition is the owner's")
		s.Expect(s.audited(pawlUser, "patch", "statefulsets")).To(BeEmpty(), "not one write")
		s.Expect(s.deletions()).To(BeEmpty())
	})
}

// Each field of a policy has bounds; the error names the field, the value and what is allowed.
func TestBadInputPolicy(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2049)
	gate := func(rest string) string { return `{"gates":[{` + rest + `}]}` }
	gates := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"name":"g%d","expression":"true"`, i))
		}
		return gate(strings.Join(all, `},{`))
	}
	for spec, want := range map[string]string{
		`{"canaryPods":-1}`:                                                       `spec.canaryPods: Invalid value: -1: spec.canaryPods in body should be greater than or equal to 0`,
		`{"canaryPods":1001}`:                                                     `should be less than or equal to 1000`,
		`{"bakeSeconds":-1}`:                                                      `spec.bakeSeconds in body should be greater than or equal to 0`,
		`{"bakeSeconds":86401}`:                                                   `spec.bakeSeconds in body should be less than or equal to 86400`,
		`{"progressDeadlineSeconds":0}`:                                           `spec.progressDeadlineSeconds in body should be greater than or equal to 1`,
		`{"progressDeadlineSeconds":86401}`:                                       `spec.progressDeadlineSeconds in body should be less than or equal to 86400`,
		`{"stallGraceSeconds":-1}`:                                                `spec.stallGraceSeconds in body should be greater than or equal to 0`,
		`{"stallGraceSeconds":3601}`:                                              `spec.stallGraceSeconds in body should be less than or equal to 3600`,
		`{"progressDeadlineSeconds":60,"stallGraceSeconds":60}`:                   `progressDeadlineSeconds must be more than stallGraceSeconds`,
		`{"maxConcurrentSteps":-1}`:                                               `spec.maxConcurrentSteps in body should be greater than or equal to 0`,
		`{"maxConcurrentSteps":10001}`:                                            `spec.maxConcurrentSteps in body should be less than or equal to 10000`,
		`{"retentionDays":0}`:                                                     `spec.retentionDays in body should be greater than or equal to 1`,
		`{"retentionDays":3651}`:                                                  `should be less than or equal to 3650`,
		`{"disruptionBudgets":"Sometimes"}`:                                       `spec.disruptionBudgets: Unsupported value: "Sometimes": supported values: "Respect", "Ignore"`,
		gate(`"expression":"true"`):                                               `spec.gates[0].name`,
		gate(`"name":"Upper","expression":"true"`):                                `spec.gates[0].name in body should match`,
		gate(`"name":"` + strings.Repeat("a", 64) + `","expression":"true"`):      `spec.gates[0].name: Too long: may not be more than 63`,
		gate(`"name":"a","expression":""`):                                        `spec.gates[0].expression in body should be at least 1 chars long`,
		gate(`"name":"a","expression":"true","messageExpression":""`):             `spec.gates[0].messageExpression in body should be at least 1 chars long`,
		gate(`"name":"a","expression":"true","messageExpression":"` + long + `"`): `spec.gates[0].messageExpression: Too long: may not be more than 2048`,
		gate(`"name":"a"`):                                                        `spec.gates[0].expression`,
		gate(`"name":"a","expression":"` + long + `"`):                            `spec.gates[0].expression: Too long: may not be more than 2048`,
		gate(`"name":"a","expression":"true","bypass":"Often"`):                   `spec.gates[0].bypass: Unsupported value: "Often": supported values: "Never", "WhenPodDown"`,
		gates(9): `spec.gates: Too many: 9: must have at most 8 items`,
		gate(`"name":"a","expression":"true"},{"name":"a","expression":"true"`): `spec.gates[1]: Duplicate value`,
	} {
		g := NewWithT(t)
		said := lab.create(t, "pawl.dev/v1alpha1", "RolloutPolicy", spec)
		g.Expect(said).To(ContainSubstring(want), spec)
	}
	g := NewWithT(t)
	for _, spec := range []string{
		`{}`, `{"canaryPods":0,"bakeSeconds":0,"progressDeadlineSeconds":1,"stallGraceSeconds":0,"maxConcurrentSteps":0,"retentionDays":1}`,
		`{"canaryPods":1000,"bakeSeconds":86400,"progressDeadlineSeconds":86400,"stallGraceSeconds":3600,"maxConcurrentSteps":10000,"retentionDays":3650}`,
		gate(`"name":"` + strings.Repeat("a", 63) + `","expression":"` + long[1:] + `","messageExpression":"` + long[1:] + `"`),
		gate(`"name":"a","expression":"1","messageExpression":"2"`), gates(8),
		`{"progressDeadlineSeconds":2,"stallGraceSeconds":1}`, `{"progressDeadlineSeconds":1}`, `{"stallGraceSeconds":3600}`, // the other one is a flag's
	} {
		g.Expect(lab.create(t, "pawl.dev/v1alpha1", "RolloutPolicy", spec)).To(ContainSubstring("created (server dry run)"), spec)
	}
}

// create tries an object of this kind with kubectl, and returns what it says.
func (c *cluster) create(t *testing.T, version, kind, spec string) string {
	file := filepath.Join(t.TempDir(), "object.json")
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"bad-input"},"spec":%s}`, version, kind, spec)
	NewWithT(t).Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return run(c.lab.Kubectl, "create", "--dry-run=server", "-f", file)
}
