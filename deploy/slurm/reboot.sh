#!/bin/sh
# RebootProgram=/etc/slurm/gpuward/reboot.sh in slurm.conf: for `scontrol reboot`, which the brain's action scheduler.reboot uses.
# Run by slurmd, as root, when the node is idle. --no-wall: nobody is there who could read it.
logger -t gpuward-reboot -p daemon.notice -- "slurmctld asks for a reboot"
exec /usr/bin/systemctl --no-wall reboot
