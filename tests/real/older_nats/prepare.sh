#!/bin/sh
# Installs the older NATS server into the folder that is given, once for each list of versions.
set -eu
folder=$1
list="$(cd "$(dirname "$0")" && pwd)/requirements.txt"
# One at a time: of two that find nothing, each would remove what the other one makes.
exec 9>"$folder.lock"
flock 9
cmp -s "$list" "$folder/installed.txt" 2>/dev/null && exit 0
rm -rf "$folder"
"${PYTHON:-python3}" -m venv "$folder"
"$(dirname "$0")/../../../deploy/dev/install.sh" "$folder" "$list" --no-deps
cp "$list" "$folder/installed.txt"
