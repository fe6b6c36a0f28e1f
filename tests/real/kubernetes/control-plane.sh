#!/bin/bash
# A real Kubernetes control plane on loopback, without containers: etcd, kube-apiserver, kube-controller-manager.
#
#   control-plane.sh start DIR [API_PORT [ETCD_PORT [MANAGER_PORT]]]   free ports where none is given
#   control-plane.sh stop DIR [NAME...]                                ends what the pid files name; DIR stays
#
# start is repeatable: it starts what does not run, on the same ports and data. So the API server is restarted by
#   control-plane.sh stop DIR kube-apiserver; control-plane.sh start DIR
# DIR then holds: admin.kubeconfig, gpuward.kubeconfig (a ServiceAccount that may do what the brain needs, no more),
# gpuward.token and ca.crt (for url, ca_file, token_file), url, audit.log (what gpuward asked, and evictions), log/, *.pid.
# Environment: ETCD (path), API_FLAGS and MANAGER_FLAGS (more flags, e.g. --controllers=-replicaset-controller), TOKEN_S
# (life of gpuward.token, at least 600).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
WAIT_S=90

die() { echo "control-plane: $*" >&2; exit 1; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

alive() { [ -s "$dir/$1.pid" ] && kill -0 "$(cat "$dir/$1.pid")" 2>/dev/null; }

# binary NAME: its path. In $GPUWARD_KUBE_ASSETS or its folder bin, also as NAME.xz, which is unpacked into $KUBE_CACHE
# once; otherwise in PATH.
binary() {
  local assets=${GPUWARD_KUBE_ASSETS:-/nonexistent} cache folder
  cache=${KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuward-kube}
  for folder in "$assets" "$assets/bin"; do
    if [ -x "$folder/$1" ]; then echo "$folder/$1"; return; fi
    if [ -s "$folder/$1.xz" ]; then
      if [ ! -x "$cache/$1" ] || [ "$folder/$1.xz" -nt "$cache/$1" ]; then
        mkdir -p "$cache"
        xz -dc "$folder/$1.xz" > "$cache/$1.$$" && chmod +x "$cache/$1.$$" && mv "$cache/$1.$$" "$cache/$1"
      fi
      echo "$cache/$1"
      return
    fi
  done
  command -v "$1" || die "no $1: neither in GPUWARD_KUBE_ASSETS=${GPUWARD_KUBE_ASSETS:-} nor in PATH"
}

# run NAME FLAG...: in the background, with its pid file and log; nothing when it runs already.
run() {
  local name=$1 path; shift
  alive "$name" && return
  path=$(binary "$name")
  setsid "$path" "$@" >> "$dir/log/$name.log" 2>&1 < /dev/null &
  echo $! > "$dir/$name.pid"
}

# until_true NAME COMMAND...: asks until it succeeds; ends with the log when the process ends or WAIT_S are over.
until_true() {
  local name=$1 end=$((SECONDS + WAIT_S)); shift
  until "$@" > /dev/null 2>&1; do
    alive "$name" || { tail -5 "$dir/log/$name.log" >&2; die "$name has ended"; }
    [ $SECONDS -lt $end ] || { tail -5 "$dir/log/$name.log" >&2; die "$name is not ready after $WAIT_S s"; }
    sleep 0.2
  done
}

# cert NAME SUBJECT [EXTENSIONS]: pki/NAME.key and pki/NAME.crt, signed by our CA.
cert() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/$1.key"
  openssl req -new -key "$pki/$1.key" -subj "$2" -out "$pki/$1.csr"
  openssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 30 -out "$pki/$1.crt" \
    -extfile <(printf 'keyUsage=digitalSignature\nextendedKeyUsage=%s\n' "${3:-clientAuth}") 2> "$dir/log/openssl.log"
}

make_pki() {
  [ -s "$pki/service-account.key" ] && return
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/ca.key"
  openssl req -x509 -new -key "$pki/ca.key" -subj /CN=test-ca -days 30 -out "$pki/ca.crt" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
  cert apiserver /CN=kube-apiserver $'serverAuth\nsubjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc'
  cert admin /O=system:masters/CN=admin
  cert manager /CN=system:kube-controller-manager
  openssl genrsa -out "$pki/service-account.key" 2048 2> "$dir/log/openssl.log"
  cp "$pki/ca.crt" "$dir/ca.crt"
}

# kubeconfig FILE CREDENTIALS: JSON is YAML.
kubeconfig() {
  cat > "$dir/$1" <<END
{"apiVersion": "v1", "kind": "Config", "current-context": "c",
 "clusters": [{"name": "c", "cluster": {"server": "$url", "certificate-authority-data": "$(base64 -w0 "$pki/ca.crt")"}}],
 "users": [{"name": "u", "user": $2}],
 "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
END
  chmod 600 "$dir/$1"
}

by_cert() { echo "{\"client-certificate-data\": \"$(base64 -w0 "$pki/$1.crt")\", \"client-key-data\": \"$(base64 -w0 "$pki/$1.key")\"}"; }

# ask METHOD PATH [JSON]: as administrator.
ask() {
  curl -sS --max-time 10 --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" -X "$1" "$url$2" \
    -H 'Content-Type: application/json' ${3:+-d "$3"}
}
ready() { [ "$(ask GET /readyz)" = ok ]; }
manager_ready() { [ "$(curl -sS --max-time 5 -k "https://127.0.0.1:$manager_port/healthz")" = ok ]; }
has_default_account() { ask GET /api/v1/namespaces/default/serviceaccounts/default | grep -q '"uid"'; }

# What the brain may do, as sites install it.
make_gpuward() {
  HOME=$dir kubectl --kubeconfig="$dir/admin.kubeconfig" apply -f "$(dirname "$0")/../../../deploy/kubernetes/rbac.yaml" > /dev/null
  ask POST /api/v1/namespaces/gpuward/serviceaccounts/gpuward/token "{\"spec\": {\"expirationSeconds\": ${TOKEN_S:-86400}}}" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["status"]["token"])' > "$dir/gpuward.token"
  chmod 600 "$dir/gpuward.token"
  kubeconfig gpuward.kubeconfig "{\"token\": \"$(cat "$dir/gpuward.token")\"}"
}

start() {
  mkdir -p "$pki" "$dir/log"
  chmod 700 "$dir" "$pki"
  [ -s "$dir/ports" ] || echo "${1:-$(free_port)} ${2:-$(free_port)} ${3:-$(free_port)} $(free_port)" > "$dir/ports"
  read -r api_port etcd_port manager_port peer_port < "$dir/ports"
  url=https://127.0.0.1:$api_port
  echo "$url" > "$dir/url"
  make_pki
  kubeconfig admin.kubeconfig "$(by_cert admin)"
  kubeconfig manager.kubeconfig "$(by_cert manager)"
  echo '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "Metadata", "userGroups": ["system:serviceaccounts:gpuward"]},
    {"level": "Metadata", "resources": [{"group": "", "resources": ["pods/eviction"]}]}, {"level": "None"}]}' > "$dir/audit-policy.yaml"

  run etcd --name=test --data-dir="$dir/etcd" --unsafe-no-fsync \
    --listen-client-urls="http://127.0.0.1:$etcd_port" --advertise-client-urls="http://127.0.0.1:$etcd_port" \
    --listen-peer-urls="http://127.0.0.1:$peer_port" --initial-advertise-peer-urls="http://127.0.0.1:$peer_port" \
    --initial-cluster="test=http://127.0.0.1:$peer_port"
  until_true etcd curl -fsS --max-time 2 "http://127.0.0.1:$etcd_port/health"

  # shellcheck disable=SC2086  # flags are words
  run kube-apiserver --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$api_port" \
    --etcd-servers="http://127.0.0.1:$etcd_port" --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/24 \
    --anonymous-auth=false --allow-privileged=true --authorization-mode=RBAC --client-ca-file="$pki/ca.crt" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --cert-dir="$pki" \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/service-account.key" \
    --service-account-signing-key-file="$pki/service-account.key" \
    --audit-policy-file="$dir/audit-policy.yaml" --audit-log-path="$dir/audit.log" ${API_FLAGS:-}
  until_true kube-apiserver ready

  # Nodes are NotReady 8 s after their last Lease. Pods leave tainted nodes by their tolerations (default: 300 s).
  # shellcheck disable=SC2086
  run kube-controller-manager ${MANAGER_FLAGS:-} --kubeconfig="$dir/manager.kubeconfig" \
    --bind-address=127.0.0.1 --secure-port="$manager_port" --cert-dir="$pki" --leader-elect=false \
    --use-service-account-credentials --node-monitor-period=1s --node-monitor-grace-period=8s --node-startup-grace-period=10s \
    --controllers=node-lifecycle-controller,taint-eviction-controller,disruption-controller,pod-garbage-collector-controller,serviceaccount-controller,namespace-controller,garbage-collector-controller,replicaset-controller,daemonset-controller,statefulset-controller,root-ca-certificate-publisher-controller
  until_true kube-controller-manager manager_ready
  until_true kube-controller-manager has_default_account
  [ -s "$dir/gpuward.token" ] || make_gpuward
  echo "$url"
}

stop() {
  local name pid end
  [ $# -gt 0 ] || set -- kube-controller-manager kube-apiserver etcd
  for name; do
    [ -s "$dir/$name.pid" ] || continue
    pid=$(cat "$dir/$name.pid")
    kill "$pid" 2>/dev/null || true
    end=$((SECONDS + 15))
    while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
    rm -f "$dir/$name.pid"
  done
}

case "${1:-}" in
  start | stop)
    [ -n "${2:-}" ] || die "which folder?"
    mkdir -p "$2"
    dir=$(cd "$2" && pwd) pki=$dir/pki
    "$1" "${@:3}" ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
