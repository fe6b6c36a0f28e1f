"""Processes that the kernel killed for lack of memory (Linux, mm/oom_kill.c).

The line `oom-kill:...` names the control group, and so the job; the line `... Killed process ...` follows it. Before 5.1 there
is no such line: the control group stands in `Task in ... killed as a result of limit of ...`, and why a process is killed in a
line of its own (`Out of memory: Kill process ...`).
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, number, unsent
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.owner import owner

_WHERE = re.compile(
    r"\s*oom-kill:constraint=(\w{1,40}),.{0,600}?task_memcg=([^,]{0,400}),task=(.{0,64}),pid=([0-9]{1,10})",
    re.DOTALL,
)
_TASK = re.compile(r"\s*Task in (/.{0,400}) killed as a result of limit of /")
_WHY = r"(Memory cgroup out of memory|Out of [mM]emory(?: \(oom_kill_allocating_task\))?): "
# A name may hold anything, parentheses and spaces too: it ends where the figures begin for the last time.
_KILLED = re.compile(
    rf"\s*(?:{_WHY})?Killed process ([0-9]{{1,10}})(?:, UID [0-9]{{1,10}},)? \((.{{0,64}})\)"
    r"(?: total-vm:[0-9]{1,15}kB|, UID[: ][0-9]{1,10}|,? ?$|\.(?!\w))",
    re.DOTALL,
)
_KILL = re.compile(rf"\s*{_WHY}Kill process [0-9]{{1,10}} \(", re.DOTALL)
_RSS = re.compile(r"anon-rss:([0-9]{1,15})kB")
_UID = re.compile(r"UID[: ]([0-9]{1,10})")
_MAX_PENDING = 64  # control groups that are remembered until their Killed line comes


class OomArea:
    """node.oom_kill."""

    markers: ClassVar[tuple[str, ...]] = (
        *("oom-kill:constraint=", "Killed process ", ": Kill process ", "killed as a result of limit of "),
    )
    kinds: ClassVar[tuple[str, ...]] = ("node.oom_kill",)
    distinguishing: ClassVar[tuple[str, ...]] = ("scope",)

    def __init__(self) -> None:
        self._groups: dict[int, str] = {}  # pid → control group, of processes that are about to be killed
        self._group = ""  # what older kernels said of it, without a pid
        self._why = ""  # what older kernels said before they killed one, perhaps a child of it

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _WHERE.match(text):
            if len(self._groups) >= _MAX_PENDING:
                self._groups.clear()
            self._groups[int(match[4])] = match[2]
            return None
        if match := _TASK.match(text):
            self._group = match[1]
            return None
        if match := _KILL.match(text):
            self._why = match[1]
            return None
        match = _KILLED.match(text)
        if match is None:
            return None
        in_group = (match[1] or self._why).startswith("Memory")
        pid = int(match[2])
        group = self._groups.pop(pid, self._group if in_group else "")
        self._why = self._group = ""
        whose = owner(group)
        data = {
            "pid": pid,
            "process": match[3] or "unknown",
            "scope": "cgroup" if in_group else "machine",
            "job": whose.job,
            "unit": whose.unit,
            "cgroup": group,
            "rss_kb": number(rss[1]) if (rss := _RSS.search(text)) else None,
            "uid": number(uid[1]) if (uid := _UID.search(text)) else None,
        }
        severity = Severity.WARNING if in_group else Severity.ERROR
        where = component("job", whose.job) if whose.job else "node"
        return unsent("node.oom_kill", where, severity, data, text)


def announces(text: str) -> str:
    """How a record says that a process is about to be killed, before another one says which it was; empty: it does not."""
    if _WHERE.match(text):
        return "oom-kill"
    if _TASK.match(text):
        return "task"
    return "kill" if _KILL.match(text) else ""


def tells(text: str) -> bool:
    """Does a record say which process was killed?"""
    return _KILLED.match(text) is not None
