// Package config holds the manifests that Pawl is installed with, so that `pawl run-local` needs no checkout.
package config

import "embed"

// Manifests are the custom resources and the permissions of the manager.
//
//go:embed crd/*.yaml rbac/*.yaml
var Manifests embed.FS
