package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployed runs the managers that a Deployment asks for: where KWOK only says that a pod of Pawl runs, it runs the real
// binary, with the command line and the environment of the pod and a token of its service account, and ends it as a kubelet
// does when the pod is deleted. So that it finds the cluster, a kubeconfig with that token stands for what a kubelet mounts; and
// pods have an address each, which is why they can all have the same ports.
type deployed struct {
	*cluster
	pods watch.Interface
	done chan struct{}

	mu      sync.Mutex
	running map[types.UID]*manager
	all     []*manager
	failed  error
}

// runDeployed looks after the pods of Pawl until end is called.
func (c *cluster) runDeployed(ctx context.Context) (*deployed, error) {
	pods, err := c.alice.Watch(ctx, &corev1.PodList{}, client.InNamespace(pawlNamespace), client.MatchingLabels{"app.kubernetes.io/name": "pawl"})
	if err != nil {
		return nil, fmt.Errorf("watch the pods of Pawl: %w", err)
	}
	d := &deployed{cluster: c, pods: pods, done: make(chan struct{}), running: map[types.UID]*manager{}}
	go func() {
		defer close(d.done)
		for event := range pods.ResultChan() {
			if pod, is := event.Object.(*corev1.Pod); is {
				d.follow(ctx, pod, event.Type == watch.Deleted)
			}
		}
	}()
	return d, nil
}

func (d *deployed) follow(ctx context.Context, pod *corev1.Pod, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.running[pod.UID]
	switch ends := gone || pod.DeletionTimestamp != nil; {
	case ends && m != nil:
		delete(d.running, pod.UID)
		go d.terminate(m)
	case !ends && m == nil && pod.Status.Phase == corev1.PodRunning:
		m, err := d.launch(ctx, pod)
		if err != nil {
			d.failed = err
			return
		}
		d.running[pod.UID] = m
		d.all = append(d.all, m)
	}
}

// launch starts what the container says, as its service account.
func (d *deployed) launch(ctx context.Context, pod *corev1.Pod) (*manager, error) {
	container := pod.Spec.Containers[0]
	if err := d.loginAs(ctx, pod.Spec.ServiceAccountName); err != nil {
		return nil, err
	}
	address, err := free()
	if err != nil {
		return nil, err
	}
	m := &manager{
		log: filepath.Join(d.dir, pod.Name+".log"), program: filepath.Join(d.bin, "pawl"), env: []string{},
		args: append(append(append([]string{}, container.Command...), container.Args...),
			"--kubeconfig", d.kubeconfig(pod.Spec.ServiceAccountName), "--health-probe-address", address, "--metrics-bind-address", "127.0.0.1:0"),
	}
	for _, v := range container.Env {
		m.env = append(m.env, v.Name+"="+v.Value)
	}
	if err := m.start(); err != nil {
		return nil, err
	}
	go d.probe(ctx, m, pod, address)
	return m, nil
}

// probe asks the readiness endpoint until the manager is ready, and has the pod say so: one whose image has a tag that
// begins with never (e2e/lab/README.md) was not Ready before.
func (d *deployed) probe(ctx context.Context, m *manager, pod *corev1.Pod, address string) {
	for {
		select {
		case <-m.done:
			return
		case <-time.After(50 * time.Millisecond):
		}
		answer, err := http.Get("http://" + address + pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Path)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			ready := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"lab.pawl.dev/fate":"ready"}}}`))
			_ = d.alice.Patch(ctx, pod.DeepCopy(), ready) // a pod that is gone meanwhile needs none
			return
		}
	}
}

// free is an address that nobody listens at.
func free() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func (d *deployed) terminate(m *manager) {
	if err := m.stop(syscall.SIGTERM); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.failed = err
	}
}

// now are the managers that run.
func (d *deployed) now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.running)
}

// end ends all of them, and says what went wrong.
func (d *deployed) end() error {
	d.pods.Stop()
	<-d.done
	d.mu.Lock()
	left := d.running
	d.running = nil
	d.mu.Unlock()
	for _, m := range left {
		d.terminate(m)
	}
	return d.failed
}
