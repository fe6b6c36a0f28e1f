"""A simulated machine: a deterministic state machine. Time is an argument; each change gives what its agent reports.

machine.apply(plan, now)            a drill begins, or anything else that changes the machine
machine.perform(action, ..., now)   begins an action of the node: it changes the machine, or is refused
machine.advance(now)                everything that is due until now: (time, event) in order
"""

import heapq
from collections.abc import Callable, Iterable

from agent.contract.lines import KernelReader
from agent.contract.messages import UnsentEvent
from simulations import changes as ch
from simulations import events, look
from simulations.actions import NODE_ACTIONS
from simulations.actions.base import ActionRequest, Params, SimulatedAction, SimulatedResult, refused
from simulations.changes import ScheduledChange, after
from simulations.faults import Fault, Fix
from simulations.parts import SimulatedGpu, SimulatedLink, SimulatedPort
from simulations.state import REHEARSAL, ActionTimes, MachineState

READ_S = 1.0  # pause between readings of the error counters
IDLE_CHECK_S = 300.0  # pause between reports of one idle GPU
SHOWS_S = 2.0  # until a part that is still broken shows it again
USER = "ann"  # whose jobs run
KERNEL = "6.1.0 (simulated)"
VERSION = "simulated"
# Changes that may be due on a healthy machine: they only report, or look again at what may be healed by then.
_HARMLESS = (ch.IdleChecked, ch.CountersRead, ch.LooksAgain, ch.CommandEnds, ch.SymptomsRepeat)
# What a boot fixes, in this order; a power cycle fixes CYCLE_POWER too.
_FIXED_BY_A_BOOT = (
    Fix.REBOOT,
    Fix.RESET_GPU,
    Fix.RESET_ALL_GPUS,
    Fix.RELOAD_DRIVER,
    Fix.RESET_NIC,
    Fix.RESET_PORT,
    Fix.LOAD_MODULE,
    Fix.RESTART_FABRIC_MANAGER,
    Fix.END_JOB,
)


class Machine:
    """One simulated node: its state, and the changes that are due."""

    def __init__(self, name: str, times: ActionTimes = REHEARSAL) -> None:
        self.name = name
        self.state = MachineState(name=name, times=times)
        self._due: list[tuple[float, int, ch.Change]] = []
        self._count = 0
        self._kernel = KernelReader()

    def healthy(self) -> bool:
        """Whether nothing is wrong with it, and nothing that is due can break it."""
        return self.state.healthy and all(isinstance(change, _HARMLESS) for _, _, change in self._due)

    def down(self, now: float) -> bool:
        """Whether no process runs on it now: it is off, boots, or hangs. One that is only unheard is not down."""
        return (self.state.goes_down and now < self.state.unreachable_until) or self.state.hung

    def apply(self, plan: Iterable[ScheduledChange], now: float) -> None:
        """Schedules these changes."""
        for scheduled in plan:
            self._count += 1
            heapq.heappush(self._due, (now + scheduled.delay_s, self._count, scheduled.change))

    def next_at(self) -> float | None:
        """When the next change is due; None: none is."""
        return self._due[0][0] if self._due else None

    def advance(self, now: float) -> list[tuple[float, UnsentEvent]]:
        """Makes all changes that are due until `now`; what the agent reports of them, with their times, in order."""
        out: list[tuple[float, UnsentEvent]] = []
        while self._due and self._due[0][0] <= now:
            at, _, change = heapq.heappop(self._due)
            out += [(at, event) for event in self._make(change, at)]
        return out

    def perform(self, action: str, params: Params, now: float) -> SimulatedResult:
        """Begins an action of the node, with checked parameters."""
        simulated = NODE_ACTIONS.get(action)
        if simulated is None:
            return refused(f"a simulated node cannot do {action}")
        return self.begin(simulated, ActionRequest(machine=self.state, params=params), now)

    def begin(self, action: SimulatedAction, request: ActionRequest, now: float) -> SimulatedResult:
        """Begins any action that is about this machine; its changes come while it runs."""
        result = action(request)
        self.apply(result.changes, now)
        return result

    def _make(self, change: ch.Change, at: float) -> list[UnsentEvent]:
        """Makes one change; what the agent reports of it."""
        match change:
            case ch.GpuLost() | ch.NvmlQueried() | ch.GpuRemoved() | ch.GpuReturned():
                return _change_presence(self.state.gpus[change.bdf], change)
            case ch.GpuIdles() | ch.IdleChecked() | ch.GpuReleased():
                return self._change_use(self.state.gpus[change.bdf], change, at)
            case ch.CudaErrorLogged():
                component = self.state.gpus[change.bdf].component
                return [events.cuda_error(component, name=change.name, job=change.job)]
            case ch.PortErrorsBegin() | ch.CountersRead() | ch.PortDown() | ch.PortUp():
                return self._change_port(self.state.ports[change.device], change, at)
            case ch.MasterChanges():
                return [
                    event
                    for port in self.state.ports.values()
                    for event in _change_master(port, change.sm_lid)
                ]
            case ch.CarrierLost() | ch.AdminDown() | ch.AdminUp():
                return _change_link(self.state.links[change.link], change)
            case ch.KernelLogs():
                return self._kernel.read(change.text)
            case ch.AgentSays(unsent=unsent):
                return [unsent]
            case ch.UnitChanges():
                unit = self.state.units[change.unit]
                changed, unit.active = unit.active != change.active, change.active
                return [events.unit_state(unit, result=change.result)] if changed else []
            case ch.JobStarts(job=job):
                self.state.jobs[job] = USER
                return []
            case ch.JobEnds(job=job):
                return self._end_job(job, at)
            case ch.LooksAgain(component=component):
                return look.told_again(self.state, component)
            case ch.CommandEnds():
                return [
                    events.command_result(
                        change.command,
                        change.outcome,
                        change.why,
                        change.took_s,
                        change.data,
                        blind=change.blind,
                    )
                ]
            case ch.GoesUnreachable():
                self.state.unreachable_until, self.state.goes_down = at + change.for_s, False
                return []
            case ch.GoesDown():
                self._go_down(change, at)
                return []
            case ch.Boots():
                return self._boot(change, at)
            case ch.DrainSet():
                self.state.drain_reason = change.reason
                return []
            case ch.FaultBegins(fault=fault) | ch.FaultReturns(fault=fault):
                return self._begin(fault, at)
            case ch.FaultGrows(fault=fault):
                return self._begin(fault, at) if fault.name in self.state.faults else []
            case ch.SymptomsRepeat(name=name):
                return self._symptoms(self.state.faults[name], at) if name in self.state.faults else []
            case ch.FixApplied():
                return self._fix(change, at)
            case ch.Repaired():
                return self._repair(change, at)

    def _make_all(self, changes: Iterable[ch.Change], at: float) -> list[UnsentEvent]:
        return [event for change in changes for event in self._make(change, at)]

    def _begin(self, fault: Fault, at: float) -> list[UnsentEvent]:
        self.state.faults[fault.name] = fault
        self.state.recovered.pop(fault.name, None)
        if fault.shows_after_s:
            self.apply([after(fault.shows_after_s, ch.SymptomsRepeat(name=fault.name))], at)
            return []
        return self._symptoms(fault, at)

    def _symptoms(self, fault: Fault, at: float) -> list[UnsentEvent]:
        if fault.repeat_s:
            self.apply([after(fault.repeat_s, ch.SymptomsRepeat(name=fault.name))], at)
        return [*fault.symptoms, *(event for line in fault.lines for event in self._kernel.read(line))]

    def _fix(self, change: ch.FixApplied, at: float) -> list[UnsentEvent]:
        """What it ends is over, for good or for a while; what it makes worse is another fault; the rest may show again."""
        fix, there = change.fix, self.state.faults
        about = (fix, change.component, change.target)
        out: list[UnsentEvent] = []
        for fault in list(there.values()):
            if fault.fixed_by(*about) or fault.seems_fixed_by(*about):
                self.state.recovered[fault.name] = there.pop(fault.name)
                out += fault.recovery
                if not fault.fixed_by(*about):
                    self.apply([after(fault.relapse_s, ch.FaultReturns(fault=fault))], at)
            elif (worse := fault.made_worse_by(*about)) is not None:
                out += self._begin(worse, at)
            elif fault.shows_again and fix is not Fix.TIME and fault.reached_by(change.component):
                self.apply([after(SHOWS_S, ch.SymptomsRepeat(name=fault.name))], at)
        return out

    def _keep_due(self, wanted: Callable[[ch.Change], bool]) -> None:
        """Drops what is due but such changes."""
        self._due = [one for one in self._due if wanted(one[2])]
        heapq.heapify(self._due)

    def _end_job(self, job: str, at: float) -> list[UnsentEvent]:
        self.state.jobs.pop(job, None)
        held = [gpu.bdf for gpu in self.state.gpus.values() if gpu.job == job]
        fix = ch.FixApplied(fix=Fix.END_JOB, component="node", target=job)
        return self._make_all([*(ch.GpuReleased(bdf=bdf) for bdf in held), fix], at)

    def _go_down(self, change: ch.GoesDown, at: float) -> None:
        """Its jobs end, and changes that were due are dropped; results of commands are reported after the boot, and what only
        seemed to end does return.
        """
        self.state.jobs.clear()
        self._keep_due(lambda change: isinstance(change, ch.CommandEnds | ch.FaultReturns))
        self.state.unreachable_until, self.state.goes_down = at + change.for_s, True
        if not self.state.off:
            self.apply([after(change.for_s, ch.Boots(power=change.power, in_order=change.in_order))], at)

    def _boot(self, change: ch.Boots, at: float) -> list[UnsentEvent]:
        state = self.state
        state.unreachable_until = at
        state.boots += 1
        for gpu in state.gpus.values():
            gpu.removed = False  # a new kernel has not had it
        fixes = (*_FIXED_BY_A_BOOT, Fix.CYCLE_POWER) if change.power else _FIXED_BY_A_BOOT
        powered = [gpu.bdf for gpu in state.gpus.values() if (change.power or gpu.warm) and not gpu.dead]
        out = [events.agent_started(VERSION, KERNEL, len(state.gpus), booted=True, in_order=change.in_order)]
        out += self._make_all((ch.FixApplied(fix=fix, component="node") for fix in fixes), at)
        out += self._make_all((ch.GpuReturned(bdf=bdf) for bdf in powered), at)
        out += self._make_all(self._restarts(), at)
        for fault in list(state.faults.values()):
            out += self._symptoms(fault, at)
        return out + [events.gpu_lost(gpu) for gpu in state.gpus.values() if not gpu.present]

    def _repair(self, change: ch.Repaired, at: float) -> list[UnsentEvent]:
        """What people do to a broken machine; it changes nothing on a healthy one."""
        state = self.state
        state.unreachable_until = 0.0
        self._keep_due(lambda change: not isinstance(change, ch.FaultReturns))
        if not change.stays_drained:
            state.drain_reason = ""
        for link in state.links.values():
            # a new cable; the carrier comes, and is told, when the interface is taken up
            link.stuck, link.cut = link.stuck or link.cut, False
        for port in state.ports.values():
            port.cut = False
        fix = ch.FixApplied(fix=Fix.REPAIR, component="node")
        cards = [ch.GpuReturned(bdf=bdf) for bdf in state.gpus]
        return self._make_all([fix, *cards, *self._restarts()], at)

    def _restarts(self) -> list[ch.Change]:
        """Every part that software can start is started."""
        state = self.state
        return [
            *(ch.GpuReleased(bdf=bdf) for bdf in state.gpus),
            *(ch.PortUp(device=device) for device in state.ports),
            *(ch.AdminUp(link=name) for name in state.links),
            *(ch.UnitChanges(unit=name, active="active") for name in state.units),
        ]

    def _change_use(
        self, gpu: SimulatedGpu, change: ch.GpuIdles | ch.IdleChecked | ch.GpuReleased, at: float
    ) -> list[UnsentEvent]:
        if isinstance(change, ch.GpuReleased):
            was_idle, gpu.idle, gpu.job, gpu.unit = gpu.idle, False, "", ""
            return [events.gpu_busy(gpu)] if was_idle else []
        if isinstance(change, ch.GpuIdles):
            gpu.idle, gpu.job, gpu.unit = True, change.job, change.unit
            if change.job:
                self.state.jobs[change.job] = USER
        if not gpu.idle:
            return []
        check = ch.IdleChecked(bdf=gpu.bdf, idle_s=change.idle_s + IDLE_CHECK_S)
        self.apply([after(IDLE_CHECK_S, check)], at)
        return [events.gpu_idle(gpu, idle_s=change.idle_s)]

    def _change_port(
        self,
        port: SimulatedPort,
        change: ch.PortErrorsBegin | ch.CountersRead | ch.PortDown | ch.PortUp,
        at: float,
    ) -> list[UnsentEvent]:
        before = "ACTIVE" if port.up else "DOWN"
        match change:
            case ch.PortErrorsBegin():
                counting, port.errors_per_s = bool(port.errors_per_s), change.per_s
                if not counting:
                    self._read_later(port, at)
                return []
            case ch.CountersRead():
                if not port.errors_per_s:
                    return []
                self._read_later(port, at)
                if not port.up:
                    return []
                delta = round(port.errors_per_s * READ_S)
                port.symbol_error += delta
                return [events.port_errors(port, delta=delta, interval_s=READ_S)]
            case ch.PortDown():
                port.up = False
                port.stuck, port.cut = port.stuck or change.stuck, port.cut or change.cut
                return [events.port_state(port, before=before)] if before == "ACTIVE" else []
            case ch.PortUp():
                port.up, port.stuck, port.errors_per_s = not port.cut, False, 0
                return [events.port_state(port, before=before)] if before == "DOWN" and port.up else []

    def _read_later(self, port: SimulatedPort, at: float) -> None:
        self.apply([after(READ_S, ch.CountersRead(device=port.device))], at)


def _change_presence(
    gpu: SimulatedGpu, change: ch.GpuLost | ch.NvmlQueried | ch.GpuRemoved | ch.GpuReturned
) -> list[UnsentEvent]:
    match change:
        case ch.GpuLost():
            gpu.present, gpu.dead, gpu.warm = False, change.dead, change.warm
            return []
        case ch.NvmlQueried():
            return [] if gpu.present else [events.gpu_lost(gpu)]
        case ch.GpuRemoved():
            gpu.removed = not gpu.present
            return [events.gpu_removed(gpu)] if gpu.removed else []
        case ch.GpuReturned():
            gpu.removed = False
            was_present, gpu.present, gpu.dead = gpu.present, True, False
            return [] if was_present else [events.gpu_returned(gpu)]


def _change_master(port: SimulatedPort, sm_lid: int) -> list[UnsentEvent]:
    before, port.sm_lid = port.sm_lid, sm_lid
    return [events.master_changed(port, before=before)] if before != sm_lid else []


def _change_link(
    link: SimulatedLink, change: ch.CarrierLost | ch.AdminDown | ch.AdminUp
) -> list[UnsentEvent]:
    before = (link.admin_up, link.carrier)
    match change:
        case ch.CarrierLost():
            link.stuck, link.cut = True, link.cut or change.cut
        case ch.AdminDown():
            link.admin_up = False
        case ch.AdminUp():
            link.admin_up, link.stuck = True, False
    return [events.link_state(link)] if (link.admin_up, link.carrier) != before else []
