package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

const pawlUser = "system:serviceaccount:pawl-system:pawl"

// judgeDeletions reads in the audit log who deleted pods: Pawl one, people none. The StatefulSet controller deletes
// those that a step releases, and the kubelet what has ended.
func (s *story) judgeDeletions() error {
	log, err := os.Open(s.cluster.lab.AuditLog)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	var byPawl, byPeople []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		user, pod := deletedPod(lines.Bytes())
		switch {
		case pod == "":
		case user == pawlUser:
			byPawl = append(byPawl, pod)
		case !strings.HasPrefix(user, "system:") && !strings.HasPrefix(user, "lab:"):
			byPeople = append(byPeople, pod)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if !slices.Equal(byPawl, []string{"db-2"}) || len(byPeople) > 0 {
		return fmt.Errorf("pods deleted by Pawl: %v, want db-2 once; by people: %v, want none", byPawl, byPeople)
	}
	return nil
}

// deletedPod is who deleted which pod in the default namespace, by this line of the audit log; empty if it says nothing of it.
func deletedPod(line []byte) (user, pod string) {
	var entry struct {
		Verb string
		User struct{ Username string }
		Ref  struct {
			Resource, Subresource, Namespace, Name string
		} `json:"objectRef"`
		Status struct{ Code int } `json:"responseStatus"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Verb != "delete" && entry.Verb != "deletecollection" ||
		entry.Ref.Resource != "pods" || entry.Ref.Namespace != "default" || entry.Status.Code >= 300 {
		return "", ""
	}
	if entry.Ref.Name == "" {
		entry.Ref.Name = "all"
	}
	return entry.User.Username, entry.Ref.Name
}
