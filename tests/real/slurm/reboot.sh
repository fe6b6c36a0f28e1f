#!/bin/sh
# RebootProgram: run by the slurmd of the node, which then ends; a new one tells slurmctld that the node has booted.
exec > @LAB@/log/reboot.out 2>&1 < /dev/null
PATH=/usr/sbin:/usr/bin:/sbin:/bin
daemon=$PPID
until [ "$(tr '\0' '\n' < "/proc/$daemon/cmdline" | head -n 1)" = slurmd ]; do
  daemon=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$daemon/status")
done
node=$(tr '\0' '\n' < "/proc/$daemon/cmdline" | sed -n '/^-N$/{n;p;}')
echo "$node" >> @LAB@/log/reboots
setsid sh -c "sleep 0.5; kill $daemon
while grep -qs 'State:[[:space:]]*[A-Y]' /proc/$daemon/status; do sleep 0.05; done
echo $node > @LAB@/run/again" &
