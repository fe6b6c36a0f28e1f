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
# Side by side: most of their time goes into imports, and there are two processors.
for script in $scripts; do
  (
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$repo" "$python" -m "$script" >"/run/$script" 2>&1 ||
      echo "QEMU-FAILED $script"
    sed "s/^{/GUEST $script {/" "/run/$script"
    echo "QEMU-ENDED $script $(cut -d' ' -f1 /proc/uptime)"
  ) &
done
wait
echo "QEMU-DONE $(cut -d' ' -f1 /proc/uptime)"
sync
busybox poweroff -f
