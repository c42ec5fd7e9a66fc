package lab

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// user is somebody the API server knows by a static token.
type user struct {
	file   string // of the kubeconfig, without its suffix
	name   string // as audit and admission see it
	groups string
}

// peopleGroup holds those who may do everything because RBAC says so, not
// because they are of system:masters: admission and audit must be seen to work
// on them as on anybody.
const peopleGroup = "lab:people"

// users are the people, and the components that are not served by the
// service-account tokens they make for themselves.
var users = []user{
	{file: "admin", name: "admin", groups: "system:masters"},
	{file: "alice", name: "alice", groups: peopleGroup},
	{file: "bob", name: "bob", groups: peopleGroup},
	{file: "kubelet", name: "lab:kubelet", groups: "system:masters"},
	{file: "controller-manager", name: "system:kube-controller-manager"},
	{file: "scheduler", name: "system:kube-scheduler"},
}

// writeUsers gives every user a token and a kubeconfig of their own, and writes
// the token file of the API server.
func (l *Lab) writeUsers(info *Info, ca []byte) error {
	info.Kubeconfigs, info.TokenFiles = map[string]string{}, map[string]string{}
	var tokens strings.Builder
	for _, user := range users {
		secret := make([]byte, 24)
		_, _ = rand.Read(secret) // never fails
		token := hex.EncodeToString(secret)
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, user.name, user.name, user.groups)

		config, tokenFile := l.path(user.file+".kubeconfig"), l.path("pki", user.file+".token")
		if user.file == "admin" {
			config = l.path("kubeconfig")
			info.Kubeconfig = config
		}
		if err := writeFile(tokenFile, []byte(token), 0o600); err != nil {
			return err
		}
		if err := writeFile(config, kubeconfig(info.Server, user.name, token, ca), 0o600); err != nil {
			return err
		}
		info.Kubeconfigs[user.file], info.TokenFiles[user.file] = config, tokenFile
	}
	return writeFile(l.path("pki", "tokens.csv"), []byte(tokens.String()), 0o600)
}

// kubeconfig carries the authority inside, so that the file can be moved.
func kubeconfig(server, user, token string, ca []byte) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: %q
    certificate-authority-data: %s
users:
- name: %q
  user:
    token: %s
contexts:
- name: lab
  context: {cluster: lab, user: %q, namespace: default}
current-context: lab
`, server, base64.StdEncoding.EncodeToString(ca), user, token, user)
}

// writeKubectl writes a kubectl that cannot reach any cluster but this lab by
// mistake: a KUBECONFIG of the host counts only if it names a file of the lab,
// and neither the host's caches nor its preferences are read.
func (l *Lab) writeKubectl(info *Info) error {
	info.Kubectl = l.path("kubectl")
	script := fmt.Sprintf(`#!/bin/sh
# kubectl for this lab, as admin. As somebody else:
#   KUBECONFIG=%[1]s/alice.kubeconfig %[1]s/kubectl ...   or   --kubeconfig FILE
lab=%[2]s
case "${KUBECONFIG-}" in
"$lab"/*) ;;
*) KUBECONFIG=$lab/kubeconfig ;;
esac
export KUBECONFIG KUBECACHEDIR="$lab/kubectl-cache" KUBERC=off
exec %[3]s kubectl "$@"
`, l.Dir, shellQuote(l.Dir), shellQuote(info.Binaries.ControlPlane))
	return writeFile(info.Kubectl, []byte(script), 0o755)
}

// shellQuote makes one word of a path, whatever is in it.
func shellQuote(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
