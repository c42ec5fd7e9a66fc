package statemachine

import "strings"

// refusal is why the pod, which is absent, may not be created: QuotaExceeded, AdmissionRejected, or nothing where
// the Event does not speak of a refusal. An Event never outranks the pod being there.
func refusal(p *Pod) Reason {
	if p.Present || p.Told.Reason != "FailedCreate" {
		return ""
	}
	said := strings.ToLower(p.Told.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("being terminated", "already exists"): // the namespace goes; or it is there and the cache lags
		return ""
	case has("failed calling webhook", "failed to call webhook"): // nobody refused: the webhook is away, perhaps with the pod's node
		return ""
	case has("exceeded quota", "failed quota", "insufficient quota"):
		return ReasonQuotaExceeded
	case has("forbidden", "denied", "webhook", "is invalid", "violates"):
		return ReasonAdmissionRejected
	default:
		return ""
	}
}

// refusedFor is the part of the StatefulSet controller's words that says why; what comes before repeats the names.
func refusedFor(said string) string {
	for _, intro := range []string{"failed error: ", "is forbidden: "} {
		if _, why, found := strings.Cut(said, intro); found {
			said = why
		}
	}
	if before, after, found := strings.Cut(said, " with binding "); found { // of a ValidatingAdmissionPolicy
		if _, why, found := strings.Cut(after, " denied request: "); found {
			said = before + ": " + why
		}
	}
	return said
}
