package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Client speaks to the API server in plain REST: a lab needs too little of it
// to be worth the client libraries.
type Client struct {
	server, token string
	http          *http.Client
}

// StatusError is an answer other than success.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Client speaks as one of the users in Kubeconfigs.
func (i Info) Client(user string) (*Client, error) {
	token, err := os.ReadFile(i.TokenFiles[user])
	if err != nil {
		return nil, fmt.Errorf("read the token of %s: %w", user, err)
	}
	ca, err := os.ReadFile(i.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	// No proxy of the host has a part in this.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return &Client{
		server: i.Server, token: strings.TrimSpace(string(token)),
		http: &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}, nil
}

// Do sends body, if there is one, and decodes the answer into out, if wanted.
// A body is JSON, and for PATCH a merge patch.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) (err error) {
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, reader)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %w", method, path, statusError(response.StatusCode, data))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
	}
	return nil
}

func statusError(code int, data []byte) *StatusError {
	var status struct{ Message string }
	if json.Unmarshal(data, &status) != nil || status.Message == "" {
		status.Message = strings.TrimSpace(string(data))
	}
	return &StatusError{Code: code, Message: status.Message}
}

// IsStatus says whether the API server answered with this code.
func IsStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}
