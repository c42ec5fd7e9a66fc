package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	pods       = "kubectl get pods -L controller-revision-hash"
	continued  = " \\\n    "
	pawlEvents = "kubectl get events --field-selector reportingComponent=pawl"
)

func (s *story) create(ctx context.Context) error {
	s.page.chapter(1, "A database of three pods")
	s.page.say("One label hands a StatefulSet to Pawl. The first pods simply come up.")
	s.page.line("")
	for _, command := range []string{"head -n 8 e2e/demo/db.yaml", "kubectl create -f e2e/demo/db.yaml"} {
		if err := s.enter(ctx, command); err != nil {
			return err
		}
	}
	w, err := s.cluster.watch(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	s.page.command(watchCommand + " &")
	s.page.line(header.String())
	return s.follow(ctx, w, row{}, is("Done", "Completed"))
}

func (s *story) goodImage(ctx context.Context) error {
	s.page.chapter(2, "A good image")
	s.page.say("Pawl lowers the partition from 3 to 2, to 1, to 0: each time only when the pod before is at the new " +
		"revision and available. Then it is parked again.")
	s.page.line("")
	err := s.change(ctx, "kubectl set image statefulset/db mysqld=registry.example/db:2", is("Done", "Completed"))
	if err != nil {
		return err
	}
	const partition = "kubectl get events --field-selector reason=PartitionUpdate -o custom-columns=NOTE:.message"
	if err := s.await(ctx, partition, "Rollout 2 took"); err != nil {
		return err
	}
	s.page.line("")
	return s.enter(ctx, partition+continued+"| tail -n 4 | cut -c-95")
}

func (s *story) badImage(ctx context.Context) (err error) {
	s.page.chapter(3, "A bad image")
	s.page.say("One pod is hurt, and the columns say which and why from the first second. After the grace of " + stallGrace +
		" the rollout is Blocked.")
	s.page.line("")
	if s.kept, err = s.identities(ctx); err != nil {
		return err
	}
	err = s.change(ctx, "kubectl set image statefulset/db mysqld=registry.example/db:bad", is("Blocked", ""))
	if err != nil {
		return err
	}
	s.page.line("")
	if err := s.enter(ctx, pods); err != nil {
		return err
	}
	s.page.line("")
	s.page.say("db-1 and db-0 were not touched. What to do is in the message:")
	s.page.line("")
	return s.enter(ctx, "kubectl get rolloutprogress db -o jsonpath='{.status.message}' | fold -s -w 92")
}

func (s *story) revert(ctx context.Context) error {
	s.page.chapter(4, "The way back")
	s.page.say("Without Pawl this is where people delete pods by hand: the StatefulSet controller waits for db-2 to " +
		"become Ready before it replaces it, and db-2 never does.")
	s.page.line("")
	if err := s.change(ctx, "kubectl rollout undo statefulset/db", is("Done", "RolledBack")); err != nil {
		return err
	}
	s.page.line("")
	if err := s.enter(ctx, pods); err != nil {
		return err
	}
	kept, err := s.identities(ctx)
	if err != nil {
		return err
	}
	if kept != s.kept {
		return fmt.Errorf("db-0 and db-1 were to be left alone: they were %s, and are %s", s.kept, kept)
	}
	if err := s.judgeDeletions(); err != nil {
		return err
	}
	s.page.line("")
	s.page.say("By the API server's audit log Pawl deleted one pod, db-2, and no person deleted any. db-1 and db-0 are " +
		"the same pods as before the bad image.")
	return nil
}

// identities tell the pods that must not be replaced from others of the same name.
func (s *story) identities(ctx context.Context) (string, error) {
	return s.cluster.shell(ctx, "kubectl get pod db-0 db-1 -o jsonpath='{.items[*].metadata.uid}'")
}

func (s *story) history(ctx context.Context) error {
	s.page.chapter(5, "The history")
	s.page.say("Each rollout is kept as a record that nobody can change. Number 3 is the bad one.")
	s.page.line("")
	for _, command := range []string{"kubectl pawl history db", "kubectl pawl history db --rollout 3", "kubectl pawl verify db"} {
		if err := s.enter(ctx, command); err != nil {
			return err
		}
		s.page.line("")
	}
	const outcome = "kubectl get rolloutrecords -o jsonpath='{.items[*].page.rollout.outcome}'"
	outcomes, err := s.cluster.shell(ctx, outcome)
	if err != nil {
		return err
	}
	if !strings.Contains(outcomes, "RolledBack") {
		return fmt.Errorf("no record is of a rollout that was rolled back: %s", outcomes)
	}
	s.page.say("The same as Kubernetes Events:")
	s.page.line("")
	if err := s.await(ctx, pawlEvents, "RolledBack: "); err != nil {
		return err
	}
	const columns = "-o custom-columns=TYPE:.type,REASON:.reason,POD:.related.name,NOTE:.message"
	return s.enter(ctx, pawlEvents+continued+columns+continued+"| tail -n 10 | cut -c-95")
}
