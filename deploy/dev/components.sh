#!/bin/sh
# The real components that the tests talk to. As root on Debian or Ubuntu: installed here (their daemons are not
# started). As an ordinary user: nothing is installed; the tests that need root or a component say so and are left out.
set -eu
packages="systemd-container dbus iproute2 jq nftables kmod tinyproxy-bin user-mode-linux ibsim-utils opensm infiniband-diags
 prometheus prometheus-alertmanager prometheus-node-exporter openipmi ipmitool openssl openssh-client openssh-server python3-apt git slurm-wlm munge slurmrestd slurm-wlm-jwt-plugin
 rpm etcd-server xz-utils curl qemu-system-x86 busybox-static gcc libc6-dev make linux-headers-amd64
 groff-base buildah mmdebstrap chromium fonts-noto-cjk tmux bindfs"
# A kubectl that is there already, of whatever origin, is good.
command -v kubectl >/dev/null 2>&1 || packages="$packages kubernetes-client"
missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
prepare() {  # the guest's kernel: downloaded and unpacked, not installed; the identity provider, an older NATS server, and what
             # gpuward needs on newer Pythons, where there are any: in environments of their own; the libraries that packages
             # hold; what images are made of, where Debian 12 is
  [ "$(id -u)" = 0 ] || return 0
  release="$(dirname "$0")/../release"
  images=false
  [ -x /usr/bin/python3.11 ] && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] && images=true
  # Beside the others, most of which wait for the network.
  (
    for part in agent brain; do
      "$release/libraries.sh" "$part" >/dev/null
      if "$images"; then GPUWARD_PYTHONS=/usr/bin/python3.11 "$release/libraries.sh" "$part" >/dev/null; fi
    done
  ) &
  libraries=$!
  "$(dirname "$0")/../../tests/real/qemu/prepare.sh" /var/cache/gpuward-guest >/dev/null
  "$(dirname "$0")/../../tests/real/canaille/prepare.sh" /var/cache/gpuward-canaille >/dev/null
  "$(dirname "$0")/../../tests/real/older_nats/prepare.sh" /var/cache/gpuward-nats >/dev/null
  for version in 3.12 3.13 3.14; do
    "$(dirname "$0")/../../tests/real/newer_python/prepare.sh" "$version" "/var/cache/gpuward-python$version" >/dev/null
  done
  if "$images"; then "$release/base_root.sh" /var/cache/gpuward-images >/dev/null; fi
  wait "$libraries"
}
[ -n "$missing" ] || { prepare; exit 0; }
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "gpuward test: not root on Debian or Ubuntu, so these are not installed:$missing (their tests are left out)" >&2
  exit 0
fi
echo "gpuward test: installing$missing"
made_policy=""
if [ ! -e /usr/sbin/policy-rc.d ]; then
  # No package may start its daemon on the machine that runs the tests.
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  made_policy=yes
fi
ours() { [ -z "$made_policy" ] || rm -f /usr/sbin/policy-rc.d; }
trap ours EXIT
# Another apt-get may be at work: it is waited for.
apt-get -qq -o DPkg::Lock::Timeout=600 update >/dev/null
# shellcheck disable=SC2086  # a list of package names
DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends $missing >/dev/null
ours
made_policy=""
prepare
