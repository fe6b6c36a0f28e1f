#!/bin/sh
# The tools of a release and of the audit, in an environment of their own: what they need is nothing of what we ship. Prints
# the folder of their commands.
set -eu
cd "$(dirname "$0")/../.."
pins=deploy/dev/release.txt
want=$(sha256sum "$pins")
if [ "$(cat .release/.pins 2>/dev/null)" != "$want" ]; then
  rm -rf .release
  .venv/bin/python -m venv .release
  .release/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$pins" >&2
  echo "$want" > .release/.pins
fi
echo "$PWD/.release/bin"
