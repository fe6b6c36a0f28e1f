"""Actions of a node on its GPUs and their driver. Pure."""

from collections.abc import Mapping

from agent.contract import components
from agent.contract.figures import Figure
from simulations.actions.base import (
    ASK_S,
    COLLECT_S,
    ActionRequest,
    SimulatedAction,
    SimulatedResult,
    failed,
    faulty_gpus,
    fixed,
    jobs_hold_gpus,
    measured,
    no_unit,
    refused,
    succeeded,
)
from simulations.changes import FixApplied, UnitChanges, after
from simulations.faults import Fix
from simulations.parts import FABRIC_MANAGER
from simulations.state import MachineState


def reset_gpu(request: ActionRequest) -> SimulatedResult:
    """Refused for a GPU that is off the bus, and while a job holds GPUs."""
    machine, component = request.machine, str(request.params.get("gpu", components.NODE))
    if machine.jobs:
        return jobs_hold_gpus(machine)
    if component == components.NODE:
        return fixed(
            "all GPUs were reset", request.times.reset_s, component, Fix.RESET_GPU, Fix.RESET_ALL_GPUS
        )
    if not _on_bus(machine, component):
        return refused(f"{component} is not on the bus: it cannot be reset in band")
    return fixed(f"{component} was reset", request.times.reset_s, component, Fix.RESET_GPU)


def limit_power(request: ActionRequest) -> SimulatedResult:
    """Refused for a GPU that is off the bus. `node`: of all GPUs."""
    component = request.text("gpu")
    if component != components.NODE and not _on_bus(request.machine, component):
        return refused(f"there is no {component} on this node")
    text = f"{component}: {request.params['percent']:g} % of its default limit"
    return fixed(text, ASK_S, component, Fix.LIMIT_POWER)


def restore_power(_: ActionRequest) -> SimulatedResult:
    """Changes nothing that is simulated."""
    return succeeded("the power limits are as they were", ASK_S)


def _on_bus(machine: MachineState, component: str) -> bool:
    gpu = machine.gpus.get(components.name_of(component))
    return gpu is not None and gpu.present


def enable_persistence(request: ActionRequest) -> SimulatedResult:
    """Ends that it is off."""
    fix = FixApplied(fix=Fix.PERSISTENCE, component=request.text("gpu") or components.NODE)
    return succeeded("persistence mode is on", ASK_S, after(ASK_S, fix))


def diagnose(request: ActionRequest) -> SimulatedResult:
    """Fails when a GPU is lost or has a fault; refused while a job holds GPUs."""
    machine = request.machine
    if machine.jobs:
        return jobs_hold_gpus(machine)
    if faulty := faulty_gpus(machine):
        return failed(f"the diagnosis failed at {', '.join(faulty)}", request.times.test_s)
    return succeeded(f"dcgmi diag -r {request.params['level']}: all passed (simulated)", request.times.test_s)


def check_links(request: ActionRequest) -> SimulatedResult:
    """Fails when a GPU is lost, or has a fault."""
    faulty = faulty_gpus(request.machine)
    figures = (
        Figure(name="gpus", value=sum(gpu.present for gpu in request.machine.gpus.values())),
        Figure(name="gpu.pcie_lanes", value=16),
        Figure(name="gpu.nvlinks", value=17 if faulty else 18),
    )
    if faulty:
        return measured(failed(f"links are not as expected: {', '.join(faulty)}", ASK_S), *figures)
    return measured(
        succeeded("8 GPUs answer, PCIe x16 or more, 18 NVLinks each (simulated)", ASK_S), *figures
    )


def rescan(request: ActionRequest) -> SimulatedResult:
    """Finds only what answers on the bus."""
    return fixed("the PCI bus was scanned again", COLLECT_S, request.text("gpu"), Fix.RESCAN_PCI)


def reload_driver(request: ActionRequest) -> SimulatedResult:
    """Refused while a job holds GPUs."""
    if request.machine.jobs:
        return jobs_hold_gpus(request.machine)
    return fixed("the NVIDIA driver was reloaded", request.times.reset_s, components.NODE, Fix.RELOAD_DRIVER)


def restart_fabric_manager(request: ActionRequest) -> SimulatedResult:
    """Its unit is active again."""
    if FABRIC_MANAGER not in request.machine.units:
        return no_unit(request.machine, FABRIC_MANAGER)
    reset_s = request.times.reset_s
    return succeeded(
        f"{FABRIC_MANAGER} was restarted",
        reset_s,
        after(reset_s, UnitChanges(unit=FABRIC_MANAGER, active="active")),
        after(reset_s, FixApplied(fix=Fix.RESTART_FABRIC_MANAGER, component=components.NODE)),
    )


ACTIONS: Mapping[str, SimulatedAction] = {
    "gpu.reset": reset_gpu,
    "gpu.power_limit": limit_power,
    "gpu.power_restore": restore_power,
    "gpu.persistence": enable_persistence,
    "gpu.diagnose": diagnose,
    "gpu.links_check": check_links,
    "pci.rescan": rescan,
    "driver.reload": reload_driver,
    "fabricmanager.restart": restart_fabric_manager,
}
