package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// labInfo is what lab up --json prints.
type labInfo struct {
	Server      string            `json:"server"`
	CAFile      string            `json:"caFile"`
	Kubeconfig  string            `json:"kubeconfig"`
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	AuditLog    string            `json:"auditLog"`
	Logs        map[string]string `json:"logs"`
	Kubectl     string            `json:"kubectl"`
}

// cluster is the one lab that all stories share.
type cluster struct {
	lab     labInfo
	bin     string // where make build leaves the binaries
	dir     string
	admin   client.Client
	alice   client.WithWatch // a person with rights, as admission and authorization see one
	clients kubernetes.Interface
	audit   audit

	collecting sync.Once
}

// Pawl's service account, as config/rbac has it.
const (
	pawlNamespace = "pawl-system"
	pawlAccount   = "pawl"
	pawlUser      = "system:serviceaccount:" + pawlNamespace + ":" + pawlAccount
)

// startCluster brings the lab up, installs the CRDs and the roles, and gets the manager a token.
func startCluster(ctx context.Context, dir string) (*cluster, error) {
	c, err := bareCluster(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"../config/crd", "../config/rbac"} {
		if err := c.apply(ctx, folder); err != nil {
			return c, err
		}
	}
	if err := c.established(ctx); err != nil {
		return c, err
	}
	if err := c.apply(ctx, "../config/admission"); err != nil {
		return c, err
	}
	if err := c.exceptBare(ctx); err != nil {
		return c, err
	}
	return c, c.login(ctx)
}

// bareLabel on a namespace keeps the mutating admission policies out of it, so that one lab has stories with them and
// stories without. Only the bindings know; the policies are as they are installed.
const bareLabel = "stories.pawl.dev/bare"

func (c *cluster) exceptBare(ctx context.Context) error {
	patch := client.RawPatch(types.MergePatchType, []byte(
		`{"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":[{"key":"`+bareLabel+`","operator":"DoesNotExist"}]}}}}`))
	for _, name := range []string{"pawl-statefulset", "pawl-rolloutprogress"} {
		binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.admin.Patch(ctx, binding, patch); err != nil {
			return fmt.Errorf("keep the policy out of bare namespaces: %w", err)
		}
	}
	return c.inForce(ctx)
}

// inForce waits until a new StatefulSet comes out parked, and one in a bare namespace does not; and until whoever pauses
// a RolloutProgress is named: a policy takes a moment, and longer for a kind that is new itself.
func (c *cluster) inForce(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{bareLabel: "true"}}}
	if err := c.admin.Create(ctx, ns); err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		with, without := bareSet("default", "1"), bareSet("bare", "1")
		if err := errors.Join(c.alice.Create(ctx, with, client.DryRunAll), c.alice.Create(ctx, without, client.DryRunAll)); err != nil {
			return fmt.Errorf("try the admission policy: %w", err)
		}
		paused := &pawlv1alpha1.RolloutProgress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		paused.Spec.Paused = new(true)
		refused := c.alice.Create(ctx, paused, client.DryRunAll)
		named := paused.Annotations[pawlv1alpha1.ChangedByAnnotation] != ""
		if partition(with) == parked && partition(without) == 0 && refused == nil && named {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(refused, fmt.Errorf("after 30 s the admission policies give partition %d, and %d where they must not look; who paused is named: %t",
				partition(with), partition(without), named))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// bareCluster brings a lab up that has never heard of Pawl.
func bareCluster(ctx context.Context, dir string) (*cluster, error) {
	bin, err := filepath.Abs("../bin")
	if err != nil {
		return nil, fmt.Errorf("find bin: %w", err)
	}
	c := &cluster{bin: bin, dir: dir}
	up := exec.CommandContext(ctx, filepath.Join(bin, "lab"), "up", "--json", "--dir", filepath.Join(dir, "lab"), "--owner-pid", fmt.Sprint(os.Getpid()))
	up.Stderr = os.Stderr
	out, err := up.Output()
	if err != nil {
		return nil, fmt.Errorf("bring the lab up (make build lab-build first): %w", err)
	}
	if err := json.Unmarshal(out, &c.lab); err != nil {
		return nil, fmt.Errorf("read what lab up printed: %w", err)
	}
	return c, c.connect()
}

// labCommand runs the lab's own command on this cluster.
func (c *cluster) labCommand(args ...string) string {
	return run(filepath.Join(c.bin, "lab"), append(args, "--dir", filepath.Join(c.dir, "lab"))...)
}

func (c *cluster) connect() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(pawlv1alpha1.AddToScheme(scheme))
	open := func(user string) (*rest.Config, client.WithWatch, error) {
		cfg, err := clientcmd.BuildConfigFromFlags("", c.lab.Kubeconfigs[user])
		if err != nil {
			return nil, nil, fmt.Errorf("read the kubeconfig of %s: %w", user, err)
		}
		cfg.QPS, cfg.Burst = 200, 400
		k, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
		if err != nil {
			return nil, nil, fmt.Errorf("connect as %s: %w", user, err)
		}
		return cfg, k, nil
	}
	adminConfig, admin, err := open("admin")
	if err != nil {
		return err
	}
	_, alice, err := open("alice")
	if err != nil {
		return err
	}
	c.admin, c.alice = admin, alice
	c.clients, err = kubernetes.NewForConfig(adminConfig)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// apply creates what the manifests in a folder say, as kubectl apply would.
func (c *cluster) apply(ctx context.Context, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find manifests in %s: %w", folder, errors.Join(err, errNone))
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("open manifest: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(f, 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(u); err != nil {
				break // the end
			}
			if u.GetKind() == "" || u.GetKind() == "Kustomization" {
				continue
			}
			if err := c.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("stories"), client.ForceOwnership); err != nil {
				_ = f.Close()
				return fmt.Errorf("apply %s: %w", file, err)
			}
		}
		_ = f.Close()
	}
	return nil
}

var errNone = errors.New("there are none")

// login writes the kubeconfig that the manager runs with: never a person's, always the service account's.
func (c *cluster) login(ctx context.Context) error { return c.loginAs(ctx, pawlAccount) }

// kubeconfig is the file with the token of a service account beside Pawl's own.
func (c *cluster) kubeconfig(account string) string {
	return filepath.Join(c.dir, account+".kubeconfig")
}

func (c *cluster) loginAs(ctx context.Context, account string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pawlNamespace}}
	_ = c.admin.Create(ctx, ns)
	_ = c.admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: pawlNamespace}})
	token, err := bearer(ctx, c.clients, account)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: c.lab.Server, CertificateAuthority: c.lab.CAFile}
	config.AuthInfos["pawl"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "pawl"}
	config.CurrentContext = "lab"
	if err := clientcmd.WriteToFile(*config, c.kubeconfig(account)); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return nil
}

// established waits until the API server serves all kinds, which is a moment after the CRDs are created.
func (c *cluster) established(ctx context.Context) error {
	return until(ctx, "the kinds to be served", func() error {
		return errors.Join(
			c.admin.List(ctx, &pawlv1alpha1.RolloutProgressList{}),
			c.admin.List(ctx, &pawlv1alpha1.RolloutRecordList{}),
			c.admin.List(ctx, &pawlv1alpha1.RolloutPolicyList{}),
		)
	})
}

// until tries again for half a minute, for what the API server does a moment after it was told.
func until(ctx context.Context, what string, try func() error) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait 30 s for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
