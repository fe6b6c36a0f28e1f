#!/bin/sh
# The tools of a release and of the audit, in an environment of their own: what they need is nothing of what we ship. Prints
# the folder of their commands.
set -eu
cd "$(dirname "$0")/../.."
deploy/dev/pinned.sh .release deploy/dev/release.txt
echo "$PWD/.release/bin"
