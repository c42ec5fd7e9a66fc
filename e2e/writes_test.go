package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// aside are the writes of a manager at which none is killed, and why that is no gap.
var aside = map[string]string{
	"create events":                   retold,
	"patch events":                    retold,
	"create leases":                   leads,
	"update leases":                   leads,
	"create selfsubjectaccessreviews": asks,
	"create subjectaccessreviews":     asks,
	"create tokenreviews":             asks,
	"update rolloutpolicies/status":   "it says for people whether the gates compile; no rollout reads it, and the next manager says it anew",
}

const (
	retold = "it tells of what is recorded already, and nothing is decided by it"
	leads  = "it is about who works and not about what is done; TestS16RollingRestart has the lease handed over in the middle of rollouts"
	asks   = "a question: nothing is stored"
)

// unstruck are the writes among these at which no manager is killed, and that are not left aside for a reason.
func unstruck(writes map[string]int) error {
	var faults []error
	for what, n := range writes {
		if aside[what] == "" && !slices.ContainsFunc(kills, func(k kill) bool { return k.write == what }) {
			faults = append(faults, fmt.Errorf("no manager is killed before and after %q, which Pawl wrote %d times: add it to kills", what, n))
		}
	}
	return errors.Join(faults...)
}

// reportWrites fails if a manager of any story wrote something, in whichever namespace or in none, at which TestKills kills none.
func reportWrites() error {
	if _, err := lab.audit.in("", lab.lab.AuditLog); err != nil {
		return err
	}
	lab.audit.mu.Lock()
	defer lab.audit.mu.Unlock()
	return unstruck(lab.audit.wrote)
}

// stores reports whether a request is meant to change something: a dry run, by which a manager sees whether the admission policies
// are in force, is not.
func (r request) stores() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && !strings.Contains(r.RequestURI, "dryRun=All")
}
