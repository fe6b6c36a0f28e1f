#!/bin/sh
# PID 1 of a User-mode Linux kernel over this machine's root, read-only. The kernel line carries python=, repo= and
# guest=. Everything that is written goes to the kernel's own /proc and /sys, and to a tmpfs on /mnt.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for word in $(cat /proc/cmdline); do
  case "$word" in python=*) python=${word#*=} ;; repo=*) repo=${word#*=} ;; guest=*) guest=${word#*=} ;; esac
done
# modprobe looks below /lib/modules; on a merged /usr that is below a read-only tree: it is told where instead.
mount -t tmpfs tmpfs /mnt
modules=/mnt
mkdir -p $modules/lib/modules
ln -s "/usr/lib/uml/modules/$(uname -r)" "$modules/lib/modules/$(uname -r)"
for module in bonding veth; do modprobe -d $modules $module || echo "UML-FAILED no module $module"; done
ip link set lo up
cd "$repo" || echo "UML-FAILED no $repo"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$repo" "$python" "$guest" || echo "UML-FAILED guest"
echo UML-DONE
halt -f -f 2>/dev/null || echo o > /proc/sysrq-trigger
sleep 5
