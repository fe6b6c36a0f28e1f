#!/bin/sh
# build/site: the manual, from docs/ and mkdocs.yml, and a check of its links. Only the first run needs a network: it makes .site,
# the environment of mkdocs.
set -eu
cd "$(dirname "$0")/../.."
pins=deploy/dev/site.txt
want=$(sha256sum "$pins")
if [ "$(cat .site/.pins 2>/dev/null)" != "$want" ]; then
  rm -rf .site
  .venv/bin/python -m venv .site
  .site/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$pins" >&2
  echo "$want" > .site/.pins
fi
NO_MKDOCS_2_WARNING=1 .site/bin/mkdocs build --quiet --strict
.venv/bin/python -m docs.site_check build/site
echo "gpuward site: build/site/index.html"
