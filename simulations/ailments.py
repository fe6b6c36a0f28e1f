"""Ailments: what can be wrong with a part of a simulated machine besides its plain state, as data. Pure.

An ailment says its signs when it begins and, since a new agent looks at everything, after each boot; its relief when it
ends. It ends by one of its cures only: what an action does to the machine is a cure (simulations/remedies.py), and
whether that helps stands here.
"""

from dataclasses import dataclass
from enum import StrEnum

from agent.contract.kinds import KINDS
from agent.contract.messages import Draft, Scalar, Severity


class Cure(StrEnum):
    """What is done to a part, or to the whole machine."""

    RESET = "reset"  # of one GPU
    RESET_ALL = "reset all"  # of all GPUs and NVSwitches together
    RESCAN = "rescan"  # of the PCI bus
    RELOAD = "reload"  # of the GPU driver
    LIMIT = "limit"  # less power for a GPU
    FABRIC_MANAGER = "fabric manager"  # restarted
    PORT = "port"  # an InfiniBand port trains anew
    CARD = "card"  # a network card is reset
    FAILOVER = "failover"  # of a bond
    MTU = "mtu"  # set
    MODULE = "module"  # loaded
    REQUEUE = "requeue"  # the job leaves the node
    MANAGER = "manager"  # another subnet manager is master
    REBOOT = "reboot"
    POWER = "power"  # cut and given back; implies a boot
    PEOPLE = "people"  # change, plug, delete: heals everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailment:
    """One thing that is wrong."""

    name: str  # unique on the machine
    component: str  # what a cure must be about; `node`: the whole machine
    cures: tuple[Cure, ...]
    signs: tuple[Draft, ...] = ()
    relief: tuple[Draft, ...] = ()
    again_s: float = 0.0  # the agent says the signs again so often; 0: once
    what: str = ""  # which module, job or unit a cure must name; empty: any
    hangs: bool = False  # the whole node hangs: it neither speaks nor hears

    def cured_by(self, cure: Cure, component: str, what: str = "") -> bool:
        """Does this end it? A cure of the node reaches all of its parts."""
        if cure is Cure.PEOPLE:
            return True
        here = component in ("node", self.component) or self.component == "node"
        return cure in self.cures and here and (not self.what or not what or what == self.what)


def said(kind: str, component: str, severity: Severity | None = None, **data: Scalar) -> Draft:
    """A fact as an agent states it; without a severity with the kind's usual one."""
    words = ", ".join(f"{name} {value}" for name, value in data.items())
    usual = KINDS[kind].severity
    return Draft(kind=kind, component=component, severity=severity or usual, data=data, evidence=words)
