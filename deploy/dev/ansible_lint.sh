#!/bin/sh
# The roles of deploy/ansible, as Ansible's own linter wants them in production. Only the first run needs a network: it makes .ansible-env.
set -eu
cd "$(dirname "$0")/../.."
deploy/dev/pinned.sh .ansible-env deploy/dev/ansible.txt
PATH="$PWD/.ansible-env/bin:$PATH"
export PATH
cd deploy/ansible
ansible-lint --offline --nocolor -q --profile production --strict .
