package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
	"pawl.dev/pawl/statemachine/ledger"
)

// complete is a log of two rollouts; the second runs.
func complete(t *testing.T) *notes {
	n := newNotes(t)
	n.record(n.adopted(statemachine.ReasonFirstSeen), n.started(1, "db-b"), n.event(statemachine.RolloutCompleted))
	n.record(n.started(2, "db-c"), n.event(statemachine.Held))
	return n
}

// What is read at two moments need not meet: it is read once more, and only a log that still does not is damaged.
func TestAMomentBetweenTwoReads(t *testing.T) {
	n := complete(t)
	a := apiOf(n)
	progress, reads := a["/apis/pawl.dev/v1alpha1/namespaces/shop/rolloutprogresses"], 0
	old := list(t, "RolloutProgress", n.objects()[0])
	n.record(n.event(statemachine.RolloutCompleted), n.started(3, "db-d"))
	a["/apis/pawl.dev/v1alpha1/namespaces/shop/rolloutprogresses"] = func() any {
		if reads++; reads == 1 {
			return old
		}
		return progress()
	}
	out, errs, code := a.said(t, "verify")
	n.Expect(code).To(BeZero(), out+errs)
	n.Expect(out).To(HavePrefix("shop/db: whole: transitions 1 to 7 in 3 records and status"))
	n.Expect(reads).To(Equal(2))

	a["/apis/pawl.dev/v1alpha1/namespaces/shop/rolloutprogresses"] = func() any { reads++; return old }
	out, _, code = a.said(t, "verify")
	n.Expect(code).To(Equal(1))
	n.Expect(out).To(ContainSubstring("FAULT: a RolloutRecord is ahead of status"))
	n.Expect(reads).To(Equal(4), "once more, not for ever")
}

// A field that this version does not know is an error, also if it comes from a cluster: left out, the digests would be wrong.
func TestAFieldOfANewerVersion(t *testing.T) {
	n := complete(t)
	a := apiOf(n)
	const records = "/apis/pawl.dev/v1alpha1/namespaces/shop/rolloutrecords"
	known := a[records]
	a[records] = func() any {
		all := known()
		page := all.(map[string]any)["items"].([]map[string]any)[0]["page"].(map[string]any)
		page["transitions"].([]any)[0].(map[string]any)["mood"] = "fine"
		return all
	}
	_, errs, code := a.said(t, "verify")
	n.Expect(code).To(Equal(1))
	n.Expect(errs).To(And(ContainSubstring("RolloutRecord db-0000000001"), ContainSubstring(`unknown field "page.transitions[0].mood"`), ContainSubstring("newer Pawl")))
	_, errs, code = a.said(t, "history")
	n.Expect(code).To(Equal(1), errs)
}

// Files of several days hold the same objects: one of each counts, and of two RolloutProgresses the newer.
func TestTheSameInTwoFiles(t *testing.T) {
	n := complete(t)
	monday := n.file()
	n.record(n.event(statemachine.RolloutCompleted))
	tuesday := n.file()
	for _, order := range [][]string{{monday, tuesday}, {tuesday, monday}} {
		out, errs, code := said(t, "verify", "-f", order[0], "-f", order[1])
		n.Expect(code).To(BeZero(), out+errs)
		n.Expect(out).To(HavePrefix("shop/db: whole: transitions 1 to 6 in 3 records and status"))
	}
	forged := complete(t)
	forged.status.Digest = strings.Repeat("a", 64)
	_, errs, code := said(t, "verify", "-f", monday, "-f", forged.file())
	n.Expect(code).To(Equal(1))
	n.Expect(errs).To(ContainSubstring("RolloutProgress shop/db is there twice, with two digests of transition 5"))
	forged = complete(t)
	forged.records[0].Transitions[0].Actor = "mallory"
	_, errs, code = said(t, "verify", "-f", monday, "-f", forged.file())
	n.Expect(code).To(Equal(1))
	n.Expect(errs).To(ContainSubstring("RolloutRecord shop/db-0000000001 is there twice, and the two are not the same"))
}

// One name in two namespaces is two StatefulSets.
func TestOneNameInTwoNamespaces(t *testing.T) {
	n := complete(t)
	objects := n.objects()
	for _, o := range n.objects() {
		switch o := o.(type) {
		case *v1alpha1.RolloutProgress:
			o.Namespace = "bar"
		case *v1alpha1.RolloutRecord:
			o.Namespace = "bar"
		}
		objects = append(objects, o)
	}
	both := file(t, objects...)
	out, _, code := said(t, "history", "db", "-f", both)
	n.Expect(code).To(BeZero())
	n.Expect(out).To(And(HavePrefix("NAMESPACE "), ContainSubstring("\nbar "), ContainSubstring("\nshop ")))
	_, errs, code := said(t, "history", "db", "--rollout", "1", "-f", both)
	n.Expect(code).To(Equal(1))
	n.Expect(errs).To(ContainSubstring("--rollout=1: there is a bar/db and a shop/db: choose one with --namespace"))
	out, _, code = said(t, "history", "db", "--rollout", "1", "-f", both, "-n", "shop")
	n.Expect(code).To(BeZero())
	n.Expect(out).To(HavePrefix("Rollout 1 of shop/db: Completed"))
	out, _, _ = said(t, "verify", "-f", both, "-n", "bar")
	n.Expect(out).To(And(HavePrefix("bar/db: whole"), Not(ContainSubstring("shop"))))
}

// The last rollout of a log without a RolloutProgress does not run any more.
func TestARolloutWhoseEndIsLost(t *testing.T) {
	n := complete(t)
	out, _, _ := said(t, "history", "db", "-f", n.file())
	n.Expect(out).To(MatchRegexp(`(?m)^2 .* 66m\+ +Waiting `), "it runs")
	log, err := ledger.Load("db", n.status, n.records)
	n.Expect(err).NotTo(HaveOccurred())
	n.records = append(n.records, log.Cut()...) // a page of a rollout that goes on
	n.lose()
	out, _, _ = said(t, "history", "db", "-f", n.file())
	n.Expect(out).To(MatchRegexp(`(?m)^2 .* 0s +unknown `))
}
