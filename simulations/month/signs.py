"""How a kind of fault shows, as data: what the agent, the BMC or a watcher says, and what the kernel logs, over time. Pure.

Texts may name the parts of the node that a fault hits: {gpu} 0000:1b:00, {port} mlx5_0, {nic} 0000:5e:00, {link} eth1,
{disk} nvme0, {job} the job that runs there.
"""

from dataclasses import dataclass, field, replace

from agent.contract.messages import Scalar, Severity, UnsentEvent
from brain.core.pack.lint_symptoms import KINDS as SAID
from simulations import changes as ch
from simulations.changes import after
from simulations.faults import Fault
from simulations.month.kinds import Onset, Plan

_NICS = ("5e", "5f", "86", "87", "af", "b0", "d8", "d9")
NO_JOB = "none"
Facts = dict[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """One event."""

    kind: str
    data: dict[str, Scalar]
    # Empty: the part that its sign is about.
    component: str = ""
    # None: the default one of its kind.
    severity: Severity | None = None


def says(kind: str, component: str = "", more: Facts | None = None, **data: Scalar) -> Says:
    """An event of this kind, with these facts and `more`."""
    return Says(kind=kind, data=(more or {}) | data, component=component)


def well(kind: str, component: str = "", more: Facts | None = None, **data: Scalar) -> Says:
    """An event that says that something is well again."""
    return replace(says(kind, component, more, **data), severity=Severity.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """How a fault shows while it is there."""

    # What is wrong, and what a remedy must be applied to.
    component: str = "node"
    bad: tuple[Says, ...] = ()
    # Said when it ends.
    well: tuple[Says, ...] = ()
    # Of the kernel, with the events.
    lines: tuple[str, ...] = ()
    # How often they come again, seconds; 0: once, and after each boot.
    every_s: float = 0.0
    # Until they are said first, seconds: the agent, the BMC's watcher and UFM look now and then.
    after_s: float = 0.0
    # The module that must be loaded.
    target: str = ""
    hangs_node: bool = False
    # What is done to its part in vain makes it show again at once, not only with the next boot.
    again: bool = False

    def fault(self, onset: Onset, worse: Fault | None = None) -> Fault:
        """The fault on the machine of an onset."""
        names = parts(onset)
        component = self.component.format_map(names)
        return Fault(
            name=onset.name,
            component=component,
            fixes=onset.fixes,
            symptoms=tuple(_event(one, component, names) for one in self.bad),
            recovery=tuple(_event(one, component, names) for one in self.well),
            lines=tuple(line.format_map(names) for line in self.lines),
            repeat_s=self.every_s,
            shows_after_s=self.after_s,
            target=self.target or onset.name,
            hangs_node=self.hangs_node,
            shows_again=self.again,
            soothed_by=onset.soothed_by,
            relapse_s=onset.relapse_s,
            worsened_by=onset.worsened_by,
            worse=worse,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shows:
    """The plan of a kind: its sign, and what becomes of it."""

    first: Sign
    # (seconds after its beginning, how it shows from then on)
    grows: tuple[tuple[float, Sign], ...] = ()
    # How it shows when a remedy has made it worse.
    worse: Sign | None = None
    # Between the beginnings on two of the nodes that it hits, seconds.
    apart_s: float = 0.0
    # Changes of the machine's own parts, with it: (seconds after its beginning, change).
    changes: tuple[ch.ScheduledChange, ...] = field(default=())

    def __call__(self, onset: Onset) -> Plan:
        """See FaultKind."""
        worse = self.worse.fault(onset) if self.worse is not None else None
        start_s = min(onset.nth * self.apart_s, onset.lasts_s / 2)
        return (
            after(start_s, ch.FaultBegins(fault=self.first.fault(onset, worse))),
            *(
                after(start_s + late_s, ch.FaultGrows(fault=sign.fault(onset, worse)))
                for late_s, sign in self.grows
            ),
            *(after(start_s + one.delay_s, one.change) for one in self.changes),
        )


def shows(
    component: str,
    *bad: Says,
    well: tuple[Says, ...] = (),
    lines: tuple[str, ...] = (),
    every_s: float = 0.0,
    after_s: float = 0.0,
    again: bool = False,
) -> Shows:
    """A fault that shows in one way as long as it lasts."""
    sign = Sign(
        component=component, bad=bad, well=well, lines=lines, every_s=every_s, after_s=after_s, again=again
    )
    return Shows(first=sign)


def logs(*lines: str, component: str = "node", every_s: float = 0.0, again: bool = False) -> Shows:
    """A fault of which only the kernel says something."""
    return shows(component, lines=lines, every_s=every_s, again=again)


def unit_fails(unit: str, *lines: str, result: str = "exit-code") -> Shows:
    """A systemd unit fails, and again when it is started in vain; the kernel may say why."""
    return shows(
        f"service/{unit}",
        says("service.state", active="failed", sub="failed", result=result),
        well=(well("service.state", active="active", sub="running"),),
        lines=lines,
        after_s=0.5,
        again=True,
    )


def parts(onset: Onset) -> dict[str, str]:
    """The names of the parts that a fault hits."""
    machine, n = onset.machine, onset.part
    links = [name for name in machine.links if name != "eth0"]
    return {
        "gpu": list(machine.gpus)[n],
        "port": list(machine.ports)[n],
        "nic": f"0000:{_NICS[n]}:00",
        "link": links[n % len(links)],
        "disk": f"nvme{n}",
        "job": next(iter(machine.jobs), NO_JOB),
        "name": machine.name,
    }


def _event(one: Says, component: str, names: dict[str, str]) -> UnsentEvent:
    data = {
        key: value.format_map(names) if isinstance(value, str) else value for key, value in one.data.items()
    }
    return UnsentEvent(
        kind=one.kind,
        component=one.component.format_map(names) or component,
        severity=one.severity or SAID[one.kind].severity,
        data=data,
        evidence=", ".join(f"{key} {value}" for key, value in data.items()),
    )
