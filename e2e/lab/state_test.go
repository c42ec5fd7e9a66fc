package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFreePortsAreDistinctAndFree(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d came twice", port)
		}
		seen[port] = true
		listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTheServerIsTrustedByItsAuthorityOnly(t *testing.T) {
	now := time.Now()
	creds, err := newCredentials(now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(creds.cert, creds.key); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	block, _ := pem.Decode(creds.cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(creds.ca)
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("not valid for %s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.com", CurrentTime: now}); err == nil {
		t.Error("valid for a stranger's name")
	}
	other, err := newCredentials(now)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(other.ca)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", CurrentTime: now}); err == nil {
		t.Error("trusted by another lab's authority")
	}
}

func TestKubeconfigCarriesItsAuthority(t *testing.T) {
	config := string(kubeconfig("https://127.0.0.1:1", "alice", "secret", []byte("PEM")))
	for _, want := range []string{
		`server: "https://127.0.0.1:1"`, "token: secret", `user: "alice"`, "namespace: default",
		"certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte("PEM")),
	} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
}

func TestKubectlReachesNothingButTheLab(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a lab")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(dir, "fake")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho \"$KUBECONFIG|$KUBERC|$*\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := &Lab{Dir: dir}
	info := Info{Binaries: Binaries{ControlPlane: fake}}
	if err := l.writeKubectl(&info); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"": dir + "/kubeconfig", "/home/me/.kube/config": dir + "/kubeconfig",
		dir + "/alice.kubeconfig": dir + "/alice.kubeconfig",
	} {
		cmd := exec.Command(info.Kubectl, "get", "pods")
		cmd.Env = []string{"KUBECONFIG=" + given}
		out, err := cmd.CombinedOutput()
		if want += "|off|kubectl get pods\n"; err != nil || string(out) != want {
			t.Errorf("with KUBECONFIG=%q: %q, want %q (%v)", given, out, want, err)
		}
	}
}

func TestARecordKnowsItsOwnProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := startTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	r := record{Name: "sleep", PID: cmd.Process.Pid, Started: started}
	if !r.alive() {
		t.Error("a running process is not seen")
	}
	stranger := r
	stranger.Started = "another time"
	if stranger.alive() {
		t.Error("a process of the same number is taken for it")
	}
	signal(stranger, syscall.SIGKILL)
	if !r.alive() {
		t.Error("a process of the same number was killed")
	}
	signal(r, syscall.SIGKILL)
	if left := awaitEnd([]record{r}, 5*time.Second); len(left) != 0 {
		t.Error("a zombie counts as alive")
	}
	_ = cmd.Wait()
	if r.alive() {
		t.Error("a dead process counts as alive")
	}
}
