package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// bearer asks for a token of a service account beside Pawl's own.
func bearer(ctx context.Context, clients kubernetes.Interface, account string) (string, error) {
	seconds := int64(12 * 3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := clients.CoreV1().ServiceAccounts(pawlNamespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for %s: %w", account, err)
	}
	return token.Status.Token, nil
}

// manager is a manager process that watches one namespace.
type manager struct {
	log     string
	program string
	args    []string
	env     []string // nil is that of the stories

	stopped atomic.Bool // by the story: it stays away

	mu   sync.Mutex // held while it is started or ended
	cmd  *exec.Cmd
	done chan struct{}
}

// stallGrace is short so that a story need not wait half a minute for a verdict.
const stallGrace = 4 * time.Second

// settings are what a story may choose about its manager; the zero value is what most have.
type settings struct {
	account  string   // what it runs as; Pawl's own if empty
	metrics  string   // the address of its metrics; none if empty
	open     bool     // and they are for everybody
	deadline string   // the progress deadline; 2m if empty
	elects   bool     // as one of several replicas
	lease    string   // the namespace of their lease; Pawl's own if empty
	keeps    bool     // RolloutRecords for ever
	anywhere bool     // it works in all namespaces
	also     []string // namespaces beside that of the story
	lists    bool     // it fills its caches by lists, as clients before Kubernetes 1.35 do, and not by watches
	via      *proxy   // what it reaches the API server through; nil if directly
}

// startManager starts the real binary under the token of a service account.
func (c *cluster) startManager(namespace string, generation int, with settings) (*manager, error) {
	account := cmp.Or(with.account, pawlAccount)
	kubeconfig := c.kubeconfig(account)
	if with.via != nil {
		var err error
		if kubeconfig, err = with.via.open(c, namespace, kubeconfig); err != nil {
			return nil, err
		}
	}
	m := &manager{
		log: filepath.Join(c.dir, fmt.Sprintf("%s-manager-%d.log", namespace, generation)), program: filepath.Join(c.bin, "pawl"),
		args: []string{
			"manager", "--kubeconfig", kubeconfig,
			fmt.Sprintf("--leader-elect=%t", with.elects), "--stall-grace", stallGrace.String(), "--progress-deadline", cmp.Or(with.deadline, "2m"),
			"--health-probe-address", "0", "--metrics-bind-address", cmp.Or(with.metrics, "0"), "--log-format", "json",
		},
	}
	if !with.anywhere {
		m.args = append(m.args, "--namespace", strings.Join(append([]string{namespace}, with.also...), ","))
	}
	if with.lists {
		m.env = append(os.Environ(), "KUBE_FEATURE_WatchListClient=false")
	}
	if with.lease != "" {
		m.args = append(m.args, "--leader-election-namespace", with.lease)
	}
	if with.open {
		m.args = append(m.args, "--metrics-secure=false")
	}
	if with.keeps {
		m.args = append(m.args, "--retention-days=0")
	}
	if with.via != nil {
		with.via.strikes(m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m, m.start()
}

// start starts the process; the log goes on if it is not the first.
func (m *manager) start() error {
	out, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the manager's log: %w", err)
	}
	cmd, done := exec.Command(m.program, m.args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, m.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nothing outlives the stories
	if err := cmd.Start(); err != nil {
		_ = out.Close()
		return fmt.Errorf("start the manager: %w", err)
	}
	m.cmd, m.done = cmd, done
	go func() {
		_ = cmd.Wait()
		_ = out.Close()
		close(done)
	}()
	return nil
}

// die kills the process and starts it again, unless the story has stopped it meanwhile.
func (m *manager) die() error {
	if m.stopped.Load() { // it may be waiting for the very write that is struck
		return errStopped
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.cmd.Process.Kill()
	<-m.done
	return m.start()
}

// signal sends a signal and does not wait.
func (m *manager) signal(sig os.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cmd.Process.Signal(sig)
}

// ended reports whether the process is gone.
func (m *manager) ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

var errStopped = errors.New("the story has stopped the manager, so it was not killed")

// stop ends the manager, politely or not, and waits until it is gone.
func (m *manager) stop(sig os.Signal) error {
	m.stopped.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.done:
		return fmt.Errorf("the manager had ended by itself: %s", m.tail())
	default:
	}
	_ = m.cmd.Process.Signal(sig)
	select {
	case <-m.done:
		return nil
	case <-time.After(30 * time.Second): // a write in flight may take 20 s
		_ = m.cmd.Process.Kill()
		<-m.done
		return fmt.Errorf("the manager did not end within 30 s of signal %v", sig)
	}
}

// errors are the lines in which the manager says that something is wrong.
func (m *manager) errors() []string { return m.lines(`"level":"error"`) }

// lines are the lines of the manager's log with this text.
func (m *manager) lines(with string) []string {
	text, _ := os.ReadFile(m.log)
	var lines []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

// tail is the end of the manager's log, for a failing story.
func (m *manager) tail() string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	const most = 6000
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return string(text)
}
