package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// The managers are restarted one by one while rollouts are on their way, as by kubectl rollout restart of their Deployment:
// each rollout takes the steps that it would have taken. The lease is given back by the one that ends, and taken by the other
// within two seconds, as the audit log of the API server has it. Not beside other stories, as this one is about time.
func TestS16RollingRestart(t *testing.T) {
	p := newcomer(t)
	p.follows("..", "install.md", "With kubectl")
	// A pod of Pawl is Ready when the manager says so.
	p.runs("..", "kubectl set image deployment/pawl -n pawl-system manager=registry.example/pawl:never-before-it-says-so")
	p.managersRun()
	p.runs("..", "kubectl rollout status deployment/pawl -n pawl-system --timeout=1m")

	watching, err := observe(p.alice, "default")
	p.Expect(err).NotTo(HaveOccurred())
	defer watching.end()
	set := bareSet("default", "1")
	three := int32(3)
	set.Spec.Replicas = &three
	set.Spec.Template.Annotations = map[string]string{"lab.pawl.dev/ready-after": "2s"}
	p.Expect(p.alice.Create(t.Context(), set)).To(Succeed())
	p.runs("..", "kubectl pawl wait db --timeout 2m")
	for n := range 2 {
		p.runs("..", fmt.Sprintf(`kubectl set image statefulset/db mysqld=%s
kubectl rollout restart deployment/pawl -n pawl-system
kubectl rollout status deployment/pawl -n pawl-system --timeout=2m
kubectl pawl wait db --timeout 2m`, image(fmt.Sprint(n+2))))
	}
	p.managersRun()
	var steps []string
	for _, one := range p.transitions(name) {
		if strings.HasPrefix(one.Type, "Step") {
			steps = append(steps, one.Type+" "+one.Ordinals)
		}
	}
	once := []string{"StepStarted 2", "StepCompleted 2", "StepStarted 1", "StepCompleted 1", "StepStarted 0", "StepCompleted 0"}
	p.Expect(steps).To(Equal(slices.Concat(once, once)), "as if nobody had restarted anything")
	p.Expect(watching.judgement(nil).report()).To(BeEmpty(), "the observer found a rollout unsafe")
	p.actsAreRecorded(watching)

	gaps := p.handOvers()
	t.Logf("from the release of the lease to the next holder: %v", gaps)
	p.Expect(len(gaps)).To(BeNumerically(">=", 2), "each restart ends the one that works")
	p.Expect(gaps).To(HaveEach(BeNumerically("<", 2*time.Second)))
}

// handOvers are the times from the release of the lease to the next holder. A holder that was not released would have been
// taken for dead, after 15 seconds: there is none.
func (p *person) handOvers() (gaps []time.Duration) {
	_, err := p.audit.in("", p.lab.AuditLog)
	p.Expect(err).NotTo(HaveOccurred())
	holder, released := "", time.Time{}
	for _, r := range p.audit.leases {
		var lease struct {
			Spec struct {
				Holder string `json:"holderIdentity"`
			} `json:"spec"`
		}
		if r.refused() || r.Verb == "get" || json.Unmarshal(r.RequestObject, &lease) != nil {
			continue
		}
		switch next := lease.Spec.Holder; {
		case next == "":
			released = r.At.Time
		case next != holder:
			if holder != "" {
				p.Expect(released.IsZero()).To(BeFalse(), "%s took the lease of %s, which had not given it back", next, holder)
				gaps = append(gaps, r.At.Sub(released))
			}
			holder, released = next, time.Time{}
		}
	}
	return gaps
}

// transitions are the log of the StatefulSet, also what is in records already.
func (p *person) transitions(of string) (all []pawlv1alpha1.Transition) {
	rp := &pawlv1alpha1.RolloutProgress{}
	p.Expect(p.alice.Get(p.t.Context(), client.ObjectKey{Namespace: "default", Name: of}, rp)).To(Succeed())
	var records pawlv1alpha1.RolloutRecordList
	p.Expect(p.alice.List(p.t.Context(), &records, client.InNamespace("default"))).To(Succeed())
	all = rp.Status.Transitions
	for _, r := range records.Items {
		if r.Page.StatefulSet != of {
			continue
		}
		all = append(all, r.Page.Transitions...)
	}
	slices.SortFunc(all, func(a, b pawlv1alpha1.Transition) int { return int(a.Sequence - b.Sequence) })
	return slices.CompactFunc(all, func(a, b pawlv1alpha1.Transition) bool { return a.Sequence == b.Sequence })
}

// A manager is told to stop while the API server takes its time over a write. It waits for the answer, and ends then: what
// was recorded is done.
func TestS16LastWrite(t *testing.T) {
	t.Parallel()
	slow := &proxy{at: failpoint{write: "patch statefulsets"}, nth: math.MaxInt}
	tellOne(t, "s16-last-write", appsv1.OrderedReadyPodManagement, true, settings{via: slow}, func(s *story) {
		s.create("1")
		write := slow.holds()
		s.setImage("2")
		s.Eventually(write.reached, patience).Should(BeClosed(), "waiting for the step")
		ended := make(chan error, 1)
		m := s.manager
		s.manager = nil
		go func() { ended <- m.stop(syscall.SIGTERM) }()
		s.Consistently(ended, 2*time.Second).ShouldNot(Receive(), "it waits for its write")
		s.Expect(partition(s.set())).To(BeEquivalentTo(parked))
		close(write.released)
		s.Eventually(ended, patience).Should(Receive(BeNil()), "waiting for the manager to end")
		s.Expect(partition(s.set())).To(BeEquivalentTo(2), "the step was taken")
		s.Expect(m.errors()).To(Or(BeEmpty(), HaveEach(ContainSubstring(`"logger":"events"`))), "nothing but a Kubernetes Event is given up")

		s.startManager()
		s.waitFor("the rollout to complete", rolloutDone(2))
		s.Expect(s.since(2)).To(Equal(stepwise))
	})
}
