"""What a node sees of the subnet managers of its InfiniBand fabric, in a text form that agent and brain read.

    no working SM
    port=mlx5_0.1 lid=4 sm_lid=1 sm=none
    sm=0x100001 lid=1 priority=10 state=MASTER here=no

The first line is for people. A `port` line has the LID of the manager that the port knows, and the state in which that
manager answers. An `sm` line is one manager that answered; `here` tells whether it runs on the node that was asked.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MASTER = "MASTER"
NO_ANSWER = "none"
# Lines of each sort: the text of a result is bounded.
MOST_PORTS = 4
MOST_MANAGERS = 4

_SMINFO = re.compile(
    r"sm lid (?P<lid>\d+) sm guid (?P<guid>0x[0-9a-f]+),? .*?priority (?P<priority>\d+) state \d+ (?:SMINFO_)?(?P<state>\w+)"
)
_PORT = re.compile(r"port=(\S+) lid=(\d+) sm_lid=(\d+) sm=(\S+)")
_SM = re.compile(r"sm=(0x[0-9a-f]+) lid=(\d+) priority=(\d+) state=(\w+) here=(yes|no)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """One subnet manager that answered."""

    # GUID of the port that it runs on, `0x...` in lower case.
    guid: str
    # 0: not known.
    lid: int
    # 0 to 15; the highest becomes the master.
    priority: int
    # MASTER | STANDBY | DISCOVERING | NOTACTIVE.
    state: str
    # It runs on the node that was asked.
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PortView:
    """One InfiniBand port, and what it knows."""

    # `<device>.<port>`.
    port: str
    lid: int
    # 0: no manager has configured the port.
    sm_lid: int
    # State of the manager at `sm_lid`; NO_ANSWER when none answers there.
    sm: str

    @property
    def works(self) -> bool:
        """Does the manager that this port knows answer as the master?"""
        return self.sm == MASTER


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetView:
    """What one node sees."""

    ports: tuple[PortView, ...]
    managers: tuple[Manager, ...]

    @property
    def works(self) -> bool:
        """Does every port have a master that answers?"""
        return bool(self.ports) and all(port.works for port in self.ports)

    @property
    def here(self) -> Manager | None:
        """The manager that runs on this node."""
        return next((manager for manager in self.managers if manager.here), None)

    def text(self) -> str:
        """The text form, with at most MOST_PORTS and MOST_MANAGERS lines; ports without a master come first."""
        ports = sorted(self.ports, key=lambda port: port.works)
        managers = sorted(self.managers, key=lambda manager: (not manager.here, manager.state != MASTER))
        lines = ["SM works" if self.works else "no working SM"]
        lines += [
            f"port={port.port} lid={port.lid} sm_lid={port.sm_lid} sm={port.sm}"
            for port in ports[:MOST_PORTS]
        ]
        lines += [
            f"sm={sm.guid} lid={sm.lid} priority={sm.priority} state={sm.state} here={'yes' if sm.here else 'no'}"
            for sm in managers[:MOST_MANAGERS]
        ]
        return "\n".join(lines)


def read(text: str) -> SubnetView:
    """Reads the text form. Other lines are ignored, so a text that was cut off can be read too."""
    return SubnetView(ports=tuple(_ports(text.splitlines())), managers=tuple(_managers(text.splitlines())))


def sminfo(text: str, *, here: bool = False) -> Manager | None:
    """Reads the output of `sminfo` (infiniband-diags); None when no manager answered.

    >>> sminfo("sminfo: sm lid 1 sm guid 0x100001, activity count 116 priority 10 state 3 SMINFO_MASTER").state
    'MASTER'
    """
    if (match := _SMINFO.search(text)) is None:
        return None
    return Manager(
        guid=match["guid"],
        lid=int(match["lid"]),
        priority=int(match["priority"]),
        state=match["state"],
        here=here,
    )


def _ports(lines: Iterable[str]) -> Iterator[PortView]:
    for line in lines:
        if match := _PORT.fullmatch(line.strip()):
            name, lid, sm_lid, state = match.groups()
            yield PortView(port=name, lid=int(lid), sm_lid=int(sm_lid), sm=state)


def _managers(lines: Iterable[str]) -> Iterator[Manager]:
    for line in lines:
        if match := _SM.fullmatch(line.strip()):
            guid, lid, priority, state, here = match.groups()
            yield Manager(guid=guid, lid=int(lid), priority=int(priority), state=state, here=here == "yes")
