#!/bin/sh
# Epilog=/etc/slurm/gpuward/epilog.sh in slurm.conf: a node whose GPUs have become unfit during a job is drained when the job has
# ended, by prolog.sh beside this file, before the next one is sent there. An Epilog never fails: the job is over.
"$(dirname -- "$0")/prolog.sh"
exit 0
