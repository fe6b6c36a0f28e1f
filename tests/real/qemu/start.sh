# What the guest does once it stands on the machine's root: modules, then the scripts, then off. With serve= on the kernel
# line: what the host types at the second serial port, until the host switches it off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for word in $(cat /proc/cmdline); do
  case "$word" in
    python=*) python=${word#*=} ;;
    repo=*) repo=${word#*=} ;;
    scripts=*) scripts=$(echo "${word#*=}" | tr , ' ') ;;
    serve=*) serve=${word#*=} ;;
    modules=*) modules=${word#*=} ;;
  esac
done
mkdir -p /lib/modules
mount --bind "$modules" /lib/modules || echo QEMU-FAILED no modules
ip link set lo up
cd "$repo" || echo QEMU-FAILED no repo
if [ -n "${serve:-}" ]; then
  exec 3<>"/dev/$serve"
  stty -F "/dev/$serve" raw -echo
  echo "GUEST-SERVES" >&3
  while IFS= read -r line <&3; do
    (eval "$line") >/run/said 2>&1 </dev/null
    status=$?
    cat /run/said >&3
    printf '\nGUEST-SAID %s\n' "$status" >&3
  done
fi
# shellcheck disable=SC2086  # several words
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$repo" "$python" -m tests.real.qemu.side_by_side $scripts 2>&1 ||
  echo "QEMU-FAILED $scripts"
echo "QEMU-DONE $(cut -d' ' -f1 /proc/uptime)"
sync
busybox poweroff -f
