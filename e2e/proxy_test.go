package e2e

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// failpoint is a moment in the life of a manager: a write that it makes, before the API server sees it, or after the API
// server has done it and before the manager hears of it.
type failpoint struct {
	write string // as in the audit log: "patch statefulsets/status"
	after bool
}

func (f failpoint) String() string {
	if f.after {
		return "after " + f.write
	}
	return "before " + f.write
}

// proxy stands between a manager and the API server. It lets everything pass, and strikes the manager at the n-th occurrence
// of a failpoint.
type proxy struct {
	at     failpoint
	nth    int
	strike func(*manager) error // what is done to it; it is killed and started again if nil
	lives  bool                 // and it goes on after it: its request is passed on
	faults *faults              // what else goes wrong on the way; nothing if nil

	server *httptest.Server
	path   string // of the kubeconfig that leads through it
	target atomic.Pointer[http.RoundTripper]
	seeing atomic.Pointer[func(*http.Request)]
	cut    atomic.Bool // nothing passes any more
	waits  atomic.Bool // it does not look for the failpoint yet

	hold atomic.Pointer[hold]

	mu     sync.Mutex
	victim *manager
	seen   int
	failed error       // of the manager that was to be started again
	struck bool        // and it was
	wrote  int         // what was written since
	kept   []time.Time // when a restore came that did not get to the API server
}

// open starts the proxy, if it does not run yet, and returns a kubeconfig that leads through it. The proxy has the
// credentials, those of the manager that was started last: kubeconfigs without TLS have none.
func (p *proxy) open(c *cluster, namespace, kubeconfig string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig of the manager: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return "", fmt.Errorf("connect the proxy: %w", err)
	}
	p.target.Store(&transport)
	if p.server != nil {
		return p.path, nil
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return "", fmt.Errorf("read the address of the API server: %w", err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      p,
		ErrorLog:       log.New(io.Discard, "", 0), // what breaks is meant to
		FlushInterval:  -1,                         // watches
		ModifyResponse: p.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as when a connection breaks
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came, passed := time.Now(), false
		defer func() {
			if !passed {
				p.keeps(r, came)
			}
		}()
		p.passes(r)
		if p.faults.answers(w, r) {
			return
		}
		passed = true
		forward.ServeHTTP(w, r)
	}))
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	through.CurrentContext = "proxy"
	p.path = filepath.Join(c.dir, fmt.Sprintf("%s-proxy-%s.kubeconfig", namespace, p.server.Listener.Addr().(*net.TCPAddr).AddrPort().String()))
	if err := clientcmd.WriteToFile(*through, p.path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of the proxy: %w", err)
	}
	return p.path, nil
}

// RoundTrip passes a request on to the API server.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	return (*p.target.Load()).RoundTrip(r)
}

// passes returns if a request may go on to the API server.
func (p *proxy) passes(r *http.Request) {
	if see := p.seeing.Load(); see != nil {
		(*see)(r)
	}
	if !p.at.after && p.hit(r) {
		p.strikeNow()
		if !p.lives {
			panic(http.ErrAbortHandler)
		}
	}
	p.wait(r)
	if p.cut.Load() {
		panic(http.ErrAbortHandler)
	}
}

// keeps notes a restore that does not get to the API server.
func (p *proxy) keeps(r *http.Request, came time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if writeOf(r) == restores {
		p.kept = append(p.kept, came)
	}
}

// keptBack are the times of those restores.
func (p *proxy) keptBack() []time.Time {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kept)
}

// restores is the write by which Pawl sets status.currentRevision back.
const restores = "patch statefulsets/status"

func (p *proxy) close() {
	if p.server != nil {
		p.server.CloseClientConnections()
		p.server.Close()
	}
}

// hold is one request that the proxy keeps before it passes it on.
type hold struct{ reached, released chan struct{} }

// holds keeps the next write at the failpoint, as an API server that is slow does, until it is released.
func (p *proxy) holds() *hold {
	h := &hold{make(chan struct{}), make(chan struct{})}
	p.hold.Store(h)
	return h
}

func (p *proxy) wait(r *http.Request) {
	if h := p.hold.Load(); h != nil && writeOf(r) == p.at.write && p.hold.CompareAndSwap(h, nil) {
		close(h.reached)
		<-h.released
	}
}

// strikes says which manager to kill.
func (p *proxy) strikes(m *manager) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.victim = m
}

var errStruck = errors.New("the manager is dead")

// answered is asked about each answer of the API server.
func (p *proxy) answered(r *http.Response) error {
	p.count(r)
	if err := p.faults.spoils(r); err != nil {
		return err
	}
	if !p.at.after || r.StatusCode >= 300 || !p.hit(r.Request) {
		return nil
	}
	if p.lives {
		p.strikeNow()
		return nil
	}
	_, _ = io.Copy(io.Discard, r.Body) // it is done
	_ = r.Body.Close()
	p.strikeNow()
	return errStruck
}

// count counts the writes of the manager that was started again.
func (p *proxy) count(r *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	write := writeOf(r.Request)
	if p.struck && r.StatusCode < 300 && write != "" && !strings.HasSuffix(write, " events") {
		p.wrote++
	}
}

// worked says that the manager that was started again has done nothing yet: what there is was there before.
func (p *proxy) worked() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote == 0 {
		return fmt.Errorf("%s: the manager that was started again has written nothing", p.at)
	}
	return nil
}

// hit reports whether this is the request at which the manager dies.
func (p *proxy) hit(r *http.Request) bool {
	if writeOf(r) != p.at.write || p.at.write == "" || p.waits.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	return p.seen == p.nth
}

func (p *proxy) strikeNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.strike != nil {
		p.failed = p.strike(p.victim)
		return
	}
	p.failed = p.victim.die()
	p.struck = p.failed == nil
}

// reached says why the manager was not killed, or not started again.
func (p *proxy) reached() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen < p.nth {
		return fmt.Errorf("%s: seen %d times, and it should have been struck the %d. time", p.at, p.seen, p.nth)
	}
	return p.failed
}

// writeOf is a request as the audit log has it; empty for a read.
func writeOf(r *http.Request) string {
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	_, path, namespaced := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/") // namespace, resource, name, subresource
	switch {
	case verb == "" || !namespaced || len(parts) < 2 || r.URL.Query().Has("dryRun"):
		return ""
	case len(parts) > 3:
		return verb + " " + parts[1] + "/" + parts[3]
	default:
		return verb + " " + parts[1]
	}
}
