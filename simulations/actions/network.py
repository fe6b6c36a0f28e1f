"""Actions of a node on its interfaces, network cards and InfiniBand ports, and what it sees of the fabric. Pure."""

from collections.abc import Mapping

from agent.contract import components, fabric, subnet
from agent.contract.figures import Figure
from simulations.actions.base import (
    ASK_S,
    TRAIN_S,
    ActionRequest,
    SimulatedAction,
    SimulatedResult,
    failed,
    fixed,
    measured,
    refused,
    succeeded,
)
from simulations.changes import AdminDown, AdminUp, FixApplied, PortDown, PortUp, after
from simulations.faults import Fix
from simulations.parts import CONTROL_LINK
from simulations.state import MachineState

_NO_PORT = "this node has no InfiniBand port with a link"


def bounce_link(request: ActionRequest) -> SimulatedResult:
    """Down, a pause, up: the link is trained again."""
    down_s = request.number("down_s", 0.5)
    link = request.text("link")
    return _bounce(request.machine, link, down_s, f"{link} down for {down_s:g} s, then up", Fix.RESET_PORT)


def reset_port(request: ActionRequest) -> SimulatedResult:
    """The link of the port is trained again."""
    port = request.text("port")
    return _bounce(request.machine, port, 0.2, f"{port} was reset", Fix.RESET_PORT)


def reset_nic(request: ActionRequest) -> SimulatedResult:
    """The card is reset, and with it the interface or port through which it is named."""
    component = request.text("nic")
    if components.type_of(component) == "nic":
        return fixed(f"{component} was reset", request.times.reset_s, component, Fix.RESET_NIC)
    return _bounce(
        request.machine,
        component,
        request.times.reset_s,
        f"{component} and its card were reset",
        Fix.RESET_NIC,
        Fix.RESET_PORT,
    )


def _bounce(machine: MachineState, component: str, down_s: float, told: str, *fixes: Fix) -> SimulatedResult:
    """Takes an interface or a port down and up; the fixes are applied when it is up."""
    kind, name = components.type_of(component), components.name_of(component)
    if kind == "link" and name == CONTROL_LINK:
        return refused(f"{name} carries the control path of this node")
    if kind == "link" and name in machine.links:
        down, up = after(0, AdminDown(link=name)), after(down_s, AdminUp(link=name))
    elif kind == "port" and name.removesuffix(".1") in machine.ports:
        device = name.removesuffix(".1")
        down, up = after(0, PortDown(device=device)), after(down_s + TRAIN_S, PortUp(device=device))
    else:
        return refused(f"there is no {component} on this node")
    applied = (after(up.delay_s, FixApplied(fix=fix, component=component)) for fix in fixes)
    return succeeded(told, up.delay_s, down, up, *applied)


def fail_over(request: ActionRequest) -> SimulatedResult:
    """Another slave of the bond is active."""
    return fixed("another slave is active now", ASK_S, request.text("bond"), Fix.FAIL_OVER_BOND)


def set_mtu(request: ActionRequest) -> SimulatedResult:
    """Refused for the interface of the control path."""
    name = components.name_of(request.text("link"))
    if name == CONTROL_LINK or name not in request.machine.links:
        return refused(f"{name} carries the control path, or is not there")
    return fixed(f"{name} has MTU {request.params['mtu']}", ASK_S, f"link/{name}", Fix.SET_MTU)


def list_managers(request: ActionRequest) -> SimulatedResult:
    """Every port's subnet manager is a master that answers; a fault changes no more than its LID."""
    machine = request.machine
    if not machine.ports:
        return refused(_NO_PORT)
    ports = tuple(
        subnet.PortView(port=f"{port.device}.1", lid=100 + number, sm_lid=port.sm_lid, sm=subnet.MASTER)
        for number, port in enumerate(machine.ports.values())
    )
    managers = tuple(
        subnet.Manager(guid=f"0x{lid:016x}", lid=lid, priority=10, state=subnet.MASTER)
        for lid in dict.fromkeys(port.sm_lid for port in ports)
    )
    return succeeded(subnet.SubnetView(ports=ports, managers=managers).text(), ASK_S)


def inspect_fabric(request: ActionRequest) -> SimulatedResult:
    """Of the fabric the node sees its own ports only."""
    machine = request.machine
    if not machine.ports:
        return refused(_NO_PORT)
    found = [
        f"{machine.name} {port.device} port 1: SymbolErrorCounter grows"
        for port in machine.ports.values()
        if port.errors_per_s
    ]
    up = sum(port.up for port in machine.ports.values())
    return succeeded(fabric.text(up, len(machine.ports), found), request.number("watch_s", 60.0))


def check_ports(request: ActionRequest) -> SimulatedResult:
    """Fails for a named port or interface without a link, for any port without one, and for a card with a fault."""
    machine, component = request.machine, str(request.params.get("component", components.NODE))
    down = [port.component for port in machine.ports.values() if not port.up]
    down += [
        link.component for link in machine.links.values() if link.component == component and not link.carrier
    ]
    down += [fault.component for fault in machine.faults.values() if fault.component.startswith("nic/")]
    active = sum(port.up for port in machine.ports.values())
    figures = (
        Figure(name="port.mt4129.active", value=active),
        Figure(name="port.mt4129.gbit_per_s", value=400),
    )
    if down:
        return measured(
            failed(f"ports are not as expected: {', '.join(down)} without a link", ASK_S), *figures
        )
    return measured(succeeded(f"{active} of {len(machine.ports)} ports active", ASK_S), *figures)


ACTIONS: Mapping[str, SimulatedAction] = {
    "link.bounce": bounce_link,
    "nic.reset": reset_nic,
    "ib.port_reset": reset_port,
    "bond.failover": fail_over,
    "mtu.set": set_mtu,
    "port.check": check_ports,
    "ib.sm_state": list_managers,
    "ib.inspect": inspect_fabric,
}
