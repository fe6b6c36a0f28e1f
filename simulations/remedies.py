"""What the actions of an agent do to a simulated machine. Pure; parameters have been checked already.

Whether an action helps is decided by the machine's state, not here: a bounced link gets its carrier only if
it was stuck, not if its cable is cut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.contract import components, subnet
from agent.contract.commands import Outcome
from agent.contract.messages import Scalar
from simulations.changes import AdminDown, AdminUp, After, GpuFreed, GpuReturned, PortDown, PortUp, UnitIs
from simulations.parts import CONTROL_LINK

if TYPE_CHECKING:
    from simulations.machines import Machine

STOP_S = 0.2  # stopping a unit
START_S = 0.6  # and starting it
TRAIN_S = 1.0  # a link trains
COLLECT_S = 0.5
ASK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """How an action will have ended `took_s` after its beginning, and what it does to the machine."""

    outcome: Outcome
    why: str
    took_s: float = 0.0
    then: tuple[After, ...] = ()


def restart_service(machine: "Machine", params: Mapping[str, Scalar]) -> Performed:
    """service.restart: the unit comes up again and lets go of the GPUs that it held."""
    name, stay_s = str(params["unit"]), float(params.get("stay_s", 2.0))
    if name not in machine.units:
        return _refused(f"{name} is not a unit of this node (have: {', '.join(machine.units)})")
    up_s = STOP_S + START_S
    then = [
        After(s=STOP_S, change=UnitIs(unit=name, active="inactive", result="success")),
        After(s=up_s, change=UnitIs(unit=name, active="active")),
    ]
    held = [gpu.bdf for gpu in machine.gpus.values() if gpu.idle and gpu.unit == name]
    then += [After(s=up_s, change=GpuFreed(bdf=bdf)) for bdf in held]
    why = f"{name} active for {stay_s:g} s"
    return Performed(outcome=Outcome.OK, why=why, took_s=up_s + stay_s, then=tuple(then))


def bounce_link(machine: "Machine", params: Mapping[str, Scalar]) -> Performed:
    """link.bounce: down, a pause, up."""
    component, down_s = str(params["link"]), float(params.get("down_s", 0.5))
    kind, name = components.type_of(component), components.name_of(component)
    if kind == "link" and name == CONTROL_LINK:
        return _refused(f"{name} carries the control path of this node")
    if kind == "link" and name in machine.links:
        down, up = After(s=0, change=AdminDown(link=name)), After(s=down_s, change=AdminUp(link=name))
    elif kind == "port" and name.removesuffix(".1") in machine.ports:
        device = name.removesuffix(".1")
        down, up = (
            After(s=0, change=PortDown(device=device)),
            After(s=down_s + TRAIN_S, change=PortUp(device=device)),
        )
    else:
        return _refused(f"there is no {component} on this node")
    return Performed(
        outcome=Outcome.OK, why=f"{component} down for {down_s:g} s, then up", took_s=up.s, then=(down, up)
    )


def collect_evidence(machine: "Machine", params: Mapping[str, Scalar]) -> Performed:
    """evidence.collect: changes nothing by itself.

    A fault with `repair_s` stands for people who wait for the evidence: so long after it, they mend the part.
    """
    component = str(params["component"])
    then: list[After] = []
    for gpu in machine.gpus.values():
        if gpu.repair_s and component in (gpu.component, components.NODE):
            change = GpuFreed(bdf=gpu.bdf) if gpu.present else GpuReturned(bdf=gpu.bdf)
            then.append(After(s=COLLECT_S + gpu.repair_s, change=change))
            gpu.repair_s = 0.0  # they come once
    why = f"evidence about {component} collected (simulated)"
    return Performed(outcome=Outcome.OK, why=why, took_s=COLLECT_S, then=tuple(then))


def see_managers(machine: "Machine", params: Mapping[str, Scalar]) -> Performed:  # noqa: ARG001  it has none
    """ib.sm_state: every port's manager is a master that answers; where it stands is all that a fault changes."""
    if not machine.ports:
        return _refused("this node has no InfiniBand port with a link")
    ports = tuple(
        subnet.PortView(port=f"{port.device}.1", lid=100 + number, sm_lid=port.sm_lid, sm=subnet.MASTER)
        for number, port in enumerate(machine.ports.values())
    )
    lids = dict.fromkeys(port.sm_lid for port in ports)
    managers = tuple(
        subnet.Manager(guid=f"0x{lid:016x}", lid=lid, priority=10, state=subnet.MASTER) for lid in lids
    )
    text = subnet.SubnetView(ports=ports, managers=managers).text()
    return Performed(outcome=Outcome.OK, why=text, took_s=ASK_S)


def _refused(why: str) -> Performed:
    return Performed(outcome=Outcome.REFUSED, why=why)


REMEDIES: Mapping[str, Callable[["Machine", Mapping[str, Scalar]], Performed]] = {
    "service.restart": restart_service,
    "link.bounce": bounce_link,
    "evidence.collect": collect_evidence,
    "ib.sm_state": see_managers,
}
