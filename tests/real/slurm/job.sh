#!/bin/sh
echo "start $SLURM_JOB_ID on $SLURMD_NODENAME, again: ${SLURM_RESTART_COUNT:-0}, GPUs $CUDA_VISIBLE_DEVICES"
trap 'exit 143' TERM
sleep "$1" & wait
