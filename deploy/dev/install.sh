#!/bin/sh
# Installs what a list pins into a virtual environment, each file checked against its hash: by uv in a tenth of pip's time, by pip
# where uv cannot be had or finds no way to the packages. setup.sh puts uv into the project's .venv.
#
#   deploy/dev/install.sh FOLDER LIST [options that both know]        as .site deploy/dev/site.txt, or .fuzz fuzz.txt --no-deps
set -eu
folder=$1 list=$2
shift 2
uv="${GPUWARD_UV:-$(cd "$(dirname "$0")/../.." && pwd)/.venv/bin/uv}"
if [ -x "$uv" ]; then
  # Of pip's settings uv reads none: a site's own index is handed over.
  index=$("$folder/bin/python" -m pip config list 2>/dev/null | sed -n "s/^[^=]*\.index-url='\(.*\)'$/\1/p" | tail -1)
  [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
  # A proxy's authority is among the machine's, where it is.
  [ -z "${SSL_CERT_FILE:-${PIP_CERT:-}}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
  # Files of another disk cannot be linked, and a warning each time says nothing new.
  UV_LINK_MODE=copy UV_SYSTEM_CERTS=true "$uv" pip install --quiet --python "$folder/bin/python" --require-hashes "$@" -r "$list" >&2 && exit 0
  echo "gpuward setup: uv could not install $list; again with pip" >&2
fi
exec "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes "$@" -r "$list" >&2
