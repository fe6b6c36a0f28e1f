"""Actions of the brain on a whole InfiniBand fabric: its subnet managers, and the inspection of its links. Pure."""

from collections.abc import Mapping, Sequence

from agent.contract import fabric
from simulations.actions.base import ASK_S, FabricAction, SimulatedResult, failed, refused, succeeded
from simulations.changes import FixApplied, MasterChanges, after
from simulations.faults import Fix
from simulations.state import MachineState

WATCH_S = 60.0  # how long an inspection watches the counters
STANDBY_LID = 7


def _frozen(machines: Sequence[MachineState]) -> bool:
    return any(Fix.REPLACE_MASTER in fault.fixes for machine in machines for fault in machine.faults.values())


def show_managers(machines: Sequence[MachineState]) -> SimulatedResult:
    """Changes nothing."""
    text = "master frozen, one standby" if _frozen(machines) else "one master, one standby"
    return succeeded(f"{text} (simulated)", ASK_S)


def start_standby(_: Sequence[MachineState]) -> SimulatedResult:
    """Always refused: the standby runs."""
    return refused("a manager runs on every host already")


def stop_master(machines: Sequence[MachineState]) -> SimulatedResult:
    """The standby becomes master; refused while the master answers."""
    if not _frozen(machines):
        return refused("the master answers: it is not stopped")
    return succeeded(
        "the frozen master was stopped; the standby is master now (simulated)",
        1.2,
        after(1.0, MasterChanges(sm_lid=STANDBY_LID)),
        after(1.0, FixApplied(fix=Fix.REPLACE_MASTER, component="node")),
    )


def inspect(machines: Sequence[MachineState]) -> SimulatedResult:
    """Finds the ports whose errors grow, and those that lost their link; what it finds fails the step."""
    ports = [(machine.name, port) for machine in machines for port in machine.ports.values()]
    if not ports:
        return refused("no node has an InfiniBand port")
    found = [
        f"{node} {port.device} port 1: {'SymbolErrorCounter grows' if port.up else 'the link is gone'}"
        for node, port in ports
        if port.errors_per_s or not port.up
    ]
    text = f"{fabric.text(sum(port.up for _, port in ports), len(ports), found)} (simulated)"
    return failed(text, WATCH_S) if found else succeeded(text, WATCH_S)


ACTIONS: Mapping[str, FabricAction] = {
    "sm.status": show_managers,
    "sm.start_standby": start_standby,
    "sm.stop_master": stop_master,
    "fabric.inspect": inspect,
}
