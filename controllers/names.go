package controllers

// The keys of structured log lines: whoever filters logs relies on them.
const (
	logNamespace   = "namespace"
	logStatefulSet = "statefulset"
	logSequence    = "sequence"
	logType        = "type"
	logState       = "state"
	logReason      = "reason"
	logPod         = "pod"
	logPartition   = "partition"
	logRevision    = "revision"
	logMessage     = "message"
	logDigest      = "digest"
	logRemedy      = "remedy"
	logKind        = "kind"
)

// reporter is the reportingController of Kubernetes Events and the name of the controller in metrics and logs.
const reporter = "pawl"
