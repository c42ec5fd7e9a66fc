package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// credentials are made afresh for each lab and live in its directory. All are
// PEM.
type credentials struct {
	ca, cert, key   []byte // serving: the authority's certificate, the server's, its key
	accounts        []byte // private key that signs service-account tokens
	accountsPublic  []byte
	validUntil      time.Time
	authoritySerial *big.Int
}

// aMonth is longer than any lab and short enough to be worthless when leaked.
const aMonth = 30 * 24 * time.Hour

func newCredentials(now time.Time) (credentials, error) {
	creds := credentials{validUntil: now.Add(aMonth), authoritySerial: big.NewInt(now.UnixNano())}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return creds, fmt.Errorf("make the authority's key: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: creds.authoritySerial,
		Subject:      pkix.Name{CommonName: "pawl lab"},
		// A clock set back a little must not break a lab.
		NotBefore: now.Add(-time.Hour), NotAfter: creds.validUntil,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return creds, fmt.Errorf("sign the authority: %w", err)
	}
	creds.ca = pemBlock("CERTIFICATE", der)
	if err := creds.serve(authority, authorityKey); err != nil {
		return creds, err
	}
	return creds, creds.signAccounts()
}

// serve makes the API server's own pair, for 127.0.0.1 and the names under
// which pods would know it.
func (c *credentials) serve(authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the server's key: %w", err)
	}
	server := &x509.Certificate{
		SerialNumber: new(big.Int).Add(c.authoritySerial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), authorityKey)
	if err != nil {
		return fmt.Errorf("sign the server: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the server's key: %w", err)
	}
	c.cert, c.key = pemBlock("CERTIFICATE", der), pemBlock("EC PRIVATE KEY", private)
	return nil
}

// signAccounts makes the pair for service-account tokens. It is RSA, as
// kubeadm's is, so that tokens look as they do elsewhere.
func (c *credentials) signAccounts() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make the service-account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode the service-account key: %w", err)
	}
	c.accounts = pemBlock("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	c.accountsPublic = pemBlock("PUBLIC KEY", public)
	return nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
