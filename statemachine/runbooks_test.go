package statemachine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// runbook is what docs/runbooks says of a reason beside its line in the table of reasons. Commands take shell variables:
// NAME, NAMESPACE and POD are the labels of the alert, others are named right before they are used.
type runbook struct {
	look []string // commands that show the cause
	do   string   // Markdown; @revert stands for the commands that revert the template
}

const (
	seePod    = `kubectl describe pod "$POD" -n "$NAMESPACE"`
	seeLog    = `kubectl logs "$POD" -n "$NAMESPACE" --all-containers --tail=100`
	seeBefore = `kubectl logs "$POD" -n "$NAMESPACE" --all-containers --tail=100 --previous`
	seeSet    = `kubectl describe statefulset "$NAME" -n "$NAMESPACE"`
	seeEvents = `kubectl get events -n "$NAMESPACE" --field-selector involvedObject.name="$POD"`
	seeClaims = `kubectl get persistentvolumeclaim -n "$NAMESPACE"`
	seeNode   = `kubectl get node "$(kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{.spec.nodeName}')" -o wide`
	seePolicy = `kubectl get rolloutpolicy "$(kubectl get statefulset "$NAME" -n "$NAMESPACE" -o jsonpath='{.metadata.labels.pawl\.dev/policy}' | grep . || echo default)" -o yaml`
	// The object that an operator made the StatefulSet of, which gates ask.
	seeSetOwner = `kubectl get statefulset "$NAME" -n "$NAMESPACE" -o jsonpath='{.metadata.labels} {.metadata.ownerReferences}'`
	seeOwner    = `kubectl get statefulset "$NAME" -n "$NAMESPACE" -o yaml --show-managed-fields`

	revertOrFix = "If it is the template, revert it. Pawl brings the broken pod back by itself, whichever policy the StatefulSet has; " +
		"nobody has to delete it. Where the template comes from git, revert it there, else it comes back.\n\n@revert\n\n" +
		"There is nothing to revert to if `stableRevision` is empty: the pods never all worked. Fix the template and apply it then, as you can in any case: the new rollout begins with this pod."
)

// mendGate changes the expression of a gate.
const mendGate = "```sh\nkubectl patch rolloutpolicy \"$POLICY\" --type=json \\\n  -p '[{\"op\":\"replace\",\"path\":\"/spec/gates/'\"$GATE\"'/expression\",\"value\":\"'\"$EXPRESSION\"'\"}]'\n```"

// triesAgain has the StatefulSet controller look at once, after what had to be done before.
func triesAgain(first string) string {
	return "The StatefulSet controller tries again by itself, with pauses that grow to a quarter of an hour; any change of the " +
		"StatefulSet has it try at once, also one that means nothing:\n\n```sh\n" + first +
		"kubectl annotate statefulset \"$NAME\" -n \"$NAMESPACE\" --overwrite try-again=\"$(date +%s)\"\n```"
}

// runbooks by reason; a stall without one is a fault of the test.
var runbooks = map[Reason]runbook{
	ReasonInvalidImageName:    {[]string{seePod}, revertOrFix},
	ReasonErrImageNeverPull:   {[]string{seePod, seeNode}, "Load the image onto the node, or correct `imagePullPolicy`. " + revertOrFix},
	ReasonUnsupportedStrategy: {[]string{`kubectl get statefulset "$NAME" -n "$NAMESPACE" -o jsonpath='{.spec.updateStrategy}'`}, "Pawl drives RollingUpdate only. Set it, if Pawl is to roll this StatefulSet out, and park the partition in the same write, else Kubernetes begins at once wherever the admission policy is not in force:\n\n```sh\nkubectl patch statefulset \"$NAME\" -n \"$NAMESPACE\" --type=merge \\\n  -p '{\"spec\":{\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":2147483647}}}}'\n```\n\nWith OnDelete a person replaces the pods: then it is none of Pawl's business.\n\n```sh\nkubectl label statefulset \"$NAME\" -n \"$NAMESPACE\" pawl.dev/mode-\n```"},
	ReasonPVCLost:             {[]string{seeClaims, seePod}, "Set `CLAIM` to the claim that the message names. Restore its PersistentVolume from the manifest in your backup, `VOLUME`, without `uid` and `resourceVersion`, under the name that the claim has, and with the uid of the claim in `claimRef`: it is bound again then, and the rollout goes on.\n\n```sh\nkubectl get persistentvolumeclaim \"$CLAIM\" -n \"$NAMESPACE\" -o jsonpath='{.spec.volumeName} {.metadata.uid}'\nkubectl create -f \"$VOLUME\"\n```\n\nTo give the volume up instead, delete the claim and the pod. The pod comes back with an empty volume, so make sure that the others hold its data.\n\n```sh\nkubectl delete persistentvolumeclaim \"$CLAIM\" -n \"$NAMESPACE\" --wait=false\nkubectl delete pod \"$POD\" -n \"$NAMESPACE\"\n```"},

	ReasonErrImagePull:          {[]string{seePod}, "The message has the registry's answer. If the image is there and the registry was in trouble, do nothing: the kubelet tries again. " + revertOrFix},
	ReasonImagePullBackOff:      {[]string{seePod}, "The message has the registry's answer. If the image is there and the registry was in trouble, do nothing: the kubelet tries again, at most five minutes later. " + revertOrFix},
	ReasonImageInspectError:     {[]string{seePod, seeNode}, "The runtime of the node cannot read the image: often a full or broken disk. If it is this node only, cordon it and delete the pod, so that it starts elsewhere. " + revertOrFix},
	ReasonRegistryUnavailable:   {[]string{seePod, seeNode}, "See whether the node reaches the registry. Once it does the kubelet goes on by itself. " + revertOrFix},
	ReasonSignatureValidation:   {[]string{seePod}, "Have the image signed as the policy of the node asks. " + revertOrFix},
	ReasonCreateContainerConfig: {[]string{seePod, `kubectl get secret,configmap -n "$NAMESPACE"`}, "Create the Secret, ConfigMap or key that the message names: the kubelet goes on by itself. " + revertOrFix},
	ReasonCreateContainer:       {[]string{seePod}, revertOrFix},
	ReasonCrashLoopBackOff:      {[]string{seeBefore, seeLog, seePod}, revertOrFix},
	ReasonRestartLoop:           {[]string{seeBefore, seeLog, seePod}, revertOrFix},
	ReasonOOMKilled:             {[]string{seePod, `kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{range .spec.containers[*]}{.name} {.resources.limits.memory}{"\n"}{end}'`}, "Raise the memory limit in the template and apply it. " + revertOrFix},
	ReasonRunContainerError:     {[]string{seePod}, revertOrFix},
	ReasonStartError:            {[]string{seePod}, revertOrFix},
	ReasonPostStartHookError:    {[]string{seePod, seeLog}, revertOrFix},
	ReasonContainerTerminated:   {[]string{seeLog, seePod}, revertOrFix},
	ReasonEvicted:               {[]string{seePod, seeNode}, "Relieve the node, or lower what the pod asks for. Once there is room the StatefulSet controller makes the pod again.\n\n" + revertOrFix},
	ReasonQuotaExceeded:         {[]string{seeSet, `kubectl describe resourcequota -n "$NAMESPACE"`}, "Raise the quota, or free some of it. " + triesAgain("") + "\n\n" + revertOrFix},
	ReasonAdmissionRejected:     {[]string{seeSet, `kubectl get namespace "$NAMESPACE" --show-labels`}, "The message names who refuses. Change that, or the template. " + revertOrFix},

	ReasonUnschedulable:       {[]string{seePod, `kubectl get nodes`}, "Make room: the message says what each node lacks. The rollout goes on once the pod is ready. " + revertOrFix},
	ReasonNotScheduled:        {[]string{seePod, `kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{.spec.schedulerName}'`}, "See that the scheduler of that name runs. " + revertOrFix},
	ReasonSchedulingGated:     {[]string{`kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{.spec.schedulingGates}'`}, "Whoever set the gate has to remove it: find that controller. " + revertOrFix},
	ReasonVolumeNotReady:      {[]string{seeEvents, seePod, seeClaims}, "The Events name what it waits for: a volume that is still attached to another node, a Secret or ConfigMap that is missing, or the network. Provide that; the kubelet goes on by itself. " + revertOrFix},
	ReasonPVCPending:          {[]string{seeClaims, `kubectl describe persistentvolumeclaim -n "$NAMESPACE"`, `kubectl get storageclass`}, "The Events of the claim say why no volume is made: a storage class that does not exist, or a provisioner that is in trouble. Mend that; the scheduler goes on by itself. " + revertOrFix},
	ReasonPVCMissing:          {[]string{seeClaims, seePod}, "Create the claim that the message names: the scheduler goes on by itself. If it is one of the StatefulSet's own (`volumeClaimTemplates`), the StatefulSet controller makes it again by itself: see its Events for why it does not. " + revertOrFix},
	ReasonNotReady:            {[]string{seePod, seeLog}, "The readiness probe fails. See what the probe asks, and the log. If a peer or the primary is the cause, heal that one. " + revertOrFix},
	ReasonReadinessGate:       {[]string{`kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{.spec.readinessGates} {.status.conditions}'`}, "Another controller sets the condition that the gate waits for: find it and see why it does not. " + revertOrFix},
	ReasonInitNotFinished:     {[]string{seePod, seeLog}, "See what the init container waits for. " + revertOrFix},
	ReasonStuckTerminating:    {[]string{`kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{.metadata.deletionTimestamp} {.metadata.finalizers}'`, seeNode}, "If a finalizer holds the pod, mend the controller that should remove it. If there is no such controller any more, take the finalizer off:\n\n```sh\nkubectl patch pod \"$POD\" -n \"$NAMESPACE\" --type=merge -p '{\"metadata\":{\"finalizers\":null}}'\n```\n\nIf none holds it, the kubelet does not end it: see its node. Force the deletion only when you know that the pod no longer runs anywhere: two pods with one volume and one identity destroy a database.\n\n```sh\nkubectl delete pod \"$POD\" -n \"$NAMESPACE\" --force --grace-period=0\n```"},
	ReasonNodeNotReady:        {[]string{seeNode, seePod}, "Bring the node back. Only if it is gone for good, and you are certain that the machine is off, as its pods may still be writing: remove it, so that its pods start elsewhere.\n\n```sh\nkubectl delete node \"$(kubectl get pod \"$POD\" -n \"$NAMESPACE\" -o jsonpath='{.spec.nodeName}')\"\n```"},
	ReasonNotPromoted:         {[]string{`kubectl get pods -n "$NAMESPACE" -o jsonpath='{range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name} {.metadata.finalizers}{"\n"}{end}'`, seeSet}, "All pods run the target. A pod of the StatefulSet that should be gone is still terminating: the second command above names it. Set `POD` to it and do what [StuckTerminating](StuckTerminating.md) says; if a finalizer holds it that nobody will remove:\n\n```sh\nkubectl patch pod \"$POD\" -n \"$NAMESPACE\" --type=merge -p '{\"metadata\":{\"finalizers\":null}}'\n```\n\nIf there is no such pod, see that kube-controller-manager runs."},
	ReasonStatusStale:         {[]string{`kubectl get statefulset "$NAME" -n "$NAMESPACE" -o jsonpath='{.metadata.generation} {.status.observedGeneration}'`, `kubectl get lease kube-controller-manager -n kube-system -o jsonpath='{.spec.renewTime}'`, `kubectl describe resourcequota -n "$NAMESPACE"`}, "The StatefulSet controller has not got through with the StatefulSet since it was changed. See that kube-controller-manager runs. If it does, its log says what keeps it. If that is a ResourceQuota on ControllerRevisions, set `QUOTA` to its name and raise it:\n\n```sh\nkubectl patch resourcequota \"$QUOTA\" -n \"$NAMESPACE\" --type=merge -p '{\"spec\":{\"hard\":{\"count/controllerrevisions.apps\":\"100\"}}}'\n```\n\n" + triesAgain("")},
	ReasonPartitionNotWritten: {[]string{seeSet}, "The Events of the StatefulSet say what refuses the write. If it is a permission, apply the roles again, from a checkout of the version that is installed:\n\n```sh\nkubectl apply -k config/rbac\n```\n\nIf it is a ValidatingAdmissionPolicy, set `POLICY` to its name and have it except the service account of Pawl:\n\n```sh\nkubectl patch validatingadmissionpolicy \"$POLICY\" -p '{\"spec\":{\"matchConditions\":[\n  {\"name\":\"not-pawl\",\"expression\":\"request.userInfo.username != \\\"system:serviceaccount:pawl-system:pawl\\\"\"}]}}'\n```\n\nA webhook takes the same condition (`webhooks[].matchConditions` of its configuration). Pawl tries again by itself."},
	ReasonPartitionContested:  {[]string{seeOwner}, "`managedFields` names who writes `f:partition`. Stop it first: take the partition out of its manifest, or tell it to leave the field alone. That is nothing that a command here could do. Pawl goes on once nobody has written the partition for ten minutes.\n\nIt also goes on with the next template. So as not to wait, have the pods restarted, one after the other. The partition is parked in the same write, else Kubernetes begins at once, from wherever the partition stands, where the admission policy is not in force:\n\n```sh\nkubectl patch statefulset \"$NAME\" -n \"$NAMESPACE\" --type=merge \\\n  -p '{\"spec\":{\"updateStrategy\":{\"rollingUpdate\":{\"partition\":2147483647}},\n    \"template\":{\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/restartedAt\":\"'\"$(date -u +%FT%TZ)\"'\"}}}}}'\n```"},
	ReasonRevisionUnstable:    {[]string{`kubectl get controllerrevision -n "$NAMESPACE" --sort-by=.revision`, seeOwner}, "Something changes the template to and fro, or the StatefulSet controller makes a new revision of the same template. Find who writes the template and stop it: that is nothing that a command here could do. Pawl goes on once the revision holds for a minute; this waits for it:\n\n```sh\nkubectl wait rolloutprogress \"$NAME\" -n \"$NAMESPACE\" --for=condition=Stalled=False --timeout=5m\n```"},
	ReasonSupersededPodStuck:  {[]string{seePod, `kubectl get pods -n "$NAMESPACE" -L controller-revision-hash`}, "The pod is of a rollout that was given up, and it is not its turn. Delete it: it comes back at the current revision.\n\n```sh\nkubectl delete pod \"$POD\" -n \"$NAMESPACE\"\n```"},
	ReasonTotalOutage:         {[]string{`kubectl get pods -n "$NAMESPACE" -o wide`, `kubectl get nodes`}, "No pod is healthy, so no order of steps is safe, and Pawl does not choose one. Heal the database as you would without a rollout. If the template is what broke it:\n\n@revert\n\nPods that are dead at the bad revision come back at the stable one. To have the new revision started on the pods whatever their health, break the glass below."},
	ReasonPodMissing:          {[]string{seeSet, `kubectl get pods -n "$NAMESPACE"`}, "The Events of the StatefulSet say why the pod is not made; without any, see that kube-controller-manager runs. If they say `failed calling webhook`, mend what serves the webhook. If the pod cannot wait for that, have it made unasked: set `WEBHOOK` to the name in the Event, and `CONFIGURATION` to what the first command says has it (for a `mutatingwebhookconfiguration` say so in the second).\n\n```sh\nkubectl get validatingwebhookconfiguration,mutatingwebhookconfiguration -o custom-columns='CONFIGURATION:.metadata.name,WEBHOOKS:.webhooks[*].name'\n```\n\n```sh\nkubectl patch validatingwebhookconfiguration \"$CONFIGURATION\" -p '{\"webhooks\":[{\"name\":\"'\"$WEBHOOK\"'\",\"failurePolicy\":\"Ignore\"}]}'\n```\n\n" + triesAgain("") + "\n\n" + revertOrFix},
	ReasonNameTaken:           {[]string{`kubectl get pod "$POD" -n "$NAMESPACE" -o jsonpath='{.metadata.ownerReferences} {.metadata.labels}'`}, "That pod is not of this StatefulSet. See whose it is, and delete it. " + triesAgain("kubectl delete pod \"$POD\" -n \"$NAMESPACE\"\n")},
	ReasonPodTerminated:       {[]string{seePod, seeSet}, "The pod ended and the StatefulSet controller does not replace it: see its Events and whether kube-controller-manager runs. " + revertOrFix},
	ReasonPolicyNotFound:      {[]string{`kubectl get statefulset "$NAME" -n "$NAMESPACE" -o jsonpath='{.metadata.labels.pawl\.dev/policy}'`, `kubectl get rolloutpolicies`}, "The label `pawl.dev/policy` of the StatefulSet names a RolloutPolicy that is not there. Create it, or correct the label; without the label the policy `default` holds, and the built-in values if there is no such object:\n\n```sh\nkubectl label statefulset \"$NAME\" -n \"$NAMESPACE\" pawl.dev/policy-\n```"},
	ReasonGateClosed:          {[]string{seePolicy, seeSetOwner}, "The message names the gate and the value that it looked at. Heal what that is about: mostly the owner of the StatefulSet, whose operator knows what it waits for. The gate opens by itself then, and the rollout goes on. If the gate asks the wrong question, change it, with `POLICY` the RolloutPolicy and `GATE` its number, counted from 0:\n\n" + mendGate},
	ReasonGateError:           {[]string{seePolicy, seeSetOwner}, "See [GateErrors](GateErrors.md): a gate that cannot be evaluated is closed. The message has the error. Grant what Pawl may not read, or correct the expression, with `POLICY` the RolloutPolicy and `GATE` its number, counted from 0; the rollout goes on by itself:\n\n" + mendGate},
	ReasonDisruptionBudget:    {[]string{`kubectl get poddisruptionbudget -n "$NAMESPACE"`, `kubectl get pods -n "$NAMESPACE" -o wide`}, "The budget that the message names allows no pod to be disrupted, and the next step would disrupt one. Heal the pods that it counts. If it never allows any (`maxUnavailable: 0`, or `minAvailable` as high as the number of pods), nothing can ever be updated under it: give it room, with `BUDGET` its name, or have the RolloutPolicy ignore budgets (`disruptionBudgets: Ignore`).\n\n```sh\nkubectl patch poddisruptionbudget \"$BUDGET\" -n \"$NAMESPACE\" --type=merge -p '{\"spec\":{\"minAvailable\":null,\"maxUnavailable\":1}}'\n```"},
	ReasonUnknown:             {[]string{seePod, seeLog}, "The message has the kubelet's own words. " + revertOrFix},
}

const manager = "**First: is the manager alive?** The time that this prints is less than a minute ago, else what you read is old: see\n" +
	"[ManagerDown](ManagerDown.md).\n\n```sh\nkubectl get lease pawl.pawl.dev -n pawl-system -o jsonpath='{.spec.renewTime}'\n```\n"

const revertCommands = "```sh\nstable=$(kubectl get rolloutprogress \"$NAME\" -n \"$NAMESPACE\" -o jsonpath='{.status.stableRevision}')\n" +
	"number=$(kubectl get controllerrevision \"$stable\" -n \"$NAMESPACE\" -o jsonpath='{.revision}')\n" +
	"kubectl rollout undo statefulset/\"$NAME\" -n \"$NAMESPACE\" --to-revision=\"$number\"\n```"

// Force asks nobody's health. These reasons are none of health, and force has no effect on them.
var deafToForce = []Reason{
	ReasonUnsupportedStrategy, ReasonPartitionContested, ReasonRevisionUnstable, ReasonStatusStale, ReasonNotPromoted,
	ReasonPartitionNotWritten, ReasonPolicyNotFound,
}

const forceIt = `- **Have it released whatever the health.** Needs the verb ` + "`force`" + ` (ClusterRole pawl-force), and holds for this revision
  only. Set ` + "`WHY`" + ` to your reason: it goes into the history with your name.

  ` + "```sh" + `
  revision=$(kubectl get rolloutprogress "$NAME" -n "$NAMESPACE" -o jsonpath='{.status.rollout.toRevision}')
  kubectl patch rolloutprogress "$NAME" -n "$NAMESPACE" --type=merge \
    -p '{"spec":{"force":{"revision":"'"$revision"'","partition":0,"reason":"'"$WHY"'"}}}'
  ` + "```" + `

`

const takeAway = `- **Take the StatefulSet out of Pawl's hands.** Kubernetes goes on, looking at readiness only.

  ` + "```sh" + `
  kubectl label statefulset "$NAME" -n "$NAMESPACE" pawl.dev/mode- &&
  kubectl patch statefulset "$NAME" -n "$NAMESPACE" --type=merge \
    -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'
  ` + "```" + `
`

const deleteIt = `
With the pod management policy OrderedReady Kubernetes waits for a broken pod for ever, also after a revert, and takes none
above it in the meantime. Set ` + "`POD`" + ` to it and delete it: as all are released, it comes back at the template as it is now.

` + "```sh" + `
kubectl delete pod "$POD" -n "$NAMESPACE"
` + "```" + `
`

const handBack = `
Then back to normal. A force need not be taken back. What was taken out of Pawl's hands is handed back once all pods are
there:

` + "```sh" + `
kubectl label statefulset "$NAME" -n "$NAMESPACE" pawl.dev/mode=Enforce
` + "```" + `
`

// breakGlass is how to go on when Pawl is wrong, or too careful.
func breakGlass(r Reason) string {
	const released = takeAway + deleteIt + handBack
	switch {
	case r == ReasonUnsupportedStrategy:
		return "## Break glass\nNothing holds you back here: Pawl writes nothing to a StatefulSet that it cannot roll out.\n"
	case slices.Contains(deafToForce, r):
		return "## Break glass\n" + released
	default:
		return "## Break glass\nPawl holds the other pods back because it cannot see that it is safe to go on. If you know better:\n\n" + forceIt + released
	}
}

const makeSure = "## How to make sure\n```sh\nkubectl get rolloutprogress \"$NAME\" -n \"$NAMESPACE\" -o wide\n```\n\n" +
	"The state leaves Blocked by itself, and ends in Done; `kubectl get rolloutprogress -w` shows it on its way. The alert\nresolves with it.\n"

// page is docs/runbooks/REASON.md.
func page(r Reason) string {
	line, book := reasons[r], runbooks[r]
	commands := append([]string{`kubectl get rolloutprogress "$NAME" -n "$NAMESPACE" -o wide`}, book.look...)
	do := strings.ReplaceAll(book.do, "@revert", revertCommands)
	return fmt.Sprintf("<!-- Generated by make generate; see statemachine/runbooks_test.go. -->\n# %s\n\n%s\n## What it means\n%s Blocked %s.\n"+
		"The pods that are not yet updated are left alone: nothing gets worse by itself.\n\n"+
		"Set `NAME`, `NAMESPACE` and `POD` in your shell: they are the labels statefulset, namespace and pod of the alert.\n\n"+
		"## How to look\n```sh\n%s\n```\n\n## What to do\n%s\n\n%s\n%s",
		r, manager, line.means, blockedWhen(r), strings.Join(commands, "\n"), do, makeSure, breakGlass(r))
}

// TestRunbooks holds docs/runbooks against the tables: a page for every reason that can be Blocked, and no other but
// those that are written by hand.
func TestRunbooks(t *testing.T) {
	g := NewWithT(t)
	byHand := []string{"AdmissionNotInForce", "GateErrors", "LedgerBroken", "ManagerDown", "RolloutWaitingTooLong", "UnknownMode"}
	want := slices.Clone(byHand)
	for r := range reasons {
		if !blocks(r) {
			g.Expect(runbooks).NotTo(HaveKey(r), "nothing to do about it")
			continue
		}
		g.Expect(runbooks).To(HaveKey(r))
		want = append(want, string(r))
		file := filepath.Join("../docs/runbooks", string(r)+".md")
		if *writeDocs {
			g.Expect(os.WriteFile(file, []byte(page(r)), 0o644)).To(Succeed())
			continue
		}
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred(), "run make generate")
		g.Expect(string(text)).To(Equal(page(r)), "run make generate")
	}
	files, err := filepath.Glob("../docs/runbooks/*.md")
	g.Expect(err).NotTo(HaveOccurred())
	var have []string
	for _, f := range files {
		have = append(have, strings.TrimSuffix(filepath.Base(f), ".md"))
	}
	g.Expect(have).To(ConsistOf(want))
}
