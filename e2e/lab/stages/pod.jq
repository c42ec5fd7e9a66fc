# The life of a pod, as one decision: which step comes next, and how soon.
#
# Every stage asks for the same `step` and takes only its own name, so that two
# stages can never be due at once: KWOK would choose between them by lot.

# The fate that an image asks for by its tag; null for an ordinary one.
def tagfate: [capture("^[^@]*:(?<f>bad|crash|creating|never|exits)[^:/@]*(@|$)").f][0];
def tagfates: [.spec.containers[].image | tagfate];

# Only one container is struck: the first whose tag asks for it, else the first.
def struck: ([tagfates | to_entries[] | select(.value != null) | .key][0]) // 0;

def note($name): .metadata.annotations["lab.pawl.dev/" + $name];
def fate: note("fate") // ([tagfates[] | values][0]) // "ready";

def status: .status.containerStatuses[struck];
def probed: .spec.containers[struck].readinessProbe != null;
def neighbourEnded: struck as $struck
  | any(.status.containerStatuses | to_entries[]; .key != $struck and .value.state.terminated != null);
def allReady: all(.status.containerStatuses[]; .ready);

# Someone else sets the conditions that the readiness gates ask for.
def open: .status.conditions as $have
  | all(.spec.readinessGates[]?.conditionType; . as $gate | any($have[]; .type == $gate and .status == "True"));

# Other than its containers, the pod is made not Ready by the node controller,
# when the node falls silent; the kubelet puts that right when it is back.
def published: (allReady and open) as $ready | any(.status.conditions[]; .type == "Ready" and (.status == "True") == $ready);

# Where the struck container stands.
def at:
  if (.status.containerStatuses | length) == 0 then "Unseen"
  elif status.state.waiting then status.state.waiting.reason
  elif status.state.terminated then "Ended"
  else "Running" end;

# A container may be Ready from its first moment when nothing probes it. That
# holds for one about to crash, too: a kubelet publishes it so.
def start:
  if fate == "never" or probed or (fate != "crash" and note("ready-after")) then "start"
  else "start-ready" end;

def running:
  if fate == "crash" or fate == "bad" then "exit"
  elif fate == "exits" and status.ready then "exit"
  elif fate == "never" and status.ready then "unready"
  elif fate != "never" and (allReady | not) then "become-ready"
  elif published | not then "publish"
  else "settled" end;

def step:
  if .metadata.deletionTimestamp then
    # At grace 0 the pod is gone, or waits for a finalizer that is not ours.
    if .metadata.deletionGracePeriodSeconds == 0 then "settled"
    elif .status.phase == "Failed" or .status.phase == "Succeeded" then "remove"
    else "terminate" end
  elif .status.phase == "Failed" or .status.phase == "Succeeded" then "settled"
  elif at == "Unseen" then "create"
  elif neighbourEnded then "revive"
  elif at == "Running" then running
  elif fate == "creating" then "settled" # whatever a test has it wait or end with
  elif fate == "bad" then (if at == "ErrImagePull" then "pull-backs-off" else "pull-fails" end)
  elif at == "Ended" and (fate == "crash" or fate == "exits") and status.restartCount > 0 then "back-off"
  else start end;

# "exits-500ms" says in the tag how long the container holds out.
def tagexit: [.spec.containers[struck].image | capture(":exits-(?<d>[0-9.]+(ms|s|m))(@|$)").d][0];

def delay:
  step as $step
  | if $step == "exit" then
      (if fate == "crash" then "300ms" elif fate == "exits" then note("exit-after") // tagexit // "500ms" else "0s" end)
    elif $step == "pull-fails" then {"ContainerCreating": "200ms", "ImagePullBackOff": "5s"}[at] // "1s"
    elif $step == "pull-backs-off" then "1s"
    elif $step == "back-off" then {"1": "2s", "2": "4s", "3": "8s"}[status.restartCount | tostring] // "10s"
    elif $step == "become-ready" then note("ready-after") // "0s"
    elif $step == "terminate" then note("terminate-after") // "0s"
    elif $step == "revive" then "1s"
    elif $step == "start" or $step == "start-ready" then {"CrashLoopBackOff": "500ms", "Ended": "1s"}[at] // "0s"
    # "terminate" removes the pod itself. This one is for what it did not live to
    # remove; it has to come late, because KWOK deletes by name, and the name
    # soon belongs to the next pod.
    elif $step == "remove" then "2s"
    else "0s" end;
