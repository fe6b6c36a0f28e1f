"""Whose process is it? Read from /proc."""

from functools import partial

from agent.contract.owner import Owner, owner
from agent.host import Host
from agent.shared.patience import within


def owner_of(host: Host, pid: int) -> Owner:
    """The job, pod or service that a process belongs to, by its cgroup, else by its environment, if that can be read at once."""
    cgroup = host.read(f"/proc/{pid}/cgroup")
    found = owner(cgroup)
    if found.job:
        return found
    return owner(cgroup, within(partial(host.read, f"/proc/{pid}/environ"), ""))
