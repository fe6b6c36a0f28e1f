#!/bin/sh
# What gpuward needs on a newer Python, once for each list of versions, in a folder: prepare.sh 3.13 FOLDER
# Where there is no such Python, neither on PATH nor among those of pyenv, there is nothing to do.
set -eu
version=$1 folder=$2
list="$(cd "$(dirname "$0")/../../.." && pwd)/deploy/release/brain.lock"
# One at a time: of two that find nothing, each would remove what the other one makes.
exec 9>"$folder.lock"
flock 9
python=""
for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
  if "$candidate" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  rm -rf "$folder"
  exit 0
fi
cmp -s "$list" "$folder/installed.txt" && "$folder/bin/python" -c '' 2>/dev/null && exit 0
rm -rf "$folder"
"$python" -m venv "$folder"
"$(dirname "$0")/../../../deploy/dev/install.sh" "$folder" "$list"
cp "$list" "$folder/installed.txt"
