package statemachine

// reasonLine is one line of the table of reasons, and of docs/reasons.md.
type reasonLine struct {
	class class
	means string // what it says of the rollout or the pod
	next  string // what a person does about it, one imperative; empty when nothing has to be done
}

const (
	fixTemplate = "Fix or revert the template; no pod needs deleting."
	lookAtPod   = "Look at the pod's log and events, then fix or revert the template."
	waitsForPod = "Heal this pod; the rollout goes on by itself."
)

// reasons is the table: DESIGN section 6 in one place.
var reasons = map[Reason]reasonLine{
	ReasonCreated:      {means: "The StatefulSet is watched since its creation."},
	ReasonFirstSeen:    {means: "The StatefulSet was there before Pawl; it is watched from now on."},
	ReasonRecreated:    {means: "The StatefulSet was deleted and created again; its pods may be older than it is."},
	ReasonModeChanged:  {means: "The label pawl.dev/mode changed."},
	ReasonLogRestarted: {means: "The RolloutProgress was lost or deleted; the log goes on from the newest RolloutRecord."},

	ReasonNewRevision: {means: "The pods are brought to a new revision; the next pod is about to be released."},
	ReasonRollback:    {means: "The pods are brought back to the stable revision."},
	ReasonAdopted:     {means: "A rollout that others began is taken over."},
	ReasonBringUp:     {means: "The pods of a StatefulSet that were never all available come up. There are no steps."},

	ReasonStarting:         {classSoft, "A pod is being replaced or is starting, as it should.", "Wait for the pod."},
	ReasonPodDead:          {means: "The released pod was dead: replacing it costs nothing, so the health of the others was not asked."},
	ReasonOnlyUnhealthyPod: {means: "The released pod was the only unhealthy one and unready for a minute."},
	ReasonNothingToProtect: {means: "No pod of this StatefulSet was ever Ready, so all are released at once."},
	ReasonForced:           {means: "A person had pods released with spec.force, whatever the health of the others."},
	ReasonRepair:           {means: "A dead pod is deleted so that it comes back at the target; the partition stays."},
	ReasonExternal:         {means: "Someone else released this pod, by writing the partition or by scaling."},

	ReasonAlreadyUpdated: {means: "The next pods run the target already; the partition is lowered past them."},
	ReasonScaled:         {means: "The pods of the step are gone because the StatefulSet was scaled down."},
	ReasonNotInEffect:    {means: "The partition does not release the pods of the step, and what was seen no longer leads to it."},
	ReasonRecovered:      {means: "The pod recovered where it stands and need not be repaired."},
	ReasonFirstReady:     {means: "A pod of a new StatefulSet became Ready for the first time: from now on there is something to protect."},
	ReasonCompleted:      {means: "All pods run the target and are available."},
	ReasonRolledBack:     {means: "All pods are back at the stable revision and available."},
	ReasonOutsideGates:   {means: "Kubernetes finished the rollout without a step, for example by scaling to zero."},
	ReasonUnmanaged:      {means: "The label pawl.dev/mode is gone; Pawl no longer writes to the StatefulSet."},
	ReasonDeleted:        {means: "The StatefulSet is being deleted."},

	ReasonPaused:           {means: "spec.paused of the RolloutProgress is true.", next: "Set spec.paused to false to go on."},
	ReasonObserving:        {means: "The mode is Observe: Pawl reports and writes nothing.", next: "Label the StatefulSet pawl.dev/mode=Enforce to let Pawl step."},
	ReasonAwaitingApproval: {means: "The canary pods of the RolloutPolicy are updated; a person has to approve the revision.", next: "Set spec.approvedRevision of the RolloutProgress."},
	ReasonBaking:           {means: "An updated pod has to be available for the bakeSeconds of the RolloutPolicy before the next step.", next: "Wait until the time is over."},
	ReasonConcurrencyLimit: {means: "As many StatefulSets as the RolloutPolicy allows have a pod being replaced.", next: "Wait until one of them is done."},

	ReasonInvalidImageName:    {classTerminal, "The image name cannot be parsed.", "Correct the image name in the template."},
	ReasonErrImageNeverPull:   {classTerminal, "The image is not on the node and the pull policy is Never.", fixTemplate},
	ReasonUnsupportedStrategy: {classTerminal, "The update strategy is not RollingUpdate.", "Set spec.updateStrategy.type to RollingUpdate, or remove the label pawl.dev/mode."},
	ReasonPVCLost:             {classTerminal, "The volume of a claim of the pod is lost: a new pod could not mount it.", "Restore the volume, or delete the claim to begin with an empty one."},

	ReasonErrImagePull:          {classPull, "The image cannot be pulled.", fixTemplate},
	ReasonImagePullBackOff:      {classPull, "The image cannot be pulled; the kubelet waits before it tries again.", fixTemplate},
	ReasonImageInspectError:     {classPull, "The runtime cannot read the image.", fixTemplate},
	ReasonRegistryUnavailable:   {classPull, "The registry does not answer.", fixTemplate},
	ReasonSignatureValidation:   {classPull, "The signature of the image is not accepted.", fixTemplate},
	ReasonCreateContainerConfig: {classConfig, "The container cannot be configured, for example because a Secret or ConfigMap is missing.", "Create what is missing, or fix or revert the template."},
	ReasonCreateContainer:       {classConfig, "The runtime cannot create the container.", fixTemplate},
	ReasonCrashLoopBackOff:      {classCrash, "A container exits again and again.", lookAtPod},
	ReasonRestartLoop:           {classCrash, "A container was restarted several times in short order.", lookAtPod},
	ReasonOOMKilled:             {classCrash, "A container is killed again and again because it uses more memory than its limit.", "Raise the memory limit, or revert the template."},
	ReasonRunContainerError:     {classCrash, "The container cannot be started.", fixTemplate},
	ReasonStartError:            {classCrash, "The container's command cannot be started.", fixTemplate},
	ReasonPostStartHookError:    {classCrash, "The container's postStart hook fails.", fixTemplate},
	ReasonContainerTerminated:   {classCrash, "A main container ended and is not restarted.", lookAtPod},
	ReasonEvicted:               {classEnded, "The node evicted the pod.", "Relieve the node, or lower what the pod asks for."},
	ReasonQuotaExceeded:         {classRefused, "A ResourceQuota does not let the pod be created.", "Raise the quota, or fix or revert the template."},
	ReasonAdmissionRejected:     {classRefused, "An admission check, or validation, does not let the pod be created.", "Fix or revert the template, or what refuses the pod."},

	ReasonUnschedulable:       {classSoft, "No node takes the pod.", "Make room for the pod, or fix or revert the template."},
	ReasonNotScheduled:        {classSoft, "No scheduler has looked at the pod.", "Check the scheduler and spec.schedulerName."},
	ReasonSchedulingGated:     {classSoft, "The pod has scheduling gates.", "Remove the scheduling gates, or find who should."},
	ReasonVolumeNotReady:      {classSoft, "The pod waits for its volumes, its network or its containers.", "Look at the events of the pod."},
	ReasonPVCPending:          {classSoft, "A claim of the pod is not bound to a volume.", "Look at the events of the claim and at its storage class."},
	ReasonPVCMissing:          {classSoft, "A claim of the pod does not exist.", "Create the claim; one of volumeClaimTemplates comes back by itself."},
	ReasonNotReady:            {classSoft, "The pod runs but is not available.", lookAtPod},
	ReasonReadinessGate:       {classSoft, "The containers are ready, a readiness gate of the pod is not.", "Find who sets the readiness gate."},
	ReasonInitNotFinished:     {classSoft, "An init container is still running.", "Look at the log of the init container."},
	ReasonStuckTerminating:    {classSoft, "The pod is past its grace period and still there.", "Remove what holds it: a finalizer, or its node."},
	ReasonNodeNotReady:        {classSoft, "The node of the pod is not Ready; what the pod's status says is old.", "Bring the node back, or remove it."},
	ReasonNotPromoted:         {classSoft, "All pods run the target, but the StatefulSet controller has not finished.", "Look for a pod that is still terminating."},
	ReasonStatusStale:         {classSoft, "The status of the StatefulSet is of an older generation.", "Check that kube-controller-manager is running."},
	ReasonPartitionNotWritten: {classSoft, "A partition is recorded and cannot be written.", "Look at the events of the StatefulSet for what refuses it."},
	ReasonPartitionContested:  {classSoft, "Someone else keeps writing the partition.", "Stop the other writer, for example a manifest that sets the partition."},
	ReasonRevisionUnstable:    {classSoft, "The update revision changes again and again without a new template.", "Find who changes it; Pawl waits until it holds for a minute."},
	ReasonSupersededPodStuck:  {classSoft, "A dead pod runs a revision that is neither the target nor the current one, and it is not next.", "Delete the pod, which returns at the current revision, or set spec.force."},
	ReasonTotalOutage:         {classSoft, "No pod is healthy, so no step can be safe.", "Revert the template, or set spec.force."},
	ReasonPodMissing:          {classSoft, "The pod does not exist.", "Look at the events of the StatefulSet."},
	ReasonNameTaken:           {classSoft, "A pod that is not of this StatefulSet has the name of one of its pods.", "Delete that pod, or wait until it is gone."},
	ReasonPodTerminated:       {classSoft, "The pod ended and was not replaced.", "Look at the events of the StatefulSet."},
	ReasonPolicyNotFound:      {classSoft, "The label pawl.dev/policy names a RolloutPolicy that does not exist.", "Create the policy, or correct the label."},
	ReasonGateClosed:          {classSoft, "A gate of the RolloutPolicy is closed.", "Heal what the gate looks at."},
	ReasonGateError:           {classSoft, "A gate of the RolloutPolicy cannot be evaluated, which stops steps as if it were closed.", "Correct the gate, or what it reads."},
	ReasonDisruptionBudget:    {classSoft, "A PodDisruptionBudget leaves no room for replacing the next pod.", "Heal the pods that the budget counts, or make room in it."},
	ReasonUnknown:             {classSoft, "The kubelet gives a reason that Pawl does not know.", lookAtPod},
}

// class is the class of the reason; classNone for one that is no stall.
func (r Reason) class() class { return reasons[r].class }

// specific ranks the reasons of one class: a more specific one replaces the one that is shown, never the other way.
func (r Reason) specific() int {
	switch r {
	case ReasonContainerTerminated, ReasonOOMKilled, ReasonRunContainerError, ReasonStartError, ReasonPostStartHookError:
		return 1
	default:
		return 0
	}
}
