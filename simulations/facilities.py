"""What stands around simulated machines: scheduler, BMCs, subnet managers, switches. Pure.

The actions that the brain performs itself, done to simulated machines: the same table as `brain/core/actions.py` (a
test compares), and no way to anything else (law 9).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.contract import fabric
from agent.contract.commands import Outcome
from agent.contract.messages import Scalar
from simulations import changes as ch
from simulations.ailments import Cure
from simulations.changes import After
from simulations.machines import Machine
from simulations.remedies import ASK_S, BOOT_S, TRAIN_S, Performed, refused

INSPECT = "fabric.inspect"
WATCH_S = 60.0  # how long it watches the counters
MARK = "gpuward"  # begins the reason of our own drains, as in brain/actions/base.py
STANDBY_LID = 7
SILENT_SM = "silent subnet manager"  # the ailment of each node under a frozen master
_Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What a facility did, and to which machines it may have news."""

    performed: Performed
    touched: tuple[str, ...] = ()


class Facilities:
    """All of one cell. What it remembers of a machine (drain, jobs, power) stands at the machine."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._machines = machines

    def perform(self, action: str, node: str, params: _Params, why: str, now: float) -> Deed:
        """Begins an action of the brain; what it does to machines comes while it runs."""
        if action.startswith("sm."):
            return self._managers(action, now)
        if action == INSPECT:
            return Deed(performed=self._inspect())
        machine = self._machines.get(node)
        deed = DEEDS.get(action)
        if machine is None or deed is None:
            return Deed(performed=refused(f"no simulated {action} for {node or 'a fabric'}"))
        performed = deed(machine, params, why)
        machine.apply(performed.then, now)
        return Deed(performed=performed, touched=(node,))

    def _managers(self, action: str, now: float) -> Deed:
        frozen = any(SILENT_SM in one.ailments for one in self._machines.values())
        if action == "sm.status":
            text = "master frozen, one standby" if frozen else "one master, one standby"
            return Deed(performed=Performed(outcome=Outcome.OK, why=f"{text} (simulated)", took_s=ASK_S))
        if action == "sm.start_standby":
            return Deed(performed=refused("a manager runs on every host already"))
        if not frozen:
            return Deed(performed=refused("the master answers: it is not stopped"))
        for machine in self._machines.values():
            machine.apply(
                (
                    After(s=1.0, change=ch.MasterMoves(sm_lid=STANDBY_LID)),
                    After(s=1.0, change=ch.Treated(cure=Cure.MANAGER, component="node")),
                ),
                now,
            )
        why = "the frozen master was stopped; the standby is master now (simulated)"
        return Deed(
            performed=Performed(outcome=Outcome.OK, why=why, took_s=1.2), touched=tuple(self._machines)
        )

    def _inspect(self) -> Performed:
        """fabric.inspect: ports whose errors grow, and those that lost their link."""
        ports = [
            (machine.name, port) for machine in self._machines.values() for port in machine.ports.values()
        ]
        if not ports:
            return refused("no node has an InfiniBand port")
        found = [
            f"{node} {port.device} port 1: {'SymbolErrorCounter grows' if port.up else 'the link is gone'}"
            for node, port in ports
            if port.errors_per_s or not port.up
        ]
        why = fabric.text(sum(port.up for _, port in ports), len(ports), found)
        outcome = Outcome.FAILED if found else Outcome.OK
        return Performed(outcome=outcome, why=f"{why} (simulated)", took_s=WATCH_S)


def _ok(why: str, took_s: float = ASK_S, *then: After) -> Performed:
    return Performed(outcome=Outcome.OK, why=f"{why} (simulated)", took_s=took_s, then=then)


def _drain(machine: Machine, params: _Params, why: str) -> Performed:
    """Simulated jobs do not end by themselves: those that are there after the drain stay."""
    what = str(params.get("then", "fail"))
    if machine.drained and not machine.drained.startswith(MARK):
        return _ok(f"left as it is: {machine.drained}")
    drained = After(s=0, change=ch.Drained(why=f"{MARK}: {why}"))
    jobs = ", ".join(machine.jobs)
    if not jobs or what == "go_on":
        return _ok("drained", ASK_S, drained)
    if what == "requeue":
        ends = (After(s=ASK_S, change=ch.JobEnds(job=job)) for job in machine.jobs)
        return _ok(f"drained; requeued {jobs}", ASK_S, drained, *ends)
    undone = (After(s=ASK_S, change=ch.Drained(why="")),) if what == "undo" else ()
    return Performed(
        outcome=Outcome.FAILED, why=f"jobs are left: {jobs}", took_s=ASK_S, then=(drained, *undone)
    )


def _resume(machine: Machine, _params: _Params, _why: str) -> Performed:
    """Law 3: only our own drain."""
    if not machine.drained.startswith(MARK):
        return _ok(f"there is no drain of ours: {machine.drained or 'none at all'}")
    return _ok("resumed", ASK_S, After(s=0, change=ch.Drained(why="")))


def _requeue(machine: Machine, params: _Params, _why: str) -> Performed:
    job = str(params["job"])
    if job not in machine.jobs:
        return refused(f"no job {job} runs on {machine.name}")
    return _ok(f"job {job} was requeued", ASK_S, After(s=ASK_S, change=ch.JobEnds(job=job)))


def _jobs(machine: Machine, _params: _Params, _why: str) -> Performed:
    return _ok("; ".join(f"{job} of {user}" for job, user in machine.jobs.items()) or "no jobs")


def _scheduler_reboot(machine: Machine, _params: _Params, why: str) -> Performed:
    if machine.jobs:
        return Performed(outcome=Outcome.FAILED, why=f"never idle: {', '.join(machine.jobs)}", took_s=ASK_S)
    down = After(s=ASK_S, change=ch.GoesDown(for_s=BOOT_S))
    return _ok("rebooted", BOOT_S + 2 * ASK_S, After(s=0, change=ch.Drained(why=f"{MARK}: {why}")), down)


def _bmc_evidence(machine: Machine, _params: _Params, _why: str) -> Performed:
    return _ok(f"power {'off' if machine.off else 'on'}; fans and supplies well; no new events")


def _power_on(machine: Machine, _params: _Params, _why: str) -> Performed:
    if not machine.off:
        return _ok("it is on already")
    return _ok("switched on", 0.5, After(s=0, change=ch.GoesDown(for_s=BOOT_S, power=True)))


def _power_off(_machine: Machine, _params: _Params, _why: str) -> Performed:
    return _ok("switched off", 0.5, After(s=0, change=ch.GoesDown(for_s=math.inf)))


def _power_cycle(_machine: Machine, _params: _Params, _why: str) -> Performed:
    return _ok("off and on again", 0.5, After(s=0, change=ch.GoesDown(for_s=BOOT_S, power=True)))


def _restart(machine: Machine, _params: _Params, _why: str) -> Performed:
    if machine.off:
        return refused(f"{machine.name} is off: bmc.power_on switches it on")
    return _ok("restarted", 0.5, After(s=0, change=ch.GoesDown(for_s=BOOT_S)))


def _isolate(_machine: Machine, _params: _Params, why: str) -> Performed:
    drained = After(s=0, change=ch.Drained(why=f"{MARK}: {why}"))
    return _ok("drained, shut down, off", 1.0, drained, After(s=0.5, change=ch.GoesDown(for_s=math.inf)))


def _switch(*changes: Callable[[str], ch.Change]) -> Callable[[Machine, _Params, str], Performed]:
    """Changes to the node's end of the cable, one after the other: what it sees of the switch's end."""

    def deed(machine: Machine, params: _Params, _why: str) -> Performed:
        component = str(params["component"])
        kind, _, name = component.partition("/")
        device = name.removesuffix(".1")
        if kind == "link" and name in machine.links:
            return _ok(f"the switch's end of {component} was set")
        if device not in machine.ports:
            return refused(f"no switch port is known opposite {component}")
        then = [After(s=n * TRAIN_S, change=change(device)) for n, change in enumerate(changes)]
        return _ok(f"the switch's end of {component} was set", TRAIN_S * len(changes), *then)

    return deed


def _down(device: str) -> ch.Change:
    return ch.PortDown(device=device)


def _up(device: str) -> ch.Change:
    return ch.PortUp(device=device)


DEEDS: Mapping[str, Callable[[Machine, _Params, str], Performed]] = {
    "scheduler.drain": _drain,
    "scheduler.resume": _resume,
    "scheduler.requeue": _requeue,
    "scheduler.reboot": _scheduler_reboot,
    "scheduler.jobs": _jobs,
    "bmc.evidence": _bmc_evidence,
    "bmc.power_on": _power_on,
    "bmc.power_off": _power_off,
    "bmc.power_cycle": _power_cycle,
    "bmc.restart": _restart,
    "bmc.nmi": _restart,
    "node.isolate": _isolate,
    "switch.port_bounce": _switch(_down, _up),
    "switch.port_disable": _switch(_down),
    "switch.port_enable": _switch(_up),
}
FABRIC_DEEDS = ("sm.status", "sm.start_standby", "sm.stop_master", INSPECT)
