"""What the unit that the agent runs in lets it do: an action whose right is missing is refused by name, before it begins.

An agent that only observes has a user of its own and no right of the hands (deploy/systemd), whatever its `allow` list says.
"""

from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import Right
from agent.host import Host

_UNIT = "deploy/systemd/gpuward-agent.service.d/hands.conf grants it"
# Bits in /proc/self/status; include/uapi/linux/capability.h.
_BITS = {Right.KILL: 5, Right.NET_ADMIN: 12, Right.SYS_MODULE: 16, Right.SYS_ADMIN: 21}


def rights(host: Host) -> frozenset[Right]:
    """Those of this process, by its effective user and capabilities. None where /proc does not tell."""
    status = dict(line.split(":", 1) for line in host.read("/proc/self/status").splitlines() if ":" in line)
    try:
        effective = int(status["CapEff"], 16)
        user = int(status["Uid"].split()[1])
    except (KeyError, ValueError, IndexError):
        return frozenset()
    held = {right for right, bit in _BITS.items() if effective >> bit & 1}
    return frozenset(held | {Right.ROOT} if user == 0 else held)


def lacking(action: str, held: frozenset[Right]) -> str:
    """Why this process cannot perform the action, and who must do what; empty when it can."""
    spec = ACTIONS.get(action)
    absent = [right.value for right in spec.needs if right not in held] if spec is not None else []
    return f"{action} needs {' and '.join(absent)}, which this agent does not have: {_UNIT}" if absent else ""
