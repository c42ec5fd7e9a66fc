package lab

import (
	"fmt"
	"strconv"
)

// The components, by the names they have in status, logs and records.
const (
	watchdog   = "watchdog"
	etcd       = "etcd"
	apiserver  = "kube-apiserver"
	controller = "kube-controller-manager"
	scheduler  = "kube-scheduler"
	kwok       = "kwok"
)

// startOrder lists them as Up starts them: the watchdog before anything that it
// may have to end.
var startOrder = []string{watchdog, etcd, apiserver, controller, scheduler, kwok}

// component is a process of the lab.
type component struct {
	name string
	port int
	args []string
	// Of a program that was added: what it is, and where it was when it was.
	binary, dir string
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// etcdComponent keeps nothing safe: a lab that loses power is made anew.
func (l *Lab) etcdComponent(client, peer int) component {
	clientURL, peerURL := "http://"+loopback(client), "http://"+loopback(peer)
	return component{name: etcd, port: client, args: []string{
		"etcd", "--name=lab", "--data-dir=" + l.path("etcd"), "--unsafe-no-fsync=true", "--log-level=warn",
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=lab=" + peerURL,
	}}
}

func (l *Lab) apiserverComponent(port, etcdPort int) component {
	return component{name: apiserver, port: port, args: []string{
		"kube-apiserver", "--etcd-servers=http://" + loopback(etcdPort),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + l.path("pki", "server.crt"), "--tls-private-key-file=" + l.path("pki", "server.key"),
		"--cert-dir=" + l.path("pki"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + l.path("pki", "accounts.pub"),
		"--service-account-signing-key-file=" + l.path("pki", "accounts.key"),
		"--token-auth-file=" + l.path("pki", "tokens.csv"),
		"--authorization-mode=RBAC", "--anonymous-auth=false",
		// Blocking: the answer to a request is not sent before its line is
		// in the file, so that whoever made it can read it there.
		"--audit-policy-file=" + l.path("audit-policy.yaml"), "--audit-log-path=" + l.path("audit.jsonl"),
		"--audit-log-format=json", "--audit-log-mode=blocking", "--audit-log-maxsize=4096",
		// The endpoint of the kubernetes service would need an address that
		// is not a loopback one, and nobody looks for it.
		"--endpoint-reconciler-type=none",
		"--max-requests-inflight=1600", "--max-mutating-requests-inflight=800", "--profiling=false",
	}}
}

func (l *Lab) controllerComponent() component {
	config := l.path("controller-manager.kubeconfig")
	return component{name: controller, args: []string{
		"kube-controller-manager", "--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false", "--secure-port=0", "--profiling=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.path("pki", "accounts.key"), "--root-ca-file=" + l.path("pki", "ca.crt"),
		"--kube-api-qps=200", "--kube-api-burst=400", "--concurrent-statefulset-syncs=20",
	}}
}

func (l *Lab) schedulerComponent() component {
	config := l.path("scheduler.kubeconfig")
	return component{name: scheduler, args: []string{
		"kube-scheduler", "--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false", "--secure-port=0", "--profiling=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
	}}
}

// kwokComponent serves nothing: without an address KWOK opens no port.
func (l *Lab) kwokComponent() component {
	return component{name: kwok, args: []string{
		"--kubeconfig=" + l.path("kubelet.kubeconfig"), "--config=" + l.path("kwok.yaml"),
		"--manage-all-nodes=true", "--node-ip=127.0.0.1", "--cidr=10.244.0.0/16", "--server-address=",
	}}
}

func (l *Lab) watchdogComponent(owner int, started string) component {
	return component{name: watchdog, args: []string{WatchdogCommand, l.Dir, strconv.Itoa(owner), started}}
}

// auditPolicy keeps who changed what, and leaves out what nobody asks for. Of
// patches of StatefulSets it keeps the body: who wrote which partition. Of the
// accounts in the namespace pawl-system it keeps every request, reads too, which
// shows what rights they use, and the body of their leases and of what they delete
// pods with: who held which when, and which pod of that name went.
// Secrets and tokens would be no worse than anything else, whose bodies it does
// not keep.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: Request
  verbs: [patch]
  resources:
  - {group: apps, resources: [statefulsets, statefulsets/status]}
- level: Request
  userGroups: ["system:serviceaccounts:pawl-system"]
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
- level: Request
  verbs: [delete]
  userGroups: ["system:serviceaccounts:pawl-system"]
  resources:
  - {group: "", resources: [pods]}
- level: Metadata
  userGroups: ["system:serviceaccounts:pawl-system"]
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: authorization.k8s.io}
  - {group: authentication.k8s.io, resources: [tokenreviews]}
  - {group: "", resources: [events]}
  - {group: events.k8s.io, resources: [events]}
- level: Metadata
`
