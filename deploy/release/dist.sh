#!/bin/sh
# dist/: source archive, wheel, a bill of materials for the agent and one for the brain (CycloneDX), their checksums, and a
# signature for each. Built from the last commit, not from what lies about; the same commit gives the same bytes.
#
#   GPUWARD_SIGNING_KEY=~/.ssh/gpuward-release deploy/release/dist.sh [FOLDER [packages | bundle]]
#
# packages: DEB and RPM too. bundle: these, and one archive of all that a site without a network needs (bundle.sh).
# The key is an Ed25519 SSH key (its public half, where ssh-agent or a hardware token has the other one). Without it nothing
# is signed, and the last line says so.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/dist}
stop() { echo "gpuward dist: $1" >&2; exit 1; }

command -v git >/dev/null 2>&1 || stop "needs git"
[ -z "${GPUWARD_SIGNING_KEY:-}" ] || [ -r "$GPUWARD_SIGNING_KEY" ] ||
  stop "GPUWARD_SIGNING_KEY=$GPUWARD_SIGNING_KEY cannot be read: give the file of an SSH key"
if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then
  stop "$out is not empty: move what it holds away, so that nothing is signed that was not built now"
fi
tools=$("$here/tools.sh")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git -C "$root" archive --prefix=gpuward/ HEAD | tar -x -C "$scratch"
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
mkdir -p "$out"
(cd "$scratch/gpuward" && "$root/.venv/bin/python" -m hatchling build -t sdist -t wheel -d "$out" >/dev/null)
for part in agent brain; do
  name=gpuward-$part
  [ "$part" = agent ] || name=gpuward
  "$tools/cyclonedx-py" requirements "$scratch/gpuward/deploy/release/$part.lock" \
    --pyproject "$scratch/gpuward/pyproject.toml" --mc-type application \
    --spec-version 1.6 --output-reproducible --output-format JSON --validate -o "$out/$name.cdx.json" 2>"$scratch/said" ||
    stop "no bill of materials: $(tail -1 "$scratch/said")"
done
"$root/.venv/bin/python" "$here/npm_components.py" "$out/gpuward.cdx.json" "$scratch/gpuward/brain/console/web/vendor/vendor.json"
case ${2:-} in packages | bundle) "$here/packages.sh" "$out" ;; esac
[ "${2:-}" != bundle ] || "$here/bundle.sh" "$scratch/gpuward" "$out"
(cd "$out" && sha256sum -- * > "$scratch/sums" && mv "$scratch/sums" SHA256SUMS)

if [ -z "${GPUWARD_SIGNING_KEY:-}" ]; then
  echo "gpuward dist: NOT SIGNED (GPUWARD_SIGNING_KEY names no key): $out"
  exit 0
fi
for file in "$out"/*; do
  ssh-keygen -q -Y sign -f "$GPUWARD_SIGNING_KEY" -n gpuward-release "$file" </dev/null 2>"$scratch/said" ||
    stop "$(basename "$file") could not be signed: $(tail -1 "$scratch/said")"
done
echo "gpuward dist: signed: $out"
