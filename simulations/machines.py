"""A simulated node: a deterministic state machine. Time is an argument; changes give what its agent reports.

machine.apply(plan, now)          a fault (or anything else) begins
machine.perform(action, ...)      what an agent would do on it: changes its state, or is refused
machine.advance(now)              everything that is due until now: (when, draft) in order
"""

import heapq
import math
from collections.abc import Iterable, Mapping

from agent.contract.commands import Outcome
from agent.contract.lines import KernelReader
from agent.contract.messages import Draft, Scalar, Severity
from simulations import changes as ch
from simulations import parts
from simulations.ailments import Ailment, Cure
from simulations.parts import Gpu, Link, Port, Unit
from simulations.remedies import REMEDIES, Performed

READ_S = 1.0  # pause between readings of the error counters
IDLE_AGAIN_S = 300.0  # pause between reports of one idle GPU
KERNEL = "6.1.0 (simulated)"
VERSION = "simulated"
# These look again at what may be healed by then, or only report.
_WATCHING = (ch.IdleGoesOn, ch.ErrorsGoOn, ch.CommandEnds, ch.SaysAgain)
_BUSES = ("1b", "29", "45", "4e", "9b", "ab", "c1", "d0")


class Machine:
    """One node with 8 GPUs, 8 InfiniBand ports, 3 links, the usual services, and what stands around it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.gpus = {f"0000:{bus}:00": Gpu(bdf=f"0000:{bus}:00", index=n) for n, bus in enumerate(_BUSES)}
        self.ports = {f"mlx5_{n}": Port(device=f"mlx5_{n}") for n in range(8)}
        self.links = {name: Link(name=name) for name in (parts.CONTROL_LINK, "eth1", "eth2")}
        self.units = {name: Unit(name=name) for name in parts.UNITS}
        self.ailments: dict[str, Ailment] = {}
        self.jobs: dict[str, str] = {}  # job -> user, as the scheduler knows them
        self.drained = ""  # why the scheduler gives it no jobs
        self.boots = 0
        self.silent_until = 0.0
        self._coming: list[tuple[float, int, ch.Change]] = []
        self._count = 0
        self._kernel = KernelReader()

    def silent(self, now: float) -> bool:
        """Does nobody hear from it, nor it from anybody?"""
        return now < self.silent_until or self.hung

    @property
    def hung(self) -> bool:
        """Does its kernel hang?"""
        return any(ailment.hangs for ailment in self.ailments.values())

    @property
    def off(self) -> bool:
        """Is it switched off?"""
        return self.silent_until == math.inf

    def healthy(self) -> bool:
        """Is nothing wrong with it, and nothing about to be?"""
        return (
            all(isinstance(change, _WATCHING) for _, _, change in self._coming)
            and all(gpu.present and not gpu.idle for gpu in self.gpus.values())
            and all(port.up and not port.errors_per_s for port in self.ports.values())
            and all(link.carrier for link in self.links.values())
            and all(unit.active == "active" for unit in self.units.values())
            and not (self.ailments or self.drained or self.off)
        )

    def apply(self, plan: Iterable[ch.After], now: float) -> None:
        """Lets these changes come."""
        for after in plan:
            self._count += 1
            heapq.heappush(self._coming, (now + after.s, self._count, after.change))

    def next_at(self) -> float | None:
        """When the next change comes; None: nothing is under way."""
        return self._coming[0][0] if self._coming else None

    def advance(self, now: float) -> list[tuple[float, Draft]]:
        """All changes up to `now`: when each came about and what the agent reports of it, in order."""
        out: list[tuple[float, Draft]] = []
        while self._coming and self._coming[0][0] <= now:
            at, _, change = heapq.heappop(self._coming)
            out += [(at, draft) for draft in self._do(change, at)]
        return out

    def perform(self, action: str, params: Mapping[str, Scalar], now: float) -> Performed:
        """Begins an action with checked parameters; its changes come while it runs."""
        remedy = REMEDIES.get(action)
        if remedy is None:
            return Performed(outcome=Outcome.REFUSED, why=f"a simulated node cannot do {action}")
        performed = remedy(self, params)
        self.apply(performed.then, now)
        return performed

    def _do(self, change: ch.Change, at: float) -> list[Draft]:
        match change:
            case ch.KernelSays():
                return self._kernel.read(change.text)
            case ch.GpuLost() | ch.NvmlAsks() | ch.GpuRemoved() | ch.GpuReturned():
                return _presence(self.gpus[change.bdf], change)
            case ch.GpuIdles() | ch.IdleGoesOn() | ch.GpuFreed():
                return self._use(self.gpus[change.bdf], change, at)
            case ch.JobFails():
                return [parts.cuda_error(self.gpus[change.bdf].component, name=change.name, job=change.job)]
            case ch.PortErrs() | ch.ErrorsGoOn() | ch.PortDown() | ch.PortUp():
                return self._port(self.ports[change.device], change, at)
            case ch.MasterMoves():
                return [draft for port in self.ports.values() for draft in _new_master(port, change.sm_lid)]
            case ch.CarrierLost() | ch.AdminDown() | ch.AdminUp():
                return _link(self.links[change.link], change)
            case ch.UnitIs():
                unit = self.units[change.unit]
                changed, unit.active = unit.active != change.active, change.active
                return [parts.unit_state(unit, result=change.result)] if changed else []
            case ch.JobBegins(job=job):
                self.jobs[job] = parts.USER
                return []
            case ch.FallsIll() | ch.SaysAgain() | ch.Treated() | ch.JobEnds():
                return self._ail(change, at)
            case ch.GoesDown() | ch.Boots() | ch.FallsSilent():
                return self._power(change, at)
            case ch.Drained():
                self.drained = change.why
                return []
            case ch.Mended():
                return [draft for part in self._mending() for draft in self._do(part, at)]
            case ch.CommandEnds():
                return [parts.command_result(change.command, change.outcome, change.why, change.took_s)]

    def _ail(self, change: ch.FallsIll | ch.SaysAgain | ch.Treated | ch.JobEnds, at: float) -> list[Draft]:
        match change:
            case ch.FallsIll(ailment=ailment):
                self.ailments[ailment.name] = ailment
                return self._signs(ailment, at)
            case ch.SaysAgain(name=name):
                return self._signs(self.ailments[name], at) if name in self.ailments else []
            case ch.JobEnds(job=job):
                self.jobs.pop(job, None)
                freed = [ch.GpuFreed(bdf=gpu.bdf) for gpu in self.gpus.values() if gpu.job == job]
                gone = ch.Treated(cure=Cure.REQUEUE, component="node", what=job)
                changes: list[ch.Change] = [*freed, gone]
                return [draft for one in changes for draft in self._do(one, at)]
            case ch.Treated(cure=cure, component=component, what=what):
                cured = [one for one in self.ailments.values() if one.cured_by(cure, component, what)]
                for one in cured:
                    del self.ailments[one.name]
                return [draft for one in cured for draft in one.relief]

    def _signs(self, ailment: Ailment, at: float) -> list[Draft]:
        if ailment.again_s:
            self.apply([ch.After(s=ailment.again_s, change=ch.SaysAgain(name=ailment.name))], at)
        return list(ailment.signs)

    def _power(self, change: ch.GoesDown | ch.Boots | ch.FallsSilent, at: float) -> list[Draft]:
        if isinstance(change, ch.FallsSilent):
            self.silent_until = at + change.for_s
            return []
        if isinstance(change, ch.GoesDown):
            # What was about to happen on it dies with it; commands report their end still.
            self._coming = [one for one in self._coming if isinstance(one[2], ch.CommandEnds)]
            heapq.heapify(self._coming)
            self.silent_until = at + change.for_s
            if not self.off:
                self.apply([ch.After(s=change.for_s, change=ch.Boots(power=change.power))], at)
            return []
        self.silent_until = at
        self.boots += 1
        self.jobs.clear()
        out = [parts.agent_started(VERSION, KERNEL, len(self.gpus))]
        for one in self._booting(power=change.power):
            out += self._do(one, at)
        for ailment in list(self.ailments.values()):
            out += self._signs(ailment, at)
        return out + [parts.gpu_lost(gpu) for gpu in self.gpus.values() if not gpu.present]

    def _booting(self, *, power: bool) -> list[ch.Change]:
        cures: tuple[Cure, ...] = (
            Cure.REBOOT,
            Cure.RESET,
            Cure.RESET_ALL,
            Cure.RELOAD,
            Cure.CARD,
            Cure.PORT,
            Cure.MODULE,
        )
        cures = (*cures, Cure.FABRIC_MANAGER, Cure.REQUEUE, *((Cure.POWER,) if power else ()))
        back = [ch.GpuReturned(bdf=gpu.bdf) for gpu in self.gpus.values() if power and not gpu.dead]
        return [
            *(ch.Treated(cure=cure, component="node") for cure in cures),
            *back,
            *(ch.GpuFreed(bdf=gpu.bdf) for gpu in self.gpus.values()),
            *(ch.PortUp(device=port.device) for port in self.ports.values()),
            *(ch.AdminUp(link=link.name) for link in self.links.values()),
            *(ch.UnitIs(unit=unit.name, active="active") for unit in self.units.values()),
        ]

    def _mending(self) -> list[ch.Change]:
        """What people do to a broken machine; nothing to a whole one."""
        self.silent_until, self.drained = 0.0, ""
        for link in self.links.values():
            link.cut = False
        for port in self.ports.values():
            port.cut = False
        return [
            ch.Treated(cure=Cure.PEOPLE, component="node"),
            *(ch.GpuReturned(bdf=gpu.bdf) for gpu in self.gpus.values()),
            *(ch.GpuFreed(bdf=gpu.bdf) for gpu in self.gpus.values()),
            *(ch.PortUp(device=port.device) for port in self.ports.values()),
            *(ch.AdminUp(link=link.name) for link in self.links.values()),
            *(ch.UnitIs(unit=unit.name, active="active") for unit in self.units.values()),
        ]

    def _use(self, gpu: Gpu, change: ch.GpuIdles | ch.IdleGoesOn | ch.GpuFreed, at: float) -> list[Draft]:
        if isinstance(change, ch.GpuFreed):
            was, gpu.idle, gpu.job, gpu.unit = gpu.idle, False, "", ""
            return [parts.gpu_busy(gpu)] if was else []
        if isinstance(change, ch.GpuIdles):
            gpu.idle, gpu.job, gpu.unit = True, change.job, change.unit
            if change.job:
                self.jobs[change.job] = parts.USER
        if not gpu.idle:
            return []
        again = ch.IdleGoesOn(bdf=gpu.bdf, idle_s=change.idle_s + IDLE_AGAIN_S)
        self.apply([ch.After(s=IDLE_AGAIN_S, change=again)], at)
        return [parts.gpu_idle(gpu, idle_s=change.idle_s)]

    def _port(
        self, port: Port, change: ch.PortErrs | ch.ErrorsGoOn | ch.PortDown | ch.PortUp, at: float
    ) -> list[Draft]:
        match change:
            case ch.PortErrs():
                running, port.errors_per_s = bool(port.errors_per_s), change.per_s
                if not running:
                    self._read_again(port, at)
                return []
            case ch.ErrorsGoOn():
                if not port.errors_per_s:
                    return []
                self._read_again(port, at)
                if not port.up:
                    return []
                delta = round(port.errors_per_s * READ_S)
                port.symbol_error += delta
                return [parts.port_errors(port, delta=delta, interval_s=READ_S)]
            case ch.PortDown():
                before, port.up = "ACTIVE" if port.up else "DOWN", False
                port.stuck, port.cut = port.stuck or change.stuck, port.cut or change.cut
                return [parts.port_state(port, before=before)] if before == "ACTIVE" else []
            case ch.PortUp():
                before, port.up, port.errors_per_s = "ACTIVE" if port.up else "DOWN", not port.cut, 0
                port.stuck = False
                return [parts.port_state(port, before=before)] if before == "DOWN" and port.up else []

    def _read_again(self, port: Port, at: float) -> None:
        self.apply([ch.After(s=READ_S, change=ch.ErrorsGoOn(device=port.device))], at)


def _presence(gpu: Gpu, change: ch.GpuLost | ch.NvmlAsks | ch.GpuRemoved | ch.GpuReturned) -> list[Draft]:
    match change:
        case ch.GpuLost():
            gpu.present, gpu.dead = False, change.dead
            return []
        case ch.NvmlAsks():
            return [] if gpu.present else [parts.gpu_lost(gpu)]
        case ch.GpuRemoved():
            return [] if gpu.present else [parts.gpu_removed(gpu)]
        case ch.GpuReturned():
            was, gpu.present, gpu.dead = gpu.present, True, False
            return [] if was else [parts.gpu_returned(gpu)]


def _new_master(port: Port, sm_lid: int) -> list[Draft]:
    before, port.sm_lid = port.sm_lid, sm_lid
    if before == sm_lid:
        return []
    return [
        Draft(
            kind="ib.sm_lid",
            component=port.component,
            severity=Severity.WARNING,
            data={"sm_lid": sm_lid, "before": before},
            evidence=f"{port.device} port 1 sm_lid {before} -> {sm_lid}",
        )
    ]


def _link(link: Link, change: ch.CarrierLost | ch.AdminDown | ch.AdminUp) -> list[Draft]:
    before = (link.admin_up, link.carrier)
    match change:
        case ch.CarrierLost():
            link.stuck, link.cut = True, link.cut or change.cut
        case ch.AdminDown():
            link.admin_up = False
        case ch.AdminUp():
            link.admin_up, link.stuck = True, False
    return [parts.link_state(link)] if (link.admin_up, link.carrier) != before else []
