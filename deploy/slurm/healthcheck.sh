#!/bin/sh
# HealthCheckProgram=/etc/slurm/gpuward/healthcheck.sh in slurm.conf: what the agent says of the node goes to syslog, and nothing is
# done. The brain drains, with evidence, and knows when a whole fleet shows the same.
set -u

agent=${GPUWARD_AGENT:-/usr/bin/gpuward-agent}
also=${GPUWARD_ALSO:-degraded,software,network,storage,host}
PATH=${GPUWARD_PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
export PATH

said=$(timeout -k 1 5 "$agent" check --also "$also" 2>&1)
status=$?
if [ $status -ne 0 ] || [ -n "$said" ]; then
    logger -t gpuward-healthcheck -p daemon.warning -- "status $status: $(echo "$said" | tr '\n' ';')"
fi
exit 0
