#!/bin/sh
# The Pythons for which packages are made, the newest first, one a line: $GPUWARD_PYTHONS, or those of 3.11 to 3.14 that are here.
set -eu
if [ -n "${GPUWARD_PYTHONS:-}" ]; then
  printf '%s\n' $GPUWARD_PYTHONS  # split at its spaces
  exit 0
fi
found=""
for version in 3.14 3.13 3.12 3.11; do
  for python in "python$version" "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version".*/bin/python; do
    "$python" -c '' 2>/dev/null || continue
    found=yes
    echo "$python"
    break
  done
done
[ -n "$found" ] || { echo "gpuward packages: needs Python 3.11 to 3.14: apt-get install python3 (Debian 12 and 13, Ubuntu 24.04)" >&2; exit 1; }
