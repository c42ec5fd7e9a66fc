#!/usr/bin/env bash
# Runs the image of Pawl in containerd against a lab: with the account that config/rbac makes, the token where a kubelet
# mounts it, and confined as the Deployment says. Pawl has to become ready and bring a StatefulSet up.
set -euo pipefail
archive=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in containerd ctr runc jq curl; do
  command -v "$tool" >/dev/null || { echo "there is no $tool: apt-get install containerd runc jq curl" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "containerd takes root" >&2; exit 1; }

dir=$(mktemp -d)
containerd=
finish() {
  status=$?
  if [ -n "$containerd" ]; then
    ((status == 0)) || { cat "$dir/pawl.log"; tail -n 5 "$dir/containerd.log"; } >&2
    ctr task kill -s SIGTERM pawl 2>/dev/null && sleep 1 || true
    ctr task kill -s SIGKILL pawl 2>/dev/null || true
    ctr task delete -f pawl 2>/dev/null || true
    ctr container delete pawl 2>/dev/null || true
    kill "$containerd" && wait "$containerd" || true
  fi
  bin/lab down --dir "$dir/lab" >/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT
ctr() { command ctr --address "$dir/containerd.sock" --namespace pawl "$@"; }

bin/lab up --json --dir "$dir/lab" --owner-pid $$ >"$dir/lab.json"
server=$(jq -r .server "$dir/lab.json")
export PATH="$dir/lab:$PWD/bin:$PATH"
kubectl apply -k config/default >/dev/null
mkdir "$dir/account"
kubectl create token pawl -n pawl-system >"$dir/account/token"
cp "$(jq -r .caFile "$dir/lab.json")" "$dir/account/ca.crt"
printf pawl-system >"$dir/account/namespace"
chmod -R a+rX "$dir/account" "$dir"

printf 'version = 2\nroot = "%s/root"\nstate = "%s/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "%s/containerd.sock"\n' \
  "$dir" "$dir" "$dir" >"$dir/containerd.toml"
containerd --config "$dir/containerd.toml" >"$dir/containerd.log" 2>&1 &
containerd=$!
for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.1; done

ctr images import --snapshotter native "$archive"
image=$(ctr images list -q)
port=$((20000 + RANDOM % 10000))
drop=() # all that containerd would give
for capability in CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE; do
  drop+=(--cap-drop "CAP_$capability")
done
ctr run --snapshotter native --net-host --read-only --seccomp "${drop[@]}" \
  --env "KUBERNETES_SERVICE_HOST=$(sed -E 's#https://([^:]+):.*#\1#' <<<"$server")" --env "KUBERNETES_SERVICE_PORT=${server##*:}" \
  --mount "type=bind,src=$dir/account,dst=/var/run/secrets/kubernetes.io/serviceaccount,options=rbind:ro" \
  "$image" pawl /pawl manager --health-probe-address "127.0.0.1:$port" --metrics-bind-address 127.0.0.1:0 >"$dir/pawl.log" 2>&1 &

for _ in $(seq 150); do curl -fsS "http://127.0.0.1:$port/readyz" >/dev/null 2>&1 && break; sleep 0.2; done
curl -fsS "http://127.0.0.1:$port/readyz"
kubectl apply -k config/samples
kubectl pawl wait web --timeout 2m

pid=$(ctr task list | awk '$1 == "pawl" {print $2}')
confined=$(awk '/^(Uid|Gid|CapEff|CapBnd|Seccomp|NoNewPrivs):/ {print $1, $2}' "/proc/$pid/status")
echo "$confined"
for want in "Uid: 65532" "Gid: 65532" "CapEff: 0000000000000000" "CapBnd: 0000000000000000" "Seccomp: 2" "NoNewPrivs: 1"; do
  grep -qx "$want" <<<"$confined" || { echo "it is not confined: want $want" >&2; exit 1; }
done
grep -E ' / [^ ]+ ro[, ]' "/proc/$pid/mountinfo" >/dev/null || { echo "its root can be written" >&2; exit 1; }
echo "the image runs, and is confined as the Deployment says"
