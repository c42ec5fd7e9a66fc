// Package config holds the manifests that Pawl is installed with, so that `pawl run-local` needs no checkout.
package config

import "embed"

// Manifests are the custom resources, the permissions of the manager and the admission policies.
//
//go:embed crd/*.yaml rbac/*.yaml admission/*.yaml
var Manifests embed.FS
