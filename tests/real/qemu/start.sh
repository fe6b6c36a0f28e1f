# What the guest does once it stands on the machine's root: modules, debugfs, then each script, then off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for word in $(cat /proc/cmdline); do
  case "$word" in
    python=*) python=${word#*=} ;;
    repo=*) repo=${word#*=} ;;
    scripts=*) scripts=$(echo "${word#*=}" | tr , ' ') ;;
    modules=*) modules=${word#*=} ;;
  esac
done
mkdir -p /lib/modules
mount --bind "$modules" /lib/modules || echo QEMU-FAILED no modules
ip link set lo up
cd "$repo" || echo QEMU-FAILED no repo
for script in $scripts; do
  echo "QEMU-SCRIPT $script $(cut -d' ' -f1 /proc/uptime)"
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$repo" "$python" -m "$script" || echo "QEMU-FAILED $script"
done
echo "QEMU-DONE $(cut -d' ' -f1 /proc/uptime)"
sync
busybox poweroff -f
