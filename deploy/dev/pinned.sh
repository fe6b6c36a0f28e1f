#!/bin/sh
# An environment of its own for tools that are nothing of what we ship: made once for each list of versions.
#
#   deploy/dev/pinned.sh FOLDER LIST        as .site deploy/dev/site.txt, from the project's root
set -eu
folder=$1 list=$2
want=$(sha256sum "$list")
[ "$(cat "$folder/.pins" 2>/dev/null)" != "$want" ] || exit 0
rm -rf "$folder"
.venv/bin/python -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$list" >&2
echo "$want" > "$folder/.pins"
