"""Whose process is it? Read from /proc."""

from agent.contract.owner import Owner, owner
from agent.host import Host


def owner_of(host: Host, pid: int) -> Owner:
    """The job, pod or service that a process belongs to, by its cgroup, else by its environment."""
    cgroup = host.read(f"/proc/{pid}/cgroup")
    found = owner(cgroup)
    return found if found.job else owner(cgroup, host.read(f"/proc/{pid}/environ"))
