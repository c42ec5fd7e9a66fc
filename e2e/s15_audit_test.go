package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine/ledger"
)

// S15: the history is read, verified and waited for with kubectl alone, by somebody who may only view.

// Who changed what when, in one command; what happened in a rollout, in another; and both without a cluster, from what was
// kept of it.
func TestS15History(t *testing.T) {
	tell(t, "s15-history", func(s *story) {
		s.create("1")
		s.alice("", "annotate", "sts", name, "kubernetes.io/change-cause=ticket 42")
		s.alice("", "set", "image", "sts/"+name, "mysqld="+image("bad"))
		bad := s.waitedFor(3, "Blocked: ")
		s.Expect(bad).To(ContainSubstring(podName(2)))
		s.alice("", "rollout", "undo", "sts/"+name)
		s.Expect(s.waitedFor(0, "done: ")).To(ContainSubstring("stable revision"))
		s.parkedNow()

		rollouts := s.pawl(0, "history", name)
		s.Expect(rollouts).To(HavePrefix("ROLLOUT "))
		s.Expect(strings.Count(rollouts, "\n")).To(Equal(4), rollouts)

		s.Expect(rollouts).To(MatchRegexp(`(?m)^2 .* RolledBack +%s`, s.revisionOf(2)))
		if s.admission { // who it was is what admission writes
			s.Expect(rollouts).To(MatchRegexp(`(?m)^2 .* alice$`))
		}
		one := s.pawl(0, "history", name, "--rollout", "2", "-o", "wide")
		s.Expect(one).To(And(
			ContainSubstring("Rollout 2 of %s/%s: RolledBack", s.namespace, name), ContainSubstring("Cause     ticket 42"),
			MatchRegexp(`db-2 +=+!+`), MatchRegexp(`(?s)StepStarted +db-2 +Stepping.*partition from .* to 2`), ContainSubstring("cannot pull image"),
		))
		for _, e := range s.events() {
			if e.Sequence >= s.firstOf(2) && e.Sequence < s.firstOf(3) {
				s.Expect(one).To(MatchRegexp(`(?m)^%d +%s +\S+ +%s`, e.Sequence, e.Time.UTC().Format("15:04:05"), e.Type), "each transition has its line")
			}
		}

		by := "" // it is admission that writes who it was
		if s.admission {
			by = "alice +"
		}
		s.Expect(s.kubectl("get", "rrec", "-o", "wide")).To(And(
			MatchRegexp(`^NAME +STATEFULSET +NUMBER +FROM +TO +OUTCOME +STEPS +SECONDS +BLOCKED +STARTED BY +STARTED +CAUSE\n`),
			MatchRegexp(`(?m)^\S+ +db +2 +%s +%s +RolledBack +0 +\d+ +\d+ +%s\d+s +ticket 42$`, s.revisionOf(1), s.revisionOf(2), by),
		), "the columns read as an audit")

		kept := filepath.Join(s.t.TempDir(), "audit.yaml")
		s.Expect(os.WriteFile(kept, []byte(s.pawl(0, "history", "-o", "yaml")), 0o600)).To(Succeed())
		s.Expect(s.pawl(0, "history", name, "--rollout", "2", "-o", "wide", "-f", kept)).To(Equal(one), "without a cluster the same is read")
		s.Expect(s.pawl(0, "verify", "-f", kept)).To(ContainSubstring("whole: transitions 1 to"))
		s.Expect(s.pawl(1, "history", "nobody")).To(ContainSubstring(`nothing is recorded of a StatefulSet "nobody"`))
	})
}

// One changed character is found and located, and so is an end that was cut off: by the log of the manager.
func TestS15Verify(t *testing.T) {
	tell(t, "s15-verify", func(s *story) {
		s.create("1")
		s.setImage("2")
		s.waitFor("the rollout", rolloutDone(2))
		s.parkedNow()
		s.recordsEndWith("RolloutCompleted Completed")
		whole := s.pawl(0, "verify", name, "--log", s.manager.log)
		st := s.progress().Status
		s.Expect(whole).To(MatchRegexp(`%s/db: whole: transitions 1 to %d in \d+ records and status, %d heads of the manager's log; head %s`,
			s.namespace, st.Sequence, st.Sequence, st.Digest), "each transition was logged with the head after it")

		record := s.records()[len(s.records())-1]
		s.Expect(s.kubectl("patch", "rrec", record.Name, "--type=json", "-p", `[{"op":"replace","path":"/page/transitions/1/time","value":"2026-01-01T00:00:00.000000Z"}]`)).
			To(ContainSubstring("a RolloutRecord cannot be changed"))
		forged := record.DeepCopy()
		forged.ResourceVersion, forged.UID = "", ""
		forged.Page.Transitions[1].Pod = "db-1"
		s.Expect(lab.admin.Delete(s.t.Context(), &record)).To(Succeed())
		s.Expect(lab.admin.Create(s.t.Context(), forged)).To(Succeed())
		s.Expect(s.pawl(1, "verify", name)).To(MatchRegexp(`FAULT: RolloutRecord %s is damaged at transition %d`, record.Name, record.Page.Transitions[0].Sequence))
		s.Expect(lab.admin.Delete(s.t.Context(), forged)).To(Succeed())
		record.ResourceVersion, record.UID = "", ""
		s.Expect(lab.admin.Create(s.t.Context(), &record)).To(Succeed())
		s.Expect(s.pawl(0, "verify", name)).To(ContainSubstring("whole"))

		// The end is cut off, in a copy: it folds, and the chain is whole as far as it goes.
		kept, end := s.pawl(0, "history", name, "-o", "json"), s.progress().Status.Sequence
		list, err := decode[map[string]any]([]byte(kept))
		s.Expect(err).NotTo(HaveOccurred())
		items, is := list["items"].([]any)
		s.Expect(is).To(BeTrue())
		list["items"] = items[1 : len(items)-1] // without status and the last record
		cut, err := json.Marshal(list)
		s.Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(s.t.TempDir(), "cut.json")
		s.Expect(os.WriteFile(file, cut, 0o600)).To(Succeed())
		s.Expect(s.pawl(0, "verify", "-f", file)).To(ContainSubstring("whole"), "the chain alone cannot know")
		s.Expect(s.pawl(1, "verify", "-f", file, "--log", s.manager.log)).To(ContainSubstring("cut off: the manager logged transition"))
		s.Expect(end).To(BeNumerically(">", 5))
	})
}

// Old records go, oldest first, and what is left is whole: as the policy of their StatefulSet says. Those of one that is gone
// go with the last, as the manager's flag says if there is no default policy.
func TestS15Retention(t *testing.T) {
	tellWithAdmission(t, "s15-retention", func(s *story) {
		s.keeps = true
		s.rolloutPolicy(pawlv1alpha1.RolloutPolicySpec{RetentionDays: 30})
		s.runAs(pawlAccount)
		old, ancient := s.pageOf(name, 31*24*time.Hour), s.pageOf("gone", 91*24*time.Hour)
		young := s.pageOf("young", 89*24*time.Hour)
		for _, page := range []pawlv1alpha1.Page{old, ancient, young} {
			record := ledger.Record(s.namespace, page)
			s.Expect(lab.admin.Create(s.t.Context(), &record)).To(Succeed())
		}
		s.create("1", s.governed) // its log goes on from the old record
		s.setImage("2")
		s.waitFor("the rollout", rolloutDone(s.progress().Status.Rollout.Number+1))
		s.parkedNow()
		s.recordsEndWith("RolloutCompleted Completed")
		s.Expect(s.records()[0].Name).To(Equal(ledger.RecordName(name, 1)))
		s.Expect(s.records()[0].Page.StatefulSetUID).To(Equal(old.StatefulSetUID))
		s.keeps = false
		s.runAs(pawlAccount) // it looks at the start, and daily
		s.Eventually(func() string { return s.records()[0].Name }, patience, tick).Should(Equal(ledger.RecordName(name, 2)), "waiting for the old record to go")
		s.Eventually(func() int { return len(s.recordsOf("gone")) }, patience, tick).Should(BeZero(), "waiting for the last of what is gone")
		s.Expect(s.recordsOf("young")).To(HaveLen(1), "89 days are not 90")
		s.Expect(s.pawl(0, "verify", name)).To(ContainSubstring("; 1 older ones are gone"))
		s.Expect(s.manager.lines("deleted RolloutRecords")).To(HaveLen(1), "the manager says so")
		s.Expect(s.manager.lines("deleted a RolloutRecord")).To(ContainElements(
			ContainSubstring(`"record":"`+ledger.RecordName(name, 1)+`"`), ContainSubstring(`"record":"`+ledger.RecordName("gone", 1)+`"`),
		), "and of each")
	})
}

// areExplained: every rollout that has ended is in records, and all that is in them is told line by line from them alone,
// without a cluster; they are whole by themselves. Half of the settings are half of the time.
func (s *story) areExplained() {
	if half && s.policy == appsv1.ParallelPodManagement {
		return
	}
	if s.manager != nil {
		s.Eventually(func() int64 { return s.sealedThrough() }, 10*time.Second, tick).Should(BeNumerically(">=", ended(s.events())),
			"waiting for the records of what has ended")
	}
	records := s.records()
	if len(records) == 0 {
		return
	}
	var alone corev1.List
	alone.APIVersion, alone.Kind = "v1", "List"
	numbers := map[int64]pawlv1alpha1.Page{} // the newest page of each rollout
	for _, r := range records {
		alone.Items = append(alone.Items, runtime.RawExtension{Object: new(ledger.Record(s.namespace, r.Page))})
		if r.Page.Rollout != nil {
			numbers[r.Page.Rollout.Number] = r.Page
		}
	}
	text, err := json.Marshal(alone)
	s.Expect(err).NotTo(HaveOccurred())
	read := func(args ...string) string {
		out, err := attempt(s.t.Context(), string(text), filepath.Join(lab.bin, "kubectl-pawl"), append(args, "-f", "-")...)
		s.Expect(err).NotTo(HaveOccurred(), out)
		return out
	}
	s.Expect(read("verify", name)).To(MatchRegexp(`: whole: transitions \d+ to \d+ in %d records; .*head`, len(alone.Items)))
	told := map[int64]string{} // what happened between two rollouts is told with the later one, or the newest
	for number, page := range numbers {
		out := read("history", name, "--rollout", fmt.Sprint(number), "-o", "wide")
		s.Expect(out).To(HavePrefix("Rollout %d of %s/%s: %s\n", number, s.namespace, name, cmp.Or(string(page.Rollout.Outcome), "unknown")))
		maps.Copy(told, bySequence(out))
	}
	for _, r := range records {
		if len(numbers) == 0 {
			break // nothing but Adopted, of which verify has told
		}
		for _, t := range r.Page.Transitions {
			for _, words := range tells(t) {
				s.Expect(told[t.Sequence]).To(ContainSubstring(strings.Join(strings.Fields(words), " ")), "transition %d, %s", t.Sequence, t.Type)
			}
		}
		s.Expect(told[ledger.Newest(r.Page).Sequence]).To(HaveSuffix("digest "+r.Page.Digest), "the head after the last one")
	}
}

// sealedThrough is the newest transition that is in a record.
func (s *story) sealedThrough() (last int64) {
	for _, r := range s.records() {
		last = max(last, ledger.Newest(r.Page).Sequence)
	}
	return last
}

// ended is the newest transition of all rollouts that have ended. That a StatefulSet is let go between two rollouts is
// sealed with the next one.
func ended(log []pawlv1alpha1.Transition) (last int64) {
	open := false
	for _, t := range log {
		switch {
		case t.Type == "RolloutCompleted", t.Type == "Abandoned" && open:
			last, open = t.Sequence, false
		case t.Type == "RolloutStarted", t.Type == "Adopted":
			last, open = t.Sequence-1, open || t.Type == "RolloutStarted"
		}
	}
	return last
}

// bySequence is what history tells of each transition: its line and those below it, as one.
func bySequence(out string) map[int64]string {
	told, at := map[int64]string{}, int64(0)
	_, table, _ := strings.Cut(out, "TIME (UTC)")
	for _, line := range strings.Split(table, "\n")[1:] {
		words := strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, " ") {
			told[at] += " " + words
		} else if n, err := strconv.ParseInt(strings.SplitN(words, " ", 2)[0], 10, 64); err == nil {
			at, told[n] = n, words
		}
	}
	return told
}

// tells are the words in which history has to tell a transition: when, what, why, whose doing, and on what grounds.
func tells(t pawlv1alpha1.Transition) []string {
	all := []string{
		fmt.Sprintf("%d %s", t.Sequence, t.Time.UTC().Format("15:04:05")),
		strings.Join([]string{t.Type, t.Reason, cmp.Or(t.Pod, t.Ordinals), string(t.State)}, " "),
		t.Message, t.Revision, t.FromRevision, fmt.Sprintf("generation %d", t.Generation),
	}
	for what, is := range map[string]string{
		"by": t.Actor, "cause:": t.Cause, "pod uid": t.PodUID, "StatefulSet uid": t.StatefulSetUID, "template digest": t.TemplateDigest,
	} {
		if is != "" {
			all = append(all, what+" "+is)
		}
	}
	if t.Partition != nil && *t.Partition != *t.PreviousPartition {
		all = append(all, "partition from "+shown(*t.PreviousPartition)+" to "+shown(*t.Partition))
	} else if t.Partition != nil {
		all = append(all, "partition "+shown(*t.Partition))
	}
	for _, gate := range t.Gates {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("gate %s %s: %s", gate.Name, gate.Result, gate.Message), ": "))
	}
	return all
}

func shown(p int32) string {
	if p == parked {
		return "parked"
	}
	return fmt.Sprint(p)
}

// pageOf is a sealed page of that age: a StatefulSet was adopted, and no more.
func (s *story) pageOf(name string, age time.Duration) pawlv1alpha1.Page {
	at := metav1.NewMicroTime(time.Now().Add(-age).UTC().Truncate(time.Microsecond))
	p, zero, parked, three := int32(0), int32(0), int32(parked), int32(3)
	t := pawlv1alpha1.Transition{
		Sequence: 1, Time: at, Type: "Adopted", State: pawlv1alpha1.StateDone, Reason: "FirstSeen", Partition: &parked, PreviousPartition: &p,
		Generation: 1, Replicas: &three, Start: &zero, TemplateDigest: "t", StatefulSetUID: "uid-of-yore", Mode: "Enforce", Origin: "FirstSeen",
		Revision: name + "-1", StableRevision: name + "-1",
	}
	return pawlv1alpha1.Page{
		StatefulSet: name, StatefulSetUID: "uid-of-yore", Transitions: []pawlv1alpha1.Transition{t}, Digest: ledger.Chain("", t),
	}
}

// pawl runs kubectl pawl in the namespace of the story as a person who may view it, and returns what it says.
func (s *story) pawl(code int, args ...string) string {
	s.t.Helper()
	got, said := s.waitAs("KUBECONFIG="+lab.lab.Kubeconfigs["alice"]+" kubectl pawl "+strings.Join(args, " ")+" -n "+s.namespace, time.Minute)
	s.Expect(got).To(Equal(code), "kubectl pawl %s: %s", strings.Join(args, " "), said)
	return said
}

// waitedFor runs kubectl pawl wait right away, and returns its answer.
func (s *story) waitedFor(code int, answer string) string {
	s.t.Helper()
	said := s.pawl(code, "wait", name, "--timeout", fmt.Sprint(patience))
	s.Expect(said).To(ContainSubstring(answer))
	return said[strings.Index(said, answer):]
}

// revisionOf is the target of a rollout, and firstOf the sequence of its first transition.
func (s *story) revisionOf(number int64) string { return s.startOf(number).Revision }

func (s *story) firstOf(number int64) int64 { return s.startOf(number).Sequence }

func (s *story) startOf(number int64) pawlv1alpha1.Transition {
	for _, e := range s.events() {
		if e.Type == "RolloutStarted" && e.Number == number {
			return e
		}
	}
	s.t.Fatalf("there is no rollout %d", number)
	return pawlv1alpha1.Transition{}
}
