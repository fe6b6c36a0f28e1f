"""Actions of a node on its services, modules, jobs and itself. Pure."""

from collections.abc import Mapping

from agent.contract import components
from agent.contract.commands import Outcome
from agent.contract.figures import Figure
from agent.contract.look import blind_sources
from agent.contract.messages import clip
from simulations import look
from simulations.actions.base import (
    ASK_S,
    COLLECT_S,
    ActionRequest,
    SimulatedAction,
    SimulatedResult,
    failed,
    faulty_gpus,
    jobs_hold_gpus,
    measured,
    no_unit,
    refused,
    succeeded,
)
from simulations.changes import FixApplied, GoesDown, GpuReleased, JobEnds, LooksAgain, UnitChanges, after
from simulations.faults import Fix
from simulations.state import MachineState

STOP_S = 0.2  # stopping a unit
START_S = 0.6  # starting it


def restart_service(request: ActionRequest) -> SimulatedResult:
    """The unit comes up again and releases the GPUs that it held."""
    machine, name, stay_s = request.machine, request.text("unit"), request.number("stay_s", 2.0)
    if name not in machine.units:
        return no_unit(machine, name)
    up_s = STOP_S + START_S
    held = [gpu.bdf for gpu in machine.gpus.values() if gpu.idle and gpu.unit == name]
    return succeeded(
        f"{name} active for {stay_s:g} s",
        up_s + stay_s,
        after(STOP_S, UnitChanges(unit=name, active="inactive", result="success")),
        after(up_s, UnitChanges(unit=name, active="active")),
        after(up_s, FixApplied(fix=Fix.RESTART_SERVICE, component=f"service/{name}")),
        *(after(up_s, GpuReleased(bdf=bdf)) for bdf in held),
    )


def start_service(request: ActionRequest) -> SimulatedResult:
    """The unit is active."""
    return _set_unit(request.machine, request.text("unit"), "active", START_S)


def stop_service(request: ActionRequest) -> SimulatedResult:
    """The unit is inactive."""
    return _set_unit(request.machine, request.text("unit"), "inactive", STOP_S)


def _set_unit(machine: MachineState, name: str, active: str, took_s: float) -> SimulatedResult:
    if name not in machine.units:
        return no_unit(machine, name)
    return succeeded(f"{name} is {active}", took_s, after(took_s, UnitChanges(unit=name, active=active)))


def load_module(request: ActionRequest) -> SimulatedResult:
    """Fixes faults of these modules only."""
    modules = request.text("module").split()
    fixes = [FixApplied(fix=Fix.LOAD_MODULE, component=components.NODE, target=module) for module in modules]
    return succeeded(
        "; ".join(f"{module} loaded" for module in modules), ASK_S, *(after(ASK_S, fix) for fix in fixes)
    )


def reboot(request: ActionRequest) -> SimulatedResult:
    """The node is unreachable for a while, and comes back with another boot id."""
    boot_s = request.times.boot_s
    return succeeded("back with another boot id", ASK_S + boot_s + 0.1, after(ASK_S, GoesDown(for_s=boot_s)))


def signal_job(request: ActionRequest) -> SimulatedResult:
    """Ends a job; refused when none of its processes is on the node."""
    job = request.text("job")
    if job not in request.machine.jobs:
        return refused(f"job {job} has no process on this node")
    return succeeded(f"job {job} was signalled", ASK_S, after(ASK_S, JobEnds(job=job)))


def collect_evidence(request: ActionRequest) -> SimulatedResult:
    """Changes nothing."""
    return succeeded(f"evidence about {request.text('component')} collected (simulated)", COLLECT_S)


def look_again(request: ActionRequest) -> SimulatedResult:
    """The agent tells what lasts; while NVML hangs it is blind there."""
    component = str(request.params.get("component", ""))
    present = [
        f"{one.kind} {one.component}"
        for one in look.told_again(request.machine, component)
        if look.is_present(one)
    ]
    count = len(present)
    text = f"{count or 'no'} condition{' is' if count == 1 else 's are'} present"
    text += f": {', '.join(present[:12])}" if count else ""
    blind = blind_sources(look.blind(request.machine))
    return SimulatedResult(
        outcome=Outcome.OK,
        why=clip(text),
        took_s=COLLECT_S,
        changes=(after(ASK_S, LooksAgain(component=component)),),
        blind=blind,
    )


def find_usage(request: ActionRequest) -> SimulatedResult:
    """Changes nothing."""
    text = f"largest below {request.text('mount')}: ann/checkpoints 41 TB, tmp 3 TB (simulated)"
    return succeeded(text, COLLECT_S)


def accept(request: ActionRequest) -> SimulatedResult:
    """Measures an all-reduce, which a GPU with a fault slows down; not while a job holds GPUs."""
    machine = request.machine
    if machine.jobs:
        return jobs_hold_gpus(machine)
    faulty = faulty_gpus(machine)
    figure = Figure(name="all_reduce.bus_gb_per_s", value=90.0 if faulty else 370.0)
    if faulty:
        return measured(
            failed("acceptance failed: all_reduce bus_gb_per_s is 90", request.times.test_s), figure
        )
    return measured(succeeded("acceptance: all_reduce passed (simulated)", request.times.test_s), figure)


ACTIONS: Mapping[str, SimulatedAction] = {
    "service.restart": restart_service,
    "service.start": start_service,
    "service.stop": stop_service,
    "module.load": load_module,
    "node.accept": accept,
    "node.reboot": reboot,
    "process.signal": signal_job,
    "agent.look": look_again,
    "evidence.collect": collect_evidence,
    "fs.usage": find_usage,
}
