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
deploy/dev/install.sh "$folder" "$list"
echo "$want" > "$folder/.pins"
