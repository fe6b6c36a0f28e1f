#!/bin/sh
# A guest for the tests that need a kernel of their own: Debian's kernel, downloaded and unpacked (never installed), the
# card of card/gwcard.c built for it, and a first root that mounts this machine's own, read-only. What is there already is
# left alone. Needs root and Debian's packages busybox-static, kmod, gcc, make, xz-utils and linux-headers-<version>.
#   prepare.sh FOLDER    prints FOLDER/<version>-<hash of these files>, where vmlinux, initrd and modules/ are then
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: linux-image-//p' | head -n 1)
[ -n "$kernel" ] || { echo "linux-image-amd64 is not known here: run apt-get update" >&2; exit 1; }
hash=$(cat "$here/prepare.sh" "$here/init" "$here/card/gwcard.c" | sha256sum | cut -c 1-12)
ready="$1/$kernel-$hash"
if [ ! -e "$ready" ]; then
  draft=$(mktemp -d -p "$(mkdir -p "$1" && cd "$1" && pwd)" draft.XXXXXX)
  trap 'rm -rf "$draft"' EXIT
  (cd "$draft" && apt-get -qq download "linux-image-$kernel" 2>/dev/null)
  dpkg-deb --fsys-tarfile "$draft"/*.deb | tar -x -C "$draft" --wildcards --exclude='*/sound/*' --exclude='*/gpu/*' \
    --exclude='*/media/*' --exclude='*/wireless/*' --exclude='*/staging/*' './boot/vmlinuz-*' './lib/modules/*'
  tree="$draft/lib/modules/$kernel"
  cp -r "$here/card" "$draft/card"
  make -s -C "/usr/src/linux-headers-$kernel" M="$draft/card" modules >"$draft/card.log" 2>&1 ||
    { cat "$draft/card.log" >&2; exit 1; }
  mkdir -p "$tree/extra" && cp "$draft/card/gwcard.ko" "$tree/extra/"
  depmod -b "$draft" "$kernel"
  # The first root: busybox and what leads to the real one.
  root="$draft/first"
  mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/low" "$root/top" "$root/new"
  cp /bin/busybox "$root/bin/busybox"
  cp "$here/init" "$root/init" && chmod +x "$root/init"
  for module in virtio_pci 9pnet_virtio 9p overlay; do
    modprobe -d "$draft" -S "$kernel" --show-depends "$module" | sed -n 's/^insmod //p'
  done | awk '!seen[$1]++ {print $1}' >"$draft/order"
  while read -r path; do
    cp "$path" "$root/modules/" && basename "$path" >>"$root/order"
  done <"$draft/order"
  mkdir "$draft/ready"
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$draft/ready/initrd"
  # Unpacked here: an emulated processor needs eight seconds for it. Where it is packed is in the header of the kernel (the
  # x86 boot protocol: setup_sects, payload_offset, payload_length).
  packed="$draft/boot/vmlinuz-$kernel"
  field() { od -An -t "u$2" -j "$1" -N "$2" "$packed" | tr -d ' '; }
  tail -c "+$(((($(field 497 1) + 1) * 512) + $(field 584 4) + 1))" "$packed" | head -c "$(field 588 4)" |
    xz -dc --single-stream >"$draft/ready/vmlinux"
  mv "$draft/lib/modules" "$draft/ready/modules"
  mv -T "$draft/ready" "$ready" 2>/dev/null || [ -e "$ready/vmlinux" ]  # another run may have been faster
fi
echo "$ready"
