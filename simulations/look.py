"""What the agent of a simulated machine tells when it looks again: agent.look. Pure."""

from collections.abc import Iterator

from agent.contract.look import RESTATED, concerns
from agent.contract.messages import Severity, UnsentEvent
from simulations import events
from simulations.state import MachineState

_IDLE_S = 600.0  # as long as a GPU must idle to be reported


def told_again(state: MachineState, component: str = "") -> list[UnsentEvent]:
    """The conditions that are present and those that are well, of one component's neighbourhood or (empty) of all."""
    present = [one for fault in state.faults.values() for one in fault.symptoms if one.kind in RESTATED]
    ill = {
        (one.kind, one.component)
        for fault in state.faults.values()
        for one in (
            *fault.symptoms,
            *fault.recovery,
        )  # an earlier fault of the kind says nothing of the one that is there
    }
    well = [
        one
        for fault in state.recovered.values()
        for one in fault.recovery
        if one.kind in RESTATED and (one.kind, one.component) not in ill
    ]
    told = {(one.kind, one.component) for one in present}
    parts = [one for one in _parts(state) if (one.kind, one.component) not in told]
    wanted = concerns(component)
    return [one for one in (*parts, *well, *present) if wanted(one.component)]


def blind(state: MachineState) -> tuple[str, ...]:
    """The agent's sources that cannot look: NVML's while it hangs."""
    hung = any(one.kind == "nvml.hung" for fault in state.faults.values() for one in fault.symptoms)
    return ("nvml",) if hung else ()


def is_present(unsent: UnsentEvent) -> bool:
    """Is it about something that is wrong?"""
    return unsent.severity is not Severity.INFO


def _parts(state: MachineState) -> Iterator[UnsentEvent]:
    if not blind(state):
        for gpu in state.gpus.values():
            yield events.gpu_answers(gpu) if gpu.present else events.gpu_lost(gpu)
            if gpu.present:
                yield events.gpu_idle(gpu, idle_s=_IDLE_S) if gpu.idle else events.gpu_busy(gpu)
    yield from (events.gpu_removed(gpu) for gpu in state.gpus.values() if gpu.removed)
    for port in state.ports.values():
        yield events.port_state(port, before="ACTIVE" if port.up else "DOWN")
    yield from (events.link_state(link) for link in state.links.values())
    yield from (events.unit_state(unit) for unit in state.units.values())
