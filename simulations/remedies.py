"""What the actions of an agent do to a simulated machine. Pure; parameters have been checked already.

Whether an action helps is decided by the machine's state, not here: a bounced link gets its carrier only if
it was stuck, not if its cable is cut; a reset cures what a reset cures, and brings no GPU back that is off the bus.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.contract import components, fabric, subnet
from agent.contract.commands import Outcome
from agent.contract.messages import Scalar
from simulations import changes as ch
from simulations.ailments import Cure
from simulations.changes import AdminDown, AdminUp, After, GpuFreed, PortDown, PortUp, UnitIs
from simulations.parts import CONTROL_LINK

if TYPE_CHECKING:
    from simulations.machines import Machine

STOP_S = 0.2  # stopping a unit
START_S = 0.6  # and starting it
TRAIN_S = 1.0  # a link trains
COLLECT_S = 0.5
ASK_S = 0.1
RESET_S = 1.5  # a GPU or the driver starts anew
BOOT_S = 4.0  # how long a node is away; short, so that a rehearsal is
Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """How an action will have ended `took_s` after its beginning, and what it does to the machine."""

    outcome: Outcome
    why: str
    took_s: float = 0.0
    then: tuple[After, ...] = ()


def refused(why: str) -> Performed:
    """Nothing was done."""
    return Performed(outcome=Outcome.REFUSED, why=why)


def restart_service(machine: "Machine", params: Params) -> Performed:
    """service.restart: the unit comes up again and lets go of the GPUs that it held."""
    name, stay_s = str(params["unit"]), float(params.get("stay_s", 2.0))
    if name not in machine.units:
        return _no_unit(machine, name)
    up_s = STOP_S + START_S
    then = [
        After(s=STOP_S, change=UnitIs(unit=name, active="inactive", result="success")),
        After(s=up_s, change=UnitIs(unit=name, active="active")),
    ]
    held = [gpu.bdf for gpu in machine.gpus.values() if gpu.idle and gpu.unit == name]
    then += [After(s=up_s, change=GpuFreed(bdf=bdf)) for bdf in held]
    why = f"{name} active for {stay_s:g} s"
    return Performed(outcome=Outcome.OK, why=why, took_s=up_s + stay_s, then=tuple(then))


def start_service(machine: "Machine", params: Params) -> Performed:
    """service.start."""
    return _unit(machine, str(params["unit"]), "active", START_S)


def stop_service(machine: "Machine", params: Params) -> Performed:
    """service.stop."""
    return _unit(machine, str(params["unit"]), "inactive", STOP_S)


def _unit(machine: "Machine", name: str, active: str, took_s: float) -> Performed:
    if name not in machine.units:
        return _no_unit(machine, name)
    then = (After(s=took_s, change=UnitIs(unit=name, active=active)),)
    return Performed(outcome=Outcome.OK, why=f"{name} is {active}", took_s=took_s, then=then)


def _no_unit(machine: "Machine", name: str) -> Performed:
    return refused(f"{name} is not a unit of this node (have: {', '.join(machine.units)})")


def bounce_link(machine: "Machine", params: Params) -> Performed:
    """link.bounce: down, a pause, up."""
    down_s = float(params.get("down_s", 0.5))
    return _bounce(machine, str(params["link"]), down_s, f"down for {down_s:g} s, then up")


def _bounce(machine: "Machine", component: str, down_s: float, why: str, *more: Cure) -> Performed:
    kind, name = components.type_of(component), components.name_of(component)
    if kind == "link" and name == CONTROL_LINK:
        return refused(f"{name} carries the control path of this node")
    if kind == "link" and name in machine.links:
        down, up = After(s=0, change=AdminDown(link=name)), After(s=down_s, change=AdminUp(link=name))
    elif kind == "port" and name.removesuffix(".1") in machine.ports:
        device = name.removesuffix(".1")
        down, up = (
            After(s=0, change=PortDown(device=device)),
            After(s=down_s + TRAIN_S, change=PortUp(device=device)),
        )
    else:
        return refused(f"there is no {component} on this node")
    cures = tuple(After(s=up.s, change=ch.Treated(cure=cure, component=component)) for cure in more)
    return Performed(outcome=Outcome.OK, why=f"{component} {why}", took_s=up.s, then=(down, up, *cures))


def reset_port(machine: "Machine", params: Params) -> Performed:
    """ib.port_reset: the port trains anew."""
    return _bounce(machine, str(params["port"]), 0.2, "was reset", Cure.PORT)


def reset_card(machine: "Machine", params: Params) -> Performed:
    """nic.reset: the card and what hangs on it start anew."""
    component = str(params["nic"])
    if components.type_of(component) == "nic":
        return _treat(Cure.CARD, component, RESET_S, f"{component} was reset")
    return _bounce(machine, component, RESET_S, "and its card were reset", Cure.CARD, Cure.PORT)


def collect_evidence(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it changes nothing
    """evidence.collect: changes nothing."""
    why = f"evidence about {params['component']} collected (simulated)"
    return Performed(outcome=Outcome.OK, why=why, took_s=COLLECT_S)


def find_usage(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it changes nothing
    """fs.usage: changes nothing."""
    why = f"largest below {params['mount']}: ann/checkpoints 41 TB, tmp 3 TB (simulated)"
    return Performed(outcome=Outcome.OK, why=why, took_s=COLLECT_S)


def see_managers(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it has none
    """ib.sm_state: every port's manager is a master that answers; where it stands is all that a fault changes."""
    if not machine.ports:
        return refused("this node has no InfiniBand port with a link")
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


def inspect_fabric(machine: "Machine", params: Params) -> Performed:
    """ib.inspect: of the fabric it sees what this node shows of it."""
    if not machine.ports:
        return refused("this node has no InfiniBand port with a link")
    found = [
        f"{machine.name} {port.device} port 1: SymbolErrorCounter grows"
        for port in machine.ports.values()
        if port.errors_per_s
    ]
    links = sum(port.up for port in machine.ports.values())
    why = fabric.text(links, len(machine.ports), found)
    return Performed(outcome=Outcome.OK, why=why, took_s=float(params.get("watch_s", 60.0)))


def reset_gpu(machine: "Machine", params: Params) -> Performed:
    """gpu.reset: refused for a GPU that is off the bus, and while a job is there."""
    component = str(params.get("gpu", components.NODE))
    if machine.jobs:
        return refused(f"processes of job {', '.join(machine.jobs)} hold GPUs")
    if component == components.NODE:
        then = tuple(_treated(cure, component, RESET_S) for cure in (Cure.RESET, Cure.RESET_ALL))
        return Performed(outcome=Outcome.OK, why="all GPUs were reset", took_s=RESET_S, then=then)
    gpu = machine.gpus.get(components.name_of(component))
    if gpu is None or not gpu.present:
        return refused(f"{component} is not on the bus: it cannot be reset in band")
    return _treat(Cure.RESET, component, RESET_S, f"{component} was reset")


def limit_power(machine: "Machine", params: Params) -> Performed:
    """gpu.power_limit."""
    component = str(params["gpu"])
    gpu = machine.gpus.get(components.name_of(component))
    if gpu is None or not gpu.present:
        return refused(f"there is no {component} on this node")
    return _treat(Cure.LIMIT, component, ASK_S, f"{component}: {params['percent']:g} % of its default limit")


def keep_persistent(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it changes nothing that is simulated
    """gpu.persistence."""
    return Performed(outcome=Outcome.OK, why="persistence mode is on", took_s=ASK_S)


def diagnose(machine: "Machine", params: Params) -> Performed:
    """gpu.diagnose: finds what is wrong with GPUs; refused while a job is there."""
    if machine.jobs:
        return refused(f"processes of job {', '.join(machine.jobs)} hold GPUs")
    sick = [gpu.component for gpu in machine.gpus.values() if not gpu.present]
    sick += [one.component for one in machine.ailments.values() if one.component.startswith("gpu/")]
    if sick:
        return Performed(
            outcome=Outcome.FAILED, why=f"the diagnosis failed at {', '.join(sick)}", took_s=COLLECT_S
        )
    return Performed(
        outcome=Outcome.OK, why=f"dcgmi diag -r {params['level']}: all passed (simulated)", took_s=COLLECT_S
    )


def rescan(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  what a rescan cures says the ailment
    """pci.rescan: finds only what answers on the bus."""
    return _treat(Cure.RESCAN, str(params["gpu"]), COLLECT_S, "the PCI bus was scanned again")


def reload_driver(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it has none
    """driver.reload."""
    if machine.jobs:
        return refused(f"processes of job {', '.join(machine.jobs)} hold GPUs")
    return _treat(Cure.RELOAD, components.NODE, RESET_S, "the NVIDIA driver was loaded anew")


def restart_fabric_manager(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it has none
    """fabricmanager.restart."""
    unit = "nvidia-fabricmanager.service"
    if unit not in machine.units:
        return _no_unit(machine, unit)
    up = After(s=RESET_S, change=UnitIs(unit=unit, active="active"))
    then = (up, _treated(Cure.FABRIC_MANAGER, components.NODE, RESET_S))
    return Performed(outcome=Outcome.OK, why=f"{unit} was restarted", took_s=RESET_S, then=then)


def fail_over(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  what a failover cures says the ailment
    """bond.failover."""
    return _treat(Cure.FAILOVER, str(params["bond"]), ASK_S, "the active slave is another one now")


def set_mtu(machine: "Machine", params: Params) -> Performed:
    """mtu.set."""
    name = components.name_of(str(params["link"]))
    if name == CONTROL_LINK or name not in machine.links:
        return refused(f"{name} carries the control path, or is not there")
    return _treat(Cure.MTU, f"link/{name}", ASK_S, f"{name} has MTU {params['mtu']}")


def load_module(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  what a module cures says the ailment
    """module.load."""
    module = str(params["module"])
    then = (After(s=ASK_S, change=ch.Treated(cure=Cure.MODULE, component=components.NODE, what=module)),)
    return Performed(outcome=Outcome.OK, why=f"{module} is loaded", took_s=ASK_S, then=then)


def signal_job(machine: "Machine", params: Params) -> Performed:
    """process.signal: only to a job that is there."""
    job = str(params["job"])
    if job not in machine.jobs:
        return refused(f"job {job} has no process on this node")
    then = (After(s=ASK_S, change=ch.JobEnds(job=job)),)
    return Performed(outcome=Outcome.OK, why=f"job {job} was signalled", took_s=ASK_S, then=then)


def reboot(machine: "Machine", params: Params) -> Performed:  # noqa: ARG001  it has none
    """node.reboot: silent for a while, then another boot id."""
    then = (After(s=ASK_S, change=ch.GoesDown(for_s=BOOT_S)),)
    return Performed(
        outcome=Outcome.OK, why="back with another boot id", took_s=ASK_S + BOOT_S + 0.1, then=then
    )


def _treated(cure: Cure, component: str, s: float) -> After:
    return After(s=s, change=ch.Treated(cure=cure, component=component))


def _treat(cure: Cure, component: str, took_s: float, why: str) -> Performed:
    return Performed(outcome=Outcome.OK, why=why, took_s=took_s, then=(_treated(cure, component, took_s),))


REMEDIES: Mapping[str, Callable[["Machine", Params], Performed]] = {
    "service.restart": restart_service,
    "service.start": start_service,
    "service.stop": stop_service,
    "module.load": load_module,
    "node.reboot": reboot,
    "process.signal": signal_job,
    "evidence.collect": collect_evidence,
    "fs.usage": find_usage,
    "link.bounce": bounce_link,
    "nic.reset": reset_card,
    "ib.port_reset": reset_port,
    "bond.failover": fail_over,
    "mtu.set": set_mtu,
    "ib.sm_state": see_managers,
    "ib.inspect": inspect_fabric,
    "gpu.reset": reset_gpu,
    "gpu.power_limit": limit_power,
    "gpu.persistence": keep_persistent,
    "gpu.diagnose": diagnose,
    "pci.rescan": rescan,
    "driver.reload": reload_driver,
    "fabricmanager.restart": restart_fabric_manager,
}
