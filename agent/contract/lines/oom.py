"""Processes that the kernel killed for lack of memory (Linux, mm/oom_kill.c).

The line `oom-kill:...` names the control group, and so the job; the line `... Killed process ...` follows it.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, number, unsent
from agent.contract.messages import Severity, UnsentEvent
from agent.contract.owner import owner

_WHERE = re.compile(
    r"\s*oom-kill:constraint=(\w{1,40}),.{0,600}?task_memcg=([^,]{0,400}),task=(.{0,64}?),pid=([0-9]{1,10})",
    re.DOTALL,
)
_KILLED = re.compile(
    r"\s*(Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): "
    r"Killed process ([0-9]{1,10}) \((.{0,64}?)\)"
    r"(?:[ ,]|$)",
    re.DOTALL,
)
_RSS = re.compile(r"anon-rss:([0-9]{1,15})kB")
_UID = re.compile(r"UID:([0-9]{1,10})")
_MAX_PENDING = 64  # control groups that are remembered until their Killed line comes


class OomArea:
    """node.oom_kill."""

    markers: ClassVar[tuple[str, ...]] = ("oom-kill:constraint=", "Killed process ")
    kinds: ClassVar[tuple[str, ...]] = ("node.oom_kill",)
    distinguishing: ClassVar[tuple[str, ...]] = ("scope",)

    def __init__(self) -> None:
        self._groups: dict[int, str] = {}  # pid → control group, of processes that are about to be killed

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _WHERE.match(text):
            if len(self._groups) >= _MAX_PENDING:
                self._groups.clear()
            self._groups[int(match[4])] = match[2]
            return None
        match = _KILLED.match(text)
        if match is None:
            return None
        pid = int(match[2])
        group = self._groups.pop(pid, "")
        whose = owner(group)
        data = {
            "pid": pid,
            "process": match[3] or "unknown",
            "scope": "cgroup" if match[1].startswith("Memory") else "machine",
            "job": whose.job,
            "unit": whose.unit,
            "cgroup": group,
            "rss_kb": number(rss[1]) if (rss := _RSS.search(text)) else None,
            "uid": number(uid[1]) if (uid := _UID.search(text)) else None,
        }
        severity = Severity.WARNING if match[1].startswith("Memory") else Severity.ERROR
        where = component("job", whose.job) if whose.job else "node"
        return unsent("node.oom_kill", where, severity, data, text)
