package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// observer watches the StatefulSets and pods of a namespace from the first write on, and judges safety by them alone.
// A gap in what it saw is a failure: an unseen moment proves nothing.
type observer struct {
	mu    sync.Mutex
	seen  []sighting
	rp    *pawlv1alpha1.RolloutProgress        // the newest version of the one that the story is about; nil while there is none
	logs  map[string][]pawlv1alpha1.Transition // of each name, as they were stored
	known map[string]bool                      // which are in logs
	err   error
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// sighting is one version of one object, in the order of the whole cluster: resource versions are etcd's revisions.
type sighting struct {
	version uint64
	what    watch.EventType
	set     *appsv1.StatefulSet
	pod     *corev1.Pod
}

// observe starts before the namespace has anything in it, so that nothing is missed.
func observe(c client.WithWatch, namespace string) (*observer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &observer{stop: cancel, known: map[string]bool{}, logs: map[string][]pawlv1alpha1.Transition{}}
	for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.PodList{}, &pawlv1alpha1.RolloutProgressList{}} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			cancel()
			return nil, fmt.Errorf("list before watching: %w", err)
		}
		o.ended.Go(func() { o.follow(ctx, c, list, namespace) })
	}
	return o, nil
}

// follow watches from where the list ended, and goes on from the last version when the API server closes the watch.
func (o *observer) follow(ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string) {
	version := list.GetResourceVersion()
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil {
			o.fail(ctx, fmt.Errorf("watch from version %s: %w", version, err))
			return
		}
		for event := range w.ResultChan() {
			if event.Type == watch.Error {
				o.fail(ctx, fmt.Errorf("the watch has a gap after version %s: %w", version, apierrors.FromObject(event.Object)))
				return
			}
			version = o.note(event)
		}
	}
}

func (o *observer) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

func (o *observer) note(event watch.Event) string {
	s := sighting{what: event.Type}
	var version string
	switch obj := event.Object.(type) {
	case *appsv1.StatefulSet:
		s.set, version = obj, obj.ResourceVersion
	case *corev1.Pod:
		s.pod, version = obj, obj.ResourceVersion
	case *pawlv1alpha1.RolloutProgress:
		o.sawProgress(obj, event.Type)
		return obj.ResourceVersion
	default:
		return ""
	}
	s.version, _ = strconv.ParseUint(version, 10, 64)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, s)
	return version
}

func (o *observer) sawProgress(rp *pawlv1alpha1.RolloutProgress, what watch.EventType) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range rp.Status.Transitions {
		key := fmt.Sprint(rp.Name, t.Sequence, t.Time.UnixMicro()) // a log that is lost begins again under numbers that were used
		if !o.known[key] {
			o.logs[rp.Name], o.known[key] = append(o.logs[rp.Name], t), true
		}
	}
	if rp.Name != name {
		return
	}
	if what == watch.Deleted {
		rp = nil
	}
	o.rp = rp
}

// status is the newest that was seen. Asking the API server twenty times a second in every story would be most of its work.
func (o *observer) status() status {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rp == nil {
		return status{}
	}
	return *o.rp.Status.DeepCopy()
}

// stored is the log of a StatefulSet as it was stored, also what was deleted since.
func (o *observer) stored(name string) []pawlv1alpha1.Transition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.logs[name])
}

// names are those of all StatefulSets that were seen.
func (o *observer) names() []string {
	var all []string
	for _, s := range o.history() {
		if s.set != nil && !slices.Contains(all, s.set.Name) {
			all = append(all, s.set.Name)
		}
	}
	return all
}

// end stops watching.
func (o *observer) end() {
	o.stop()
	o.ended.Wait()
}

// history is everything seen so far, in order.
func (o *observer) history() []sighting {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(o.seen), func(a, b sighting) int { return cmp.Compare(a.version, b.version) })
}

// failure is what kept the observer from seeing everything, if anything did.
func (o *observer) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && len(o.seen) == 0 {
		return errors.New("the observer saw nothing")
	}
	return o.err
}
