#!/bin/sh
# Makes .venv with the pinned dependencies (requirements.lock) and both commands. Safe to run again: it does
# nothing when the lock file and pyproject.toml have not changed since the last run.
set -eu
cd "$(dirname "$0")/../.."

stop() { echo "gpuward setup: $1" >&2; exit 1; }

suits='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'
python=${PYTHON:-}
if [ -z "$python" ]; then
  for candidate in python3.12 python3.11 python3 python3.13 python3.14; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$suits" 2>/dev/null; then
      python=$candidate
      break
    fi
  done
fi
[ -n "$python" ] || stop "needs Python 3.11 to 3.14: apt-get install python3 (Debian 12, Ubuntu 24.04), or python3.11 (Ubuntu 22.04)"
"$python" -c "$suits" || stop "PYTHON=$python is not 3.11 to 3.14"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  stop "needs the venv module: apt-get install python$version-venv"

case $version in 3.11 | 3.12)  # newer ones have no durable-rules (docs/decisions/0034-a-plain-matcher-for-newer-pythons.md)
  command -v "${CC:-cc}" >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 ||
    stop "needs a C compiler to build durable-rules: apt-get install gcc"
  "$python" -c 'import sys, sysconfig, pathlib; sys.exit(not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists())' ||
    stop "needs the Python headers to build durable-rules: apt-get install python$version-dev"
  echo 'int main(void){return 0;}' | "${CC:-cc}" -x c -o /dev/null - 2>/dev/null ||
    stop "the C compiler cannot link a program: apt-get install libc6-dev"
  ;;
esac

want=$("$python" - <<'PY'
import hashlib, pathlib, sys
data = b"".join(pathlib.Path(f).read_bytes() for f in ("requirements.lock", "pyproject.toml"))
print(hashlib.sha256(data + sys.version.encode()).hexdigest())
PY
)
if [ -f .venv/.gpuward-setup ] && [ "$(cat .venv/.gpuward-setup)" = "$want" ] && .venv/bin/python -c '' 2>/dev/null; then
  exit 0
fi
echo "gpuward setup: building .venv with $python $version (once)"
rm -rf .venv
"$python" -m venv .venv
# uv first, as it is pinned there too: the rest takes a tenth of pip's time. Where it cannot be had, pip does all.
pins=$(mktemp)
awk '/^[a-z]/ { ours = /^uv==/ } ours' requirements.lock > "$pins"
.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$pins" ||
  echo "gpuward setup: no uv for this machine: pip installs, in a minute" >&2
rm -f "$pins"
deploy/dev/install.sh .venv requirements.lock
.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
echo "$want" > .venv/.gpuward-setup
