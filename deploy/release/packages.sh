#!/bin/sh
# Packages of agent and brain, DEB and RPM, with all libraries that they need (docs/install.md). Built from the last commit; the
# same commit gives the same bytes, with the same Pythons and C compiler.
#
#   deploy/release/packages.sh [FOLDER [PACKAGE]]                  default: dist, and both: gpuward-agent gpuward
#   GPUWARD_FORMATS="deb" ...                                      only these
#   GPUWARD_PYTHONS="/opt/python/bin/python3.12 python3.11" ...    for which Pythons; default: those of 3.11 to 3.14 that are here
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/dist}
stop() { echo "gpuward packages: $1" >&2; exit 1; }

pythons=$("$here/pythons.sh") PYTHON_DEB="" PYTHON_RPM=""
versions=$(for python in $pythons; do "$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; done | tr '\n' ' ')
for version in $versions; do  # the first that is there will do
  PYTHON_DEB="${PYTHON_DEB:+$PYTHON_DEB | }python$version"
  PYTHON_RPM="${PYTHON_RPM:+$PYTHON_RPM or }/usr/bin/python$version"
done
case $PYTHON_RPM in *" or "*) PYTHON_RPM="($PYTHON_RPM)" ;; esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
tools=$("$here/tools.sh")
git -C "$root" archive --prefix=gpuward/ HEAD | tar -x -C "$scratch"
source=$scratch/gpuward
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH PYTHONHASHSEED=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=2
(cd "$source" && "$root/.venv/bin/python" -m hatchling build -t wheel -d "$scratch" >/dev/null 2>&1) || stop "the wheel cannot be built"
wheel=$(echo "$scratch"/gpuward-*.whl)
VERSION=$(basename "$wheel" | cut -d- -f2)
case $(uname -m) in x86_64) ARCH=amd64 ;; aarch64) ARCH=arm64 ;; *) stop "not for $(uname -m)" ;; esac
export VERSION ARCH PYTHON_DEB PYTHON_RPM

# stage PACKAGE MODULE: what the package holds, below $scratch/PACKAGE.
stage() {
  into=$scratch/$1 home=$scratch/$1/home
  mkdir -p "$home" "$into/scripts"
  cp -Rp "$("$here/libraries.sh" "$2")" "$home/libraries"
  "$tools/pip" install --no-deps --no-compile --no-index --target "$home/libraries" "$wheel" >&2
  rm -f "$home/libraries"/gpuward-*.dist-info/RECORD "$home/libraries"/gpuward-*.dist-info/direct_url.json
  if [ "$2" = agent ]; then
    own=agent
    for other in brain simulations rules runbooks; do rm -r "$home/libraries/$other"; done
  else
    own="agent brain simulations"
    mkdir "$home/bin"
    mv "$home/libraries/bin/nats-server" "$home/bin"
    mkdir "$into/completion"
    for shell in bash zsh fish; do
      (cd "$source" && "$root/.venv/bin/python" -m brain completion "$shell") > "$into/completion/gpuward.$shell"
    done
  fi
  (cd "$source" && "$root/.venv/bin/python" -m docs.man_pages "$into/man" "$1")
  gzip -9n "$into"/man/*.1 "$into"/man/*/*.1
  rm -rf "$home/libraries/bin"
  # With the links in nfpm.yaml a virtual environment for each Python, of one folder of libraries.
  printf 'home = /usr/bin\ninclude-system-site-packages = false\n' > "$home/pyvenv.cfg"
  for python in $pythons; do
    # Nobody compiles on a node: the agent may not write there, and nothing must be left when the package goes.
    (cd "$home/libraries" && "$python" -m compileall -q -p "/usr/lib/$1/libraries" --invalidation-mode unchecked-hash $own)
  done
  for file in "$source"/deploy/packages/*.in; do
    name=$(basename "$file" .in)
    sed "s,@name@,$1,g; s,@module@,$2,g; s,@versions@,${versions% },g" "$file" > "$into/scripts/$name"
  done
  chmod 755 "$into/scripts/command"
  printf 'gpuward (%s) unstable; urgency=medium\n\n  * See README.md and docs/ beside this file.\n\n -- %s  %s\n' "$VERSION" \
    "gpuward maintainers <maintainers@gpuward.invalid>" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" |
    gzip -9n > "$into/changelog.gz"
  chmod -R u=rwX,go=rX "$into" "$source"
  find "$into" "$source" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

mkdir -p "$out"
for package in ${2:-gpuward-agent gpuward}; do
  module=brain
  [ "$package" = gpuward ] || module=agent
  stage "$package" "$module"
  awk -v versions="$versions" '/@version@/ && !/^#/ { n = split(versions, each, " ")
    for (i = 1; i <= n; i++) { line = $0; gsub(/@version@/, each[i], line); print line }
    next } { print }' "$source/deploy/packages/$package.yaml" > "$scratch/$package/nfpm.yaml"
  for format in ${GPUWARD_FORMATS:-deb rpm}; do
    (cd "$scratch/$package" && "$tools/nfpm" package -p "$format" -t "$out" >"$scratch/said" 2>&1) || stop "$(cat "$scratch/said")"
  done
done
echo "gpuward packages: $VERSION for Python ${versions% }: $out"
