#!/bin/sh
# Makes agent.toml of what the join gave and of the ConfigMap. A node joins by a token that it has not used yet; when that one
# does not work, a node that has joined before goes on as it was. Safe to run again; without the Secret too, once joined.
#
#   NODE_NAME=gpu-1 join.sh [DATA [CONFIG [JOIN]]]
set -eu
data=${1:-/var/lib/gpuward-agent} config=${2:-/etc/gpuward} token=${3:-/join}/token
umask 022
cd "$data"
if [ -s "$token" ]; then
  used=$(sha256sum < "$token")
  if [ ! -s joined.toml ] || [ "$used" != "$(cat joined.by 2>/dev/null)" ]; then
    # gpuward's names have no dots.
    if gpuward-agent join - --node "${NODE_NAME%%.*}" --config "$data/joined.toml" < "$token"; then
      echo "$used" > joined.by
    elif [ ! -s joined.toml ]; then
      exit 1
    else
      echo "the join token was not taken: this node goes on by what it has"
    fi
  fi
elif [ ! -s joined.toml ]; then
  echo "this node has not joined, and there is no token: make the Secret gpuward-join (docs/kubernetes.md)" >&2
  exit 1
fi
cat joined.toml "$config/agent.toml" > agent.toml.draft
mv agent.toml.draft agent.toml
chown -R gpuward-agent:gpuward-agent .
