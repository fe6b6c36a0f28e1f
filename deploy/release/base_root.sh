#!/bin/sh
# The root that our images begin with: Debian 12's essential packages (no apt), Python and what it needs to run us. Prints the
# archive. Made once in FOLDER (default: .release): give another, or remove it, to take up Debian's updates.
#
#   deploy/release/base_root.sh [FOLDER]       as root, with mmdebstrap
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/.release}
stop() { echo "gpuward images: $1" >&2; exit 1; }
key=$(sha256sum "$0" | cut -c1-16)
made=$folder/base-root-$key.tar
[ ! -s "$made" ] || { echo "$made"; exit 0; }

command -v mmdebstrap >/dev/null 2>&1 || stop "needs mmdebstrap: apt-get install mmdebstrap"
[ "$(id -u)" = 0 ] || stop "needs root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder"
# As of the day of Debian 12: a package's own files keep the times that it gives them.
SOURCE_DATE_EPOCH=1686355200 mmdebstrap --quiet --variant=essential --include=python3.11,libudev1,ca-certificates,tzdata \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +' \
  --customize-hook='find "$1" -xdev -name __pycache__ -prune -exec rm -r {} +' \
  --customize-hook='rm -rf "$1"/var/cache/* "$1"/var/log/* "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/etc/machine-id' \
  --skip=output/dev bookworm "$scratch/base.tar" >"$scratch/said" 2>&1 || stop "no root: $(tail -3 "$scratch/said")"
mv "$scratch/base.tar" "$made.$$"
mv "$made.$$" "$made"
echo "$made"
