#!/bin/sh
# The systems that `make compare` runs beside gpuward. As root on Debian or Ubuntu: installed here, but those of components.sh.
# As an ordinary user: only ansible-rulebook, in an environment of its own (.compare); what is missing is named in the table.
set -eu
cd "$(dirname "$0")/../.."
if ! command -v java >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  apt-get -qq update >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends default-jre-headless >/dev/null ||
    echo "gpuward compare: no Java can be installed, so ansible-rulebook is left out" >&2
fi
deploy/dev/pinned.sh .compare deploy/dev/compare.txt
