#!/bin/sh
# Is a folder of artifacts what the project has released? Each file has a good signature of somebody in allowed_signers and
# stands in SHA256SUMS with its checksum, and none is missing. Needs ssh-keygen (OpenSSH 8.1) and sha256sum, no network.
#
#   deploy/release/verify.sh FOLDER [ALLOWED_SIGNERS]
#
# Take this script and allowed_signers from a checkout that you trust, not from the folder that you verify.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?which folder? deploy/release/verify.sh FOLDER [ALLOWED_SIGNERS]}
signers=${2:-$here/allowed_signers}
stop() { echo "gpuward verify: NOT GOOD: $1" >&2; exit 1; }

grep -q '^[^#]' "$signers" 2>/dev/null || stop "$signers names nobody who may sign"
signers=$(cd "$(dirname "$signers")" && pwd)/$(basename "$signers")
cd "$folder" || stop "$folder: no such folder"
[ -f SHA256SUMS ] || stop "there is no SHA256SUMS"
[ -n "$(find . -maxdepth 1 -name '*.whl')" ] || stop "there is no wheel"
odd=$(find . -mindepth 1 ! -type f | head -1)
[ -z "$odd" ] || stop "$odd is no regular file"
# The loop below splits names: a file whose name is two good ones with a blank between them would never be looked at itself.
odd=$(LC_ALL=C find . -mindepth 1 \( -name '*[!A-Za-z0-9._+~-]*' -o -name '.*' \) | head -1)
[ -z "$odd" ] || stop "$odd: no file of a release has such a name"
for file in $(find . -maxdepth 1 -type f ! -name '*.sig' | sort); do
  name=${file#./}
  [ -f "$name.sig" ] || stop "$name has no signature"
  who=$(ssh-keygen -Y find-principals -s "$name.sig" -f "$signers" 2>/dev/null | head -1) || who=
  [ -n "$who" ] || stop "$name is signed by nobody in $signers"
  ssh-keygen -q -Y verify -f "$signers" -I "$who" -n gpuward-release -s "$name.sig" < "$name" >/dev/null 2>&1 ||
    stop "$name is not what $who has signed"
  [ "$name" = SHA256SUMS ] || cut -c67- SHA256SUMS | grep -qxF -- "$name" || stop "$name is not in SHA256SUMS"
done
sha256sum --quiet --strict -c SHA256SUMS >/dev/null 2>&1 || stop "a file is missing or not the one in SHA256SUMS"
echo "gpuward verify: good: every file is signed by somebody in $signers"
