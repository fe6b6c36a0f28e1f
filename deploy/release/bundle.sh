#!/bin/sh
# One archive for a site without a network, from the sources of a release and the folder with its packages, into that folder: packages,
# Ansible roles, Kubernetes manifests, documents, bills of materials, and the checksums of all. The same files give the same bytes.
#
#   SOURCE_DATE_EPOCH=SECONDS deploy/release/bundle.sh SOURCES FOLDER          dist.sh does it
#   IMAGES=FOLDER     the OCI images that images.sh has put there, too
set -eu
source=${1:?the sources} out=${2:?the folder with the packages}
: "${SOURCE_DATE_EPOCH:?the time of the commit}"
stop() { echo "gpuward bundle: $1" >&2; exit 1; }

deb=$(basename "$out"/gpuward_*.deb)
[ -f "$out/$deb" ] || stop "$out has no packages: deploy/release/packages.sh"
version=${deb#gpuward_}
name=gpuward-${version%%-*}-$(uname -m)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
mkdir "$scratch/$name"
cp "$out"/gpuward*.deb "$out"/gpuward*.rpm "$out"/gpuward*.cdx.json "$scratch/$name"
[ -z "${IMAGES:-}" ] || cp "$IMAGES"/gpuward-*.oci.tar "$scratch/$name" || stop "$IMAGES has no images: make images"
(cd "$source" && find README.md ARCHITECTURE.md CHANGELOG.md SECURITY.md LICENSE docs \( -name '*.md' -o -name LICENSE \) -type f && find deploy/ansible deploy/kubernetes \( -type f -o -type l \)) > "$scratch/pages"
tar -C "$source" -c --dereference --hard-dereference -T "$scratch/pages" | tar -C "$scratch/$name" -x
(cd "$scratch/$name" && find . -type f ! -name SHA256SUMS | sed 's,^\./,,' | LC_ALL=C sort | xargs sha256sum -- > SHA256SUMS)
tar -C "$scratch" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  -cf "$out/$name.tar" "$name"
