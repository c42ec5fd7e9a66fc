// Package e2e tells Pawl's stories on a real control plane: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler, with KWOK in the place of the nodes (e2e/lab). Each story has a file, a namespace, a manager process
// of its own and an independent observer, which judges safety by StatefulSets and pods alone and never by what Pawl
// says of itself.
//
// Run them with make stories, ten times over with make stories COUNT=10, one of them with RUN=S2.
package e2e
