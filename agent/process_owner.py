"""Whose process is it? Read from /proc."""

from functools import partial

from agent.contract.owner import Owner, owner
from agent.host import Host
from agent.shared.patience import within

_V2 = "/sys/fs/cgroup/system.slice"
_V1 = ("freezer", "cpuset", "memory", "devices")


def owner_of(host: Host, pid: int) -> Owner:
    """The job, pod or service that a process belongs to, by its cgroup. Where Slurm makes no cgroups for jobs and its own says
    nothing: by its environment, if that can be read at once.
    """
    cgroup = host.read(f"/proc/{pid}/cgroup")
    found = owner(cgroup)
    if found.job or _jobs_have_cgroups(host):
        return found
    return owner(cgroup, within(partial(host.read, f"/proc/{pid}/environ"), ""))


def stuck_state(host: Host, pid: int) -> str:
    """`D`: it waits in the kernel and no signal ends it; `Z`: it has ended, and a thread of it has not, or nobody has asked how.
    Empty: neither, or it is gone.
    """
    state = host.read(f"/proc/{pid}/stat").rpartition(")")[2].strip()[:1]
    return state if state in ("D", "Z") else ""


def _jobs_have_cgroups(host: Host) -> bool:
    """Does Slurm make cgroups here? Then every process of a job is in one (slurm.conf: ProctrackType, TaskPlugin)."""
    if any(name.endswith("slurmstepd.scope") for name in host.listdir(_V2)):
        return True
    return any(name.startswith("slurm") for kind in _V1 for name in host.listdir(f"/sys/fs/cgroup/{kind}"))
