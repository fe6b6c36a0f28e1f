"""The owner of a process, by its cgroup and environment: a Slurm job, a Kubernetes pod or a systemd service."""

import re
from dataclasses import dataclass

# .../slurmstepd.scope/job_4711/step_0/... (v2) and .../slurm/uid_1000/job_4711/... (v1)
_SLURM = re.compile(
    r"/(?:slurm[^/]*|uid_[0-9]+|system\.slice)(?:/[^/]+)*?/job_([0-9]{1,20}(?:_[0-9]{1,10})?)(?=/|$)"
)
# systemd driver: kubepods-burstable-pod<uid, with _>.slice; cgroupfs driver: /kubepods/burstable/pod<uid>/
_POD = re.compile(
    r"kubepods[^\n]*?pod([0-9a-fA-F]{8}(?:[-_][0-9a-fA-F]{4}){3}[-_][0-9a-fA-F]{12}|[0-9a-fA-F]{32})"
)
_SERVICE = re.compile(r"/system\.slice/(?:[^/\n]+\.slice/)*([A-Za-z0-9:_.\\@-]{1,200}\.service)(?=/|$)")
# Sessions of people and what they start: no job of theirs is there. Of services only Slurm's own starts jobs.
_SESSION = re.compile(r"/user\.slice(?=/|$)")
_SLURMD = re.compile(r"(?:.+[_@-])?slurmd(?:@.+)?\.service")
_JOB_ID = re.compile(r"[0-9]{1,20}(?:_[0-9]{1,10})?")
_LIMIT = 20_000  # characters of a cgroup file that are read


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Where a field is empty, there is no such owner."""

    # The Slurm job's id, or the UID of the Kubernetes pod.
    job: str = ""
    # Nothing but the process itself says so, in its environment
    claimed: bool = False
    # The system service; empty for a process of a job, which restarting a service would not help.
    unit: str = ""


def owner(cgroup: str, environ: str = "") -> Owner:
    """The owner by the contents of /proc/<pid>/cgroup and /proc/<pid>/environ.

    The cgroup decides. The environment, which a process writes itself, is used only where the cgroup says nothing: neither a
    job, nor a session, nor a service (but slurmd, which starts jobs where Slurm makes no cgroups for them).

    >>> owner("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0").job
    '4711'
    """
    for line in cgroup[:_LIMIT].splitlines():
        path = line.split(":", 2)[-1]
        if match := _SLURM.search(path):
            return Owner(job=match[1])
        if match := _POD.search(path):
            return Owner(job=match[1].replace("_", "-").lower())
    paths = [line.split(":", 2)[-1] for line in cgroup[:_LIMIT].splitlines()]
    unit = next((match[1] for path in paths if (match := _SERVICE.search(path))), "")
    if any(_SESSION.match(path) for path in paths) or (unit and not _SLURMD.fullmatch(unit)):
        return Owner(unit=unit)
    for entry in environ.split("\0"):
        name, _, value = entry.partition("=")
        if name in ("SLURM_JOB_ID", "SLURM_JOBID") and _JOB_ID.fullmatch(value):  # the second is the old name
            return Owner(job=value, claimed=True)
    return Owner(unit=unit)
