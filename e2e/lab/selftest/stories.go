package selftest

import "time"

const image = "registry.example/shop/db:"

// Durations leave room for a busy machine: what must hold is well short of what
// was asked for.
var stories = []story{
	{name: "ready", image: image + "10.11", replicas: 3, moments: []moment{{what: "Ready", seen: ready, hold: time.Second}}},
	{name: "parallel", image: image + "10.11", replicas: 3, policy: "Parallel", moments: []moment{{what: "Ready", seen: ready}}},
	{name: "bad", image: image + "bad-2", moments: []moment{
		{what: "a failed pull", seen: waits("ErrImagePull")},
		{what: "back-off", seen: waits("ImagePullBackOff")},
		{what: "another failed pull", seen: waits("ErrImagePull")},
		{what: "back-off again", seen: waits("ImagePullBackOff"), do: setFate("ready")},
		{what: "healed", seen: readyAfter(0), hold: time.Second},
	}},
	{name: "crash", image: image + "crash", moments: []moment{
		{what: "Ready for a moment, for nothing probes it", seen: ready},
		{what: "an exit", seen: ended},
		{what: "a first restart without back-off", seen: func(p pod) bool { return p.restarts() >= 1 }},
		{what: "back-off", seen: waits("CrashLoopBackOff")},
		{what: "a second restart", seen: func(p pod) bool { return p.restarts() >= 2 && p.ended(1) }},
		{what: "back-off again", seen: waits("CrashLoopBackOff"), do: setFate("ready")},
		{what: "healed", seen: readyAfter(3), hold: time.Second},
	}},
	{name: "crash-probed", image: image + "crash", probed: true, moments: []moment{
		{what: "never Ready", seen: func(p pod) bool { return !p.ready() }, hold: 4 * time.Second},
	}},
	{name: "creating", image: image + "creating", moments: []moment{
		{what: "ContainerCreating, and no more", seen: waits("ContainerCreating"), hold: 2 * time.Second, do: setFate("ready")},
		{what: "healed", seen: readyAfter(0), hold: time.Second},
	}},
	{name: "never", image: image + "never", moments: []moment{
		{what: "running, not Ready", hold: 3 * time.Second, seen: func(p pod) bool {
			return unready(p) && p.Status.ContainerStatuses[0].Started && p.Status.Phase == "Running"
		}},
	}},
	{name: "exits", image: image + "exits-800ms", moments: []moment{
		{what: "Ready", seen: ready},
		{what: "an exit", seen: ended},
		{what: "Ready again", seen: readyAfter(1)},
		{what: "another exit", seen: ended},
	}},
	{name: "exits-late", image: image + "exits", notes: map[string]string{"lab.pawl.dev/exit-after": "5s"}, moments: []moment{
		{what: "Ready", seen: ready, hold: 2 * time.Second},
		{what: "an exit", seen: ended},
	}},
	{name: "ready-late", image: image + "1", notes: map[string]string{"lab.pawl.dev/ready-after": "3s"}, moments: []moment{
		{what: "running, not Ready", seen: unready, hold: time.Second},
		{what: "Ready", seen: ready},
	}},
	{name: "ends-late", image: image + "1", notes: map[string]string{"lab.pawl.dev/terminate-after": "4s"}, moments: []moment{
		{what: "Ready", seen: ready, do: deletePod},
		{what: "terminating and still Ready", seen: func(p pod) bool { return deleting(p) && p.ready() }, hold: time.Second},
		{what: "replaced", seen: func(p pod) bool { return !deleting(p) && p.ready() }},
	}},
	{name: "killed", image: image + "1", moments: []moment{
		{what: "Ready", seen: ready, do: killContainer("")},
		{what: "killed", seen: func(p pod) bool { return p.ended(137) && !p.ready() }},
		{what: "restarted", seen: func(p pod) bool {
			return readyAfter(1)(p) && p.Status.ContainerStatuses[0].LastState.Terminated != nil
		}},
	}},
	{name: "silenced", image: image + "1", moments: []moment{
		{what: "Ready", seen: ready, do: silence},
		{what: "Ready again", seen: func(p pod) bool { return p.ready() && p.condition("ContainersReady", "True") }, hold: time.Second},
	}},
	{name: "gated", image: image + "1", gate: "example.com/in-sync", moments: []moment{
		{what: "not Ready, though its containers are", hold: time.Second, do: openGate("example.com/in-sync"), seen: func(p pod) bool {
			return !p.ready() && p.condition("ContainersReady", "True") && p.condition("Ready", "False")
		}},
		{what: "Ready", seen: func(p pod) bool { return p.condition("Ready", "True") }, hold: time.Second},
	}},
	{name: "turned", image: image + "1", moments: []moment{
		{what: "Ready", seen: ready, do: setFate("never")},
		{what: "not Ready", seen: unready, do: setFate("crash")},
		{what: "an exit", seen: ended, do: setFate("bad")},
		{what: "no image", seen: waits("ImagePullBackOff"), do: setFate("ready")},
		{what: "healed", seen: ready, hold: time.Second},
	}},
	{name: "beside", image: image + "1", beside: []string{"registry.example/log:crash"}, moments: []moment{
		{what: "one of two in back-off", seen: func(p pod) bool {
			return p.waits("CrashLoopBackOff") && p.Status.ContainerStatuses[0].Ready && !p.ready()
		}, do: killContainer("db")},
		{what: "its neighbour restarted", seen: func(p pod) bool {
			db := p.Status.ContainerStatuses[0]
			return db.Ready && db.RestartCount == 1
		}},
	}},
	{name: "homeless", image: image + "1", nodes: map[string]string{"kubernetes.io/hostname": "nowhere"}, moments: []moment{
		{what: "left alone, for no node takes it", hold: 2 * time.Second, seen: func(p pod) bool {
			return p.condition("PodScheduled", "False") && p.Spec.NodeName == "" && len(p.Status.ContainerStatuses) == 0
		}},
	}},
}
