#!/bin/bash
# The first process of the cluster's PID namespace: bash, because it reaps what jobs leave behind (for proctrack/pgid a zombie
# is a process that cannot be killed: its job would not end).
cd "@LAB@" || exit 1
munged --force --foreground --key-file=@LAB@/munge.key --socket=@LAB@/run/munge.sock --pid-file=@LAB@/run/munged.pid \
  --log-file=@LAB@/log/munged.log --seed-file=@LAB@/run/munged.seed --num-threads=2 &
until [ -S run/munge.sock ]; do sleep 0.02; done
slurmctld -D -c -f @LAB@/slurm.conf > log/slurmctld.out 2>&1 &
for node in gpu1 gpu2 gpu3 gpu4; do
  slurmd -D -N "$node" -f @LAB@/slurm.conf > "log/$node.out" 2>&1 &
done
# slurmrestd refuses root, and SLURM_JWT=daemon lets it ask slurmctld with each caller's token.
SLURM_JWT=daemon setpriv --reuid=65534 --regid=65534 --clear-groups slurmrestd -f @LAB@/slurm.conf -s openapi/v0.0.38 \
  -a rest_auth/jwt 127.0.0.1:@REST@ > log/slurmrestd.out 2>&1 &
# Starts a daemon again that has ended: a line in the FIFO, "<node>" after its reboot, or "slurmctld" with its saved state.
mkfifo run/again
while :; do
  while read -r node; do
    if [ "$node" = slurmctld ]; then
      slurmctld -D -f @LAB@/slurm.conf >> log/slurmctld.out 2>&1 &
    else
      slurmd -D -b -N "$node" -f @LAB@/slurm.conf >> "log/$node.out" 2>&1 &
    fi
  done < run/again
done
