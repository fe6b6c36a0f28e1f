#!/bin/sh
# build/site: the manual, from docs/ and mkdocs.yml, and a check of its links. Only the first run needs a network: it makes .site,
# the environment of mkdocs.
set -eu
cd "$(dirname "$0")/../.."
deploy/dev/pinned.sh .site deploy/dev/site.txt
NO_MKDOCS_2_WARNING=1 .site/bin/mkdocs build --quiet --strict
.venv/bin/python -m docs.site_check build/site
echo "gpuward site: build/site/index.html"
