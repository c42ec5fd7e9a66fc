package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
)

// tokenLife is how long a token of the service account is asked for; it is renewed in time.
const tokenLife = 2 * time.Hour

// runLocal installs Pawl into a cluster with a person's credentials, and then works there under its own account only.
func runLocal(ctx context.Context, o options, out io.Writer) (err error) {
	path := os.Getenv("PAWL_KUBECONFIG")
	if path == "" {
		return errors.New("PAWL_KUBECONFIG is not set: set it to the kubeconfig of the cluster to use, or run `make run`")
	}
	person, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read PAWL_KUBECONFIG=%s: %w", path, err)
	}
	fmt.Fprintf(out, "Installing Pawl into %s, with the credentials in %s.\n", person.Host, path)
	if err := install(ctx, person, out); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pawl-")
	if err != nil {
		return fmt.Errorf("make a directory for the credentials: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	client, err := kubernetes.NewForConfig(person)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	token := filepath.Join(dir, "token")
	expires, err := renew(ctx, client, token)
	if err != nil {
		return err
	}
	go keepToken(ctx, client, token, expires)
	o.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(person, token, o.kubeconfig); err != nil {
		return err
	}
	fmt.Fprintf(out, "Running the manager as service account %s/%s (%s). Stop it with Ctrl-C.\n", home, account, o.kubeconfig)
	return manage(ctx, o)
}

// renew asks for a new token and stores it where the client of the manager reads it again by itself.
func renew(ctx context.Context, client kubernetes.Interface, file string) (time.Time, error) {
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	got, err := client.CoreV1().ServiceAccounts(home).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("request a token for %s/%s: %w", home, account, err)
	}
	if err := os.WriteFile(file+".new", []byte(got.Status.Token), 0o600); err != nil { //nolint:gosec // a directory of our own making
		return time.Time{}, fmt.Errorf("store the token: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return time.Time{}, fmt.Errorf("store the token: %w", err)
	}
	return got.Status.ExpirationTimestamp.Time, nil
}

// keepToken renews the token when a third of its life is left, and after a failure every minute.
func keepToken(ctx context.Context, client kubernetes.Interface, file string, expires time.Time) {
	for {
		pause := time.Minute
		if left := time.Until(expires); left > 0 {
			pause = max(pause, left*2/3)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if next, err := renew(ctx, client, file); err == nil {
			expires = next
		} else if ctx.Err() == nil {
			ctrl.Log.Error(err, "cannot renew the token, will try again")
		}
	}
}

// writeKubeconfig names the cluster of the person, but none of their credentials.
func writeKubeconfig(person *rest.Config, token, file string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[home] = &clientcmdapi.Cluster{
		Server: person.Host, TLSServerName: person.ServerName, InsecureSkipTLSVerify: person.Insecure,
		CertificateAuthority: person.CAFile, CertificateAuthorityData: person.CAData,
	}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{TokenFile: token}
	config.Contexts[home] = &clientcmdapi.Context{Cluster: home, AuthInfo: account, Namespace: home}
	config.CurrentContext = home
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}
