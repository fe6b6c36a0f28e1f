#!/bin/sh
# OCI images of brain and agent, from the last commit (docs/kubernetes.md): build/gpuward-brain.oci.tar and gpuward-agent.oci.tar.
# The same commit on the same base gives the same digest. As root, with buildah; no registry is asked but for a BASE of yours.
#
#   deploy/release/images.sh [FOLDER]
#   BASE=registry.example.com/debian:12-python     what they begin with instead of our own root (base_root.sh): one with
#                                                  /usr/bin/python3.11 to 3.14, libudev1, setpriv and the system's CAs
#   BASE_ROOT=FILE                                 such a root as an archive, made before
#   VENDOR_URL=https://git.example.com/gpuward     where the source is: the label org.opencontainers.image.source
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/build}
stop() { echo "gpuward images: $1" >&2; exit 1; }
for tool in buildah git dpkg-deb; do command -v $tool >/dev/null 2>&1 || stop "needs $tool: apt-get install $tool"; done
[ "$(id -u)" = 0 ] || stop "needs root"

# Nobody else's: 65520 to 65533 is what neither systemd nor distributions give to anybody.
brain_user=65530 agent_user=65531
# What gpuward-agent.service gives the agent: its user, three rights, and no way to more. In a privileged container too.
rights=syslog,sys_ptrace,dac_read_search
plus=+$(echo $rights | sed 's/,/,+/g')

scratch=$(mktemp -d)
export STORAGE_DRIVER="${STORAGE_DRIVER:-overlay}"
buildah() { command buildah --root "$scratch/storage" --runroot "$scratch/run" "$@"; }
ended() { umount "$scratch/storage/overlay" 2>/dev/null || :; rm -rf "$scratch"; }
trap ended EXIT
umask 022

SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
revision=$(git -C "$root" rev-parse HEAD)
version=$("$root/.venv/bin/python" -c 'import sys, tomllib; print(tomllib.load(sys.stdin.buffer)["project"]["version"])' < "$root/pyproject.toml")
# Debian 12 has one Python; a base of a site's own may have any.
[ -n "${BASE:-}" ] || export GPUWARD_PYTHONS="${GPUWARD_PYTHONS:-/usr/bin/python3.11}"
GPUWARD_FORMATS=deb "$here/packages.sh" "$scratch/packages" >/dev/null

if [ -n "${BASE:-}" ]; then
  base=$BASE
  buildah pull -q "$base" >/dev/null || stop "$base cannot be had"
else
  archive=${BASE_ROOT:-$("$here/base_root.sh")}
  container=$(buildah from scratch)
  buildah add -q "$container" "$archive" / >/dev/null
  base=localhost/gpuward-base
  buildah commit -q --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" "$base" >/dev/null
fi

# image PART PACKAGE USER: what the package holds on top of the base, with an account and the folders that it writes to.
image() {
  part=$1 package=$2 user=$3
  tree=$scratch/$part
  mkdir "$tree"
  dpkg-deb -x "$scratch"/packages/"$package"_*.deb "$tree"
  rm -rf "$tree/usr/lib/systemd" "$tree/usr/lib/sysusers.d" "$tree/usr/share/$package"/*.conf
  mkdir -p "$tree/etc/gpuward" "$tree/var/lib/$package"
  cp "$root/LICENSE" "$tree/usr/share/doc/$package/LICENSE"
  container=$(buildah from --pull-never "$base")
  mounted=$(buildah mount "$container")
  for file in passwd group; do cp -p "$mounted/etc/$file" "$tree/etc/$file"; done
  echo "$package:x:$user:$user:gpuward:/var/lib/$package:/usr/sbin/nologin" >> "$tree/etc/passwd"
  echo "$package:x:$user:" >> "$tree/etc/group"
  if [ "$part" = agent ]; then
    # NVML of the machine's driver, wherever it is mounted (deploy/kubernetes/agent); a link that leads nowhere is passed over.
    for place in run/nvidia/driver/usr/lib/x86_64-linux-gnu run/nvidia/driver/usr/lib64 run/nvidia/driver/usr/lib/aarch64-linux-gnu \
      host/usr/lib/x86_64-linux-gnu host/usr/lib64 host/usr/lib/aarch64-linux-gnu; do
      folder=$tree/usr/lib/gpuward-agent/nvidia/$place
      mkdir -p "$folder"
      ln -s "/$place/libnvidia-ml.so.1" "$folder/libnvidia-ml.so.1"
      paths=${paths:+$paths:}/usr/lib/gpuward-agent/nvidia/$place
    done
  fi
  chown -h -R 0:0 "$tree"
  chown "$user:$user" "$tree/var/lib/$package"
  chmod 0700 "$tree/var/lib/$package"
  find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  tar -C "$tree" --sort=name --numeric-owner -cf "$tree.tar" .
  buildah umount "$container" >/dev/null
  buildah add -q "$container" "$tree.tar" / >/dev/null
  if [ "$part" = brain ]; then
    buildah config --user "$user:$user" --entrypoint '["/usr/bin/gpuward"]' --cmd run \
      --port 4222 --port 8470 --workingdir /var/lib/gpuward --env HOME=/var/lib/gpuward "$container"
  else
    buildah config --user 0:0 --entrypoint "[\"/usr/bin/setpriv\", \"--reuid=$user\", \"--regid=$user\", \"--clear-groups\", \"--no-new-privs\", \
\"--inh-caps=-all,$plus\", \"--ambient-caps=-all,$plus\", \"--bounding-set=-all,$plus\", \"/usr/bin/gpuward-agent\"]" \
      --cmd run --workingdir /var/lib/gpuward-agent --env HOME=/var/lib/gpuward-agent --env LD_LIBRARY_PATH="$paths" "$container"
  fi
  buildah config --stop-signal SIGTERM --env LANG=C.UTF-8 \
    --label org.opencontainers.image.title="gpuward $part" \
    --label org.opencontainers.image.description="$(dpkg-deb -f "$scratch"/packages/"$package"_*.deb Description | head -1 | sed 's/^ *//')" \
    --label org.opencontainers.image.version="$version" \
    --label org.opencontainers.image.revision="$revision" \
    --label org.opencontainers.image.source="${VENDOR_URL:-https://gpuward.invalid}" \
    --label org.opencontainers.image.licenses=Apache-2.0 \
    --label org.opencontainers.image.created="$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" \
    "$container"
  buildah commit -q --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" "gpuward/$part:$version" >/dev/null
  rm -f "$out/gpuward-$part.oci.tar"
  buildah push -q "gpuward/$part:$version" "oci-archive:$out/gpuward-$part.oci.tar:gpuward/$part:$version"
}

mkdir -p "$out"
image brain gpuward $brain_user
image agent gpuward-agent $agent_user
echo "gpuward images: $version: $(cd "$out" && ls -sh gpuward-brain.oci.tar gpuward-agent.oci.tar | awk '{ printf "%s (%s) ", $2, $1 }')in $out"
