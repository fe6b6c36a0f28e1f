#!/bin/sh
# What a lock file pins, as one tree of libraries for all Pythons (pythons.sh): wheels are taken for GLIBC 2.28 and newer whatever this
# machine has, what comes only as source is built here, and compiled files lie beside. Made once for each lock; prints its folder.
#
#   deploy/release/libraries.sh agent|brain
#
# Files of one name must be the same for each Python: extension modules and compiled files carry theirs in the name.
set -eu
part=${1:?agent or brain}
cd "$(dirname "$0")/../.."
lock=deploy/release/$part.lock
place=/usr/lib/gpuward/libraries
[ "$part" = brain ] || place=/usr/lib/gpuward-agent/libraries
stop() { echo "gpuward libraries: $1" >&2; exit 1; }

sources="durable-rules nkeys"  # no wheels
machine=$(uname -m)
wheels=""
for platform in manylinux_2_28 manylinux_2_17 manylinux2014; do wheels="$wheels --platform ${platform}_$machine"; done
export SOURCE_DATE_EPOCH=315532800 PYTHONHASHSEED=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=2

tools=$(deploy/release/tools.sh)
pythons=$(deploy/release/pythons.sh)
versions=$(for python in $pythons; do "$python" -c 'import sys; print(sys.version)'; done)
key=$( (cat "$lock" deploy/release/libraries.sh; echo "$versions $machine $place") | sha256sum | cut -c1-16)
made=$PWD/.release/libraries-$part-$key
[ ! -d "$made" ] || { echo "$made"; exit 0; }

# Of the lock only the pins of $1 (names, with spaces), or all but these.
pins() { awk -v names=" $1 " -v want="$2" '/^[a-z]/ { split($1, pin, "=="); named = index(names, " " pin[1] " ") > 0 } named == want' "$lock"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
pins "$sources" 0 > "$scratch/wheels.txt"
pins "$sources" 1 > "$scratch/sources.txt"
# A C compiler that writes down nothing of this machine: some Pythons ask for the folder of their own libraries in every module,
# and so can the environment (LD_RUN_PATH, which the linker reads itself).
unset LD_RUN_PATH
compiler=$(command -v gcc) || stop "needs a C compiler: apt-get install gcc"
mkdir "$scratch/compiler"
cat > "$scratch/compiler/gcc" <<END
#!/bin/sh
for word do
  shift
  case \$word in -Wl,-rpath* | -Wl,--rpath* | -Wl,-R* | -g) ;; *) set -- "\$@" "\$word" ;; esac
done
exec $compiler "\$@" -g0
END
chmod +x "$scratch/compiler/gcc"
ln -s gcc "$scratch/compiler/cc"
ln -s gcc "$scratch/compiler/$machine-linux-gnu-gcc"
# What builds: pinned too, in the brain's lock.
lock=deploy/release/brain.lock
pins setuptools 1 > "$scratch/build.txt"
# A marker is judged by the Python of these tools, and is true of all others only when it names no version.
! grep -qE '; .*python(_full)?_version' "$scratch/wheels.txt" || stop "a wheel in $lock is pinned for some Pythons only"

# tree PYTHON FOLDER: all libraries for one Python, as its own.
tree() {
  set -e
  # shellcheck disable=SC2086  # a list of options
  "$tools/pip" install --require-hashes --no-deps --no-compile --only-binary :all: --implementation cp \
    --python-version "$(basename "$2")" $wheels --target "$2" -r "$scratch/wheels.txt" >&2
  "$1" -m venv --without-pip "$2.build"
  "$tools/pip" --python "$2.build" install --require-hashes --only-binary :all: -r "$scratch/build.txt" >&2
  PATH="$scratch/compiler:$PATH" "$tools/pip" --python "$2.build" wheel --no-cache-dir --require-hashes --no-deps \
    --no-build-isolation --no-binary :all: -r "$scratch/sources.txt" -w "$2.built" >&2
  "$tools/pip" --python "$2.build" install --no-deps --no-compile --no-index --target "$2" "$2.built"/*.whl >&2
  # These tell how and for which Python a wheel was made and installed.
  rm -f "$2"/*.dist-info/RECORD "$2"/*.dist-info/WHEEL "$2"/*.dist-info/direct_url.json "$2"/*.dist-info/REQUESTED
  rm -rf "$2"/*.dist-info/sboms
}

# The Pythons have nothing to do with each other until their trees are put together.
waited=""
for python in $pythons; do
  tree "$python" "$scratch/$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" &
  waited="$waited $!"
done
for pid in $waited; do wait "$pid" || stop "the libraries of $lock cannot be had for each Python"; done
mkdir "$scratch/all"
for one in "$scratch"/3.*[0-9]; do
  odd=$(diff -rq "$one" "$scratch/all" | grep -v '^Only in ' | head -1) || :
  [ -z "$odd" ] || stop "not the same for each Python, so they cannot share a folder: $odd"
  cp -Rpn "$one/." "$scratch/all"
done
command -v objdump >/dev/null 2>&1 || stop "needs objdump: apt-get install binutils"
needs=$(find "$scratch/all" -name '*.so*' -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1)
[ "$(printf '%s\nGLIBC_2.28\n' "$needs" | sort -V | tail -1)" = GLIBC_2.28 ] || stop "a library needs $needs: the packages say 2.28"
# What does not compile is of no use to anybody: a template, or for another Python. One process for each Python: what it has compiled
# before shows in a file's bytes.
for python in $pythons; do
  (cd "$scratch/all" && "$python" -m compileall -q -s . -p "$place" --invalidation-mode unchecked-hash . >/dev/null) &
done
wait
own=$(find "$scratch/all" -name '*.so*' -exec objdump -p {} + 2>/dev/null | grep -E 'R(UN)?PATH' | grep -vE ' \$ORIGIN[^:]*$' | head -1) || :
[ -z "$own" ] || stop "a library looks for others in a folder of this machine: $own"
[ -z "$(find "$scratch/all" -type l)" ] || stop "there are links among the libraries, which nfpm does not take over"
mv -T "$scratch/all" "$made" 2>/dev/null || [ -d "$made" ] || stop "$made cannot be made"
echo "$made"
