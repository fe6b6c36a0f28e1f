#!/bin/sh
# Prolog=/etc/slurm/gpuward/prolog.sh in slurm.conf: no job starts on a node whose GPUs its agent knows to be unfit. The job is
# requeued, and the node is drained with the reason in words; docs/slurm.md has the whole story.
#
# A Prolog that fails lets Slurm drain the node as "Prolog error", which would stand as if a person had set it. So the drain is set
# here first; Slurm keeps the reason of a node that is drained already. Nothing but the agent's own line takes a node away: not an
# agent that is down or broken, not a slurmctld that does not answer. Slurm is asked for nothing while the node is fit.
set -u

agent=${GPUWARD_AGENT:-/usr/bin/gpuward-agent}
also=${GPUWARD_ALSO:-} # e.g. degraded,software: see `gpuward-agent check --help`. What many nodes share drains all of them.
# Of all nodes, at most so many are drained from here at a time, and one in any case: what more have is no fault of each.
most_percent=${GPUWARD_MOST_PERCENT:-10}
PATH=${GPUWARD_PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
export PATH
node=${SLURMD_NODENAME:-}
[ -n "$node" ] || exit 0 # not called by Slurm

say() {
    logger -t gpuward-prolog -p daemon.warning -- "$node, job ${SLURM_JOB_ID:-?}: $*"
}

# "drained", "not", or nothing: Slurm does not say. The first State of the line: a person may write of one in the reason.
drained() {
    scontrol -o show node "$node" | sed -n 's/ State=\([^ ]*\).*/\n\1/; s/.*\n//p' | sed 's/.*DRAIN.*/drained/; t; s/.*/not/'
}

reason=$(timeout -k 1 5 "$agent" check ${also:+--also "$also"} --drain-reason 2>/dev/null)
status=$?
case $status$reason in
0) exit 0 ;;
"1gpuward-agent: "*) ;;
*) # a Python that does not start ends with 1 too
    say "the job starts, the check ended with $status"
    exit 0
    ;;
esac

before=$(drained)
if [ "$before" = not ]; then
    rows=$(sinfo --noheader --Node --format='%N %E') || rows=
    rows=$(echo "$rows" | sort -u)
    nodes=$(echo "$rows" | grep -c .)
    ours=$(echo "$rows" | grep -c ' gpuward-agent: ')
    if [ "$nodes" -eq 0 ]; then # so nobody knows how many are drained already
        say "not drained, as Slurm does not name its nodes: $reason"
        exit 0
    fi
    if [ "$ours" -ge 1 ] && [ $((100 * (ours + 1))) -gt $((most_percent * nodes)) ]; then
        say "not drained, since $ours nodes are already: $reason"
        exit 0
    fi
    scontrol update "NodeName=$node" State=DRAIN "Reason=$reason" || exit 0
    [ "$(drained)" = drained ] || exit 0
elif [ "$before" != drained ]; then # it may be a person's drain, whose reason ours would take the place of
    say "not drained, as Slurm does not say whether it is: $reason"
    exit 0
fi
say "the job is requeued: $reason"
exit 1
