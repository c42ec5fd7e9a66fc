package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// faults are what goes wrong between a manager and the API server. The lot decides, the same for the same seed and requests.
type faults struct {
	writes float64                             // of all writes this part fails in some way,
	reads  float64                             // of all reads that are not watches this one
	breaks time.Duration                       // a watch lasts no longer; 0 is for ever
	late   func(resource string) time.Duration // by how much a watch is; asked for each piece of it

	replay atomic.Pointer[string] // lists of this resource, or of all, that need not be new are the last ones from before

	replayed atomic.Int64 // how many were

	mu    sync.Mutex
	lot   *rand.Rand
	lists map[string]answer
}

type answer struct {
	header http.Header
	body   []byte
}

// fault is one way in which a request fails, and where.
type fault struct {
	name string
	does func(http.ResponseWriter, *http.Request) (answered bool)
}

// before are the faults of which the API server sees nothing, but for the slow ones.
var before = []fault{
	{"409 Conflict", func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost || r.Method == http.MethodGet {
			return false
		}
		return refuse(w, apierrors.NewConflict(schema.GroupResource{Resource: "faults"}, "", errors.New("so the lot decided")))
	}},
	{"429 Too Many Requests", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "1")
		return refuse(w, apierrors.NewTooManyRequests("so the lot decided", 1))
	}},
	{"500 Internal Server Error", func(w http.ResponseWriter, _ *http.Request) bool {
		return refuse(w, apierrors.NewInternalError(errors.New("so the lot decided")))
	}},
	{"connection broken before", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }},
	{"slow", func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(2 * time.Second):
		case <-r.Context().Done():
		}
		return false
	}},
}

const (
	brokenAfter = "connection broken after it was done"
	watchBroken = "watch broken"
	staleList   = "list from before"
)

var errBroken = errors.New("the lot broke the connection")

func refuse(w http.ResponseWriter, err *apierrors.StatusError) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.Status().Code))
	_ = json.NewEncoder(w).Encode(err.Status())
	return true
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// draw is true for one part of all.
func (f *faults) draw(part float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return part > 0 && f.lot.Float64() < part
}

func (f *faults) below(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lot.IntN(n)
}

// answers reports whether a request was answered here.
func (f *faults) answers(w http.ResponseWriter, r *http.Request) bool {
	if f == nil || isWatch(r) {
		return false
	}
	if old, is := f.old(r); is {
		maps.Copy(w.Header(), old.header)
		_, _ = w.Write(old.body)
		return true
	}
	part := f.reads
	if r.Method != http.MethodGet {
		part = f.writes
	}
	if !f.draw(part) {
		return false
	}
	one := before[f.below(len(before))]
	tormented.count(one.name)
	return one.does(w, r)
}

// spoils is asked about each answer of the API server.
func (f *faults) spoils(r *http.Response) error {
	switch {
	case f == nil || r.StatusCode >= http.StatusMultipleChoices:
		return nil
	case isWatch(r.Request):
		f.disturb(r)
		return nil
	case r.Request.Method == http.MethodGet:
		return f.remember(r)
	case f.draw(f.writes / 4):
		tormented.count(brokenAfter)
		_, _ = io.Copy(io.Discard, r.Body) // it is done
		_ = r.Body.Close()
		return errBroken
	default:
		return nil
	}
}

// mayBeOld reports whether a list is one that the API server may answer with what it knew at any time.
func mayBeOld(r *http.Request) bool {
	return r.Method == http.MethodGet && !isWatch(r) && r.URL.Query().Get("resourceVersion") == "0"
}

func (f *faults) old(r *http.Request) (answer, bool) {
	if only := f.replay.Load(); only == nil || !mayBeOld(r) || *only != everything && *only != resourceOf(r) {
		return answer{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a, is := f.lists[r.URL.Path]
	if is {
		f.replayed.Add(1)
		tormented.count(staleList)
	}
	return a, is
}

func (f *faults) remember(r *http.Response) error {
	if !mayBeOld(r.Request) || f.replay.Load() != nil {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists == nil {
		f.lists = map[string]answer{}
	}
	f.lists[r.Request.URL.Path] = answer{r.Header.Clone(), body}
	return nil
}

// disturb makes a watch late, and lets it end early.
func (f *faults) disturb(r *http.Response) {
	by, ends := func() time.Duration { return 0 }, time.Duration(0)
	if f.late != nil {
		by = func() time.Duration { return f.late(resourceOf(r.Request)) }
	}
	if f.breaks > 0 {
		ends = time.Duration(f.below(int(f.breaks)))
	}
	r.Body = delay(r.Body, by, ends)
}

// everything is all resources.
const everything = "everything"

// resourceOf is what a list or a watch is of.
func resourceOf(r *http.Request) string { return path.Base(r.URL.Path) }

// delayed is a stream that is late; its order is kept.
type delayed struct {
	from   io.ReadCloser
	pieces chan piece
	closed chan struct{}
	once   sync.Once
	ends   <-chan time.Time
	rest   []byte
}

type piece struct {
	data []byte
	err  error
	due  time.Time
}

func delay(from io.ReadCloser, by func() time.Duration, ends time.Duration) *delayed {
	d := &delayed{from: from, pieces: make(chan piece, 1024), closed: make(chan struct{})}
	if ends > 0 {
		d.ends = time.After(ends)
	}
	go func() {
		due := time.Time{}
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if next := time.Now().Add(by()); next.After(due) {
				due = next
			}
			select {
			case d.pieces <- piece{data[:n], err, due}:
			case <-d.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return d
}

func (d *delayed) Read(into []byte) (int, error) {
	if len(d.rest) == 0 {
		select {
		case p := <-d.pieces:
			select {
			case <-time.After(time.Until(p.due)):
			case <-d.closed:
				return 0, io.ErrClosedPipe
			}
			if len(p.data) == 0 {
				return 0, p.err
			}
			d.rest = p.data
		case <-d.ends:
			tormented.count(watchBroken)
			return 0, errBroken
		case <-d.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(into, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *delayed) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.from.Close()
}

// someFaults are those of make faults: one write in eight fails and one read in twenty, watches are up to two seconds late
// and last up to twenty.
func someFaults(seed ...any) *faults {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, seed...)
	f := &faults{writes: 1. / 8, reads: 1. / 20, breaks: 20 * time.Second, lot: rand.New(rand.NewPCG(h.Sum64(), 0))}
	f.late = func(string) time.Duration { return time.Duration(f.below(int(2 * time.Second))) }
	return f
}

// tormented counts the faults of all stories.
var tormented = &torments{counts: map[string]int{}}

type torments struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *torments) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// String is the table as it is in docs/reliability.md; empty if nothing went wrong.
func (t *torments) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.counts) == 0 {
		return ""
	}
	lines := []string{"", "| what the API did | times |", "|---|---|"}
	names := make([]string, 0, len(t.counts))
	for name := range t.counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("| %s | %d |", name, t.counts[name]))
	}
	return strings.Join(lines, "\n") + "\n"
}
