"""Drills of ports, interfaces, cards and the fabric. Pure."""

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import JOB, Drill, Plan, begin, first_healthy
from simulations.events import event
from simulations.faults import FROZEN_MASTER, Fault, Fix
from simulations.parts import CONTROL_LINK
from simulations.state import MachineState

OUTAGE_S = 90.0
SEVERAL = 3  # ports that fall together have one cause
FLAPS = 4
_INFO = Severity.INFO
_PORT = "port/mlx5_3.1"
_NIC = "nic/0000:5e:00.0"
_MINUTES = 12  # of congestion


def _phy_errors(machine: MachineState) -> Plan:
    ports = [port.device for port in machine.ports.values() if port.up and not port.errors_per_s]
    device = first_healthy(ports, machine, "InfiniBand port")
    return (after(0, ch.PortErrorsBegin(device=device, per_s=240)),)


def _port_down(machine: MachineState) -> Plan:
    return (after(0, ch.PortDown(device=_healthy_port(machine), stuck=True)),)


def _ports_down(machine: MachineState) -> Plan:
    ports = [port.device for port in machine.ports.values() if port.up]
    first_healthy(ports[SEVERAL - 1 :], machine, "group of three InfiniBand ports")
    return tuple(after(n, ch.PortDown(device=device, stuck=True)) for n, device in enumerate(ports[:SEVERAL]))


def _port_cut(machine: MachineState) -> Plan:
    return (after(0, ch.PortDown(device=_healthy_port(machine), cut=True)),)


def _switch_down(machine: MachineState) -> Plan:
    device = _healthy_port(machine)
    return (
        after(0, ch.PortDown(device=device)),
        after(OUTAGE_S, ch.PortUp(device=device)),
    )


def _sm_failover(machine: MachineState) -> Plan:
    lid = 7 if next(iter(machine.ports.values())).sm_lid == 1 else 1
    return (after(0, ch.MasterChanges(sm_lid=lid)),)


def _link_down(machine: MachineState) -> Plan:
    return (after(0, ch.CarrierLost(link=_healthy_link(machine))),)


def _cable_cut(machine: MachineState) -> Plan:
    return (after(0, ch.CarrierLost(link=_healthy_link(machine), cut=True)),)


def _flapping(machine: MachineState) -> Plan:
    """Down and up again before an outage is taken for one, so that only the flapping shows."""
    link = _healthy_link(machine)
    return tuple(
        after(number * 0.4, ch.AdminUp(link=link) if number % 2 else ch.CarrierLost(link=link))
        for number in range(2 * FLAPS)
    )


def _congested(machine: MachineState) -> Plan:
    """Reported once a minute; it ends by itself."""
    symptom = event(
        "ib.congestion", _PORT, counter="port_xmit_wait", delta=300_000, per_s=5000.0, interval_s=60.0
    )
    fault = Fault(name="congestion", component=_PORT, fixes=(Fix.TIME,), symptoms=(symptom,), repeat_s=60.0)
    end = after(_MINUTES * 60.0, ch.FixApplied(fix=Fix.TIME, component=_PORT))
    return (*begin(fault)(machine), end)


def _full(machine: MachineState) -> Plan:
    """A job copies its data for some minutes; it ends by itself."""
    busy, over = (
        event(
            "link.busy", _PORT, severity, percent=percent, direction="sent", received_gbps=4.0, sent_gbps=sent, rate_gbps=400.0
        )
        for severity, percent, sent in ((Severity.WARNING, 90, 380.0), (Severity.INFO, 0, 20.0))
    )  # fmt: skip
    fault = Fault(name="full port", component=_PORT, fixes=(Fix.TIME,), symptoms=(busy,), recovery=(over,))
    end = after(_MINUTES * 60.0, ch.FixApplied(fix=Fix.TIME, component=_PORT))
    return (*begin(fault)(machine), end)


def _dirty_fibre() -> Fault:
    """A module that still has a link, and that only people clean."""
    component = "link/eth2"
    ill = event(
        "optics.module", component, Severity.WARNING,
        receive_low=True, laser_dying=False, hot=False, other=False, alarms="receive_low on lane 2", warnings="",
        receive_dbm=-11.2, vendor="simulated", part="SR4", serial="M1", cable=False, port="",
    )  # fmt: skip
    well = event(
        "optics.module", component, _INFO,
        receive_low=False, laser_dying=False, hot=False, other=False, alarms="", warnings="",
        receive_dbm=-2.1, vendor="simulated", part="SR4", serial="M1", cable=False, port="",
    )  # fmt: skip
    return Fault(
        name="dirty fibre", component=component, fixes=(), symptoms=(ill,), recovery=(well,), repeat_s=3600
    )


def _pfc_lost() -> Fault:
    """Somebody's mlnx_qos: the counters tell nothing of it until the network is full."""
    component = "link/eth2"
    lost = event("link.pfc", component, Severity.WARNING, priorities="", before="3", lost=True)
    back = event("link.pfc", component, _INFO, priorities="3", before="", lost=False)
    return Fault(name="pfc lost", component=component, fixes=(), symptoms=(lost,), recovery=(back,))


def _lossy_link() -> Fault:
    """Its carrier stays, and every tenth packet to whichever peer is lost."""
    component = "link/eth2"
    ill = event(
        "probe.loss", component, Severity.WARNING,
        active=True, near=2, far=2, near_ill="peer-1, peer-2", far_ill="peer-3, peer-4", silent="", lost_percent=10.2,
    )  # fmt: skip
    well = event(
        "probe.loss", component, _INFO,
        active=False, near=2, far=2, near_ill="", far_ill="", silent="", lost_percent=0.0,
    )  # fmt: skip
    return Fault(
        name="lossy link", component=component, fixes=(), symptoms=(ill,), recovery=(well,), repeat_s=600
    )


def _healthy_port(machine: MachineState) -> str:
    ports = [port.device for port in machine.ports.values() if port.up]
    return first_healthy(ports, machine, "InfiniBand port")


def _healthy_link(machine: MachineState) -> str:
    links = [link.name for link in machine.links.values() if link.carrier and link.name != CONTROL_LINK]
    return first_healthy(links, machine, "link")


def _no_answer(name: str, *fixes: Fix) -> Fault:
    """The subnet manager does not answer the node."""
    kind, component = "ib.sm_answer", "port/mlx5_0.1"
    return Fault(
        name=name,
        component="node",
        fixes=fixes,
        symptoms=(event(kind, component, answers=False, state="", sm_lid=1),),
        recovery=(event(kind, component, _INFO, answers=True, state="MASTER", sm_lid=1),),
        repeat_s=300.0,
    )


_RDMA_REFUSED = event(
    "job.rdma_error",
    f"job/{JOB}",
    name="RDMA_CM_EVENT_CONNECT_ERROR",
    job=JOB,
    file=f"/var/log/jobs/{JOB}.log",
)
_RDMA_REFUSED_ON_PORT = event(
    "job.rdma_error",
    f"job/{JOB}",
    name="RDMA_CM_EVENT_UNREACHABLE",
    job=JOB,
    file=f"/var/log/jobs/{JOB}.log",
    port=_PORT,
)

DRILLS: tuple[Drill, ...] = (
    Drill(
        name="ib-phy-errors",
        summary="The symbol errors of an InfiniBand port grow by 240 a second.",
        nodes="one",
        ends="link.bounce on the port of the drained node; its verification then watches the counters for some minutes",
        plan=_phy_errors,
    ),
    Drill(
        name="ib-port-down",
        summary="An InfiniBand port loses its link, and stays down until it is reset.",
        nodes="one",
        ends="ib.port_reset on it, after the half minute in which a port may come back by itself",
        plan=_port_down,
    ),
    Drill(
        name="ib-ports-down",
        summary="Three InfiniBand ports of one node lose their links within seconds, and stay down.",
        nodes="one",
        ends="a reboot of the drained node: they have one cause, so no port is reset alone",
        plan=_ports_down,
    ),
    Drill(
        name="ib-cable-cut",
        summary="An InfiniBand port loses its link for good.",
        nodes="one",
        ends="it is not healed; after resets of both ends and of the card it goes to a person",
        plan=_port_cut,
        heals=False,
    ),
    Drill(
        name="switch-down",
        summary=f"A port of every node is down for {OUTAGE_S:g} s, as when switches restart.",
        nodes="all",
        ends=f"by itself, after {OUTAGE_S:g} s; nothing is done on the nodes",
        plan=_switch_down,
    ),
    Drill(
        name="leaf-down",
        summary=f"Ports of some nodes of one leaf are down for {OUTAGE_S:g} s, as when their switch restarts.",
        nodes="leaf",
        ends=f"by itself, after {OUTAGE_S:g} s; nothing is done on the nodes",
        plan=_switch_down,
    ),
    Drill(
        name="sm-failover",
        summary="The subnet manager fails over: every port of every node learns another sm_lid.",
        nodes="all",
        ends="by itself: it happens once, and the incident closes when some minutes have passed without another one",
        plan=_sm_failover,
    ),
    Drill(
        name="sm-frozen",
        summary="The master subnet manager freezes: it stays master and answers nothing.",
        nodes="all",
        ends="sm.stop_master: the frozen master is stopped as a service, the standby takes over",
        plan=begin(_no_answer(FROZEN_MASTER, Fix.REPLACE_MASTER)),
    ),
    Drill(
        name="sm-unreachable",
        summary="One node gets no answer from the subnet manager.",
        nodes="one",
        ends="it is not healed; the evidence is kept, and it goes to a person",
        plan=begin(_no_answer("unreachable subnet manager")),
        heals=False,
    ),
    Drill(
        name="ib-congested",
        summary=f"A port is congested for {_MINUTES} minutes.",
        nodes="one",
        ends="by itself; a page says whose jobs run on the node",
        plan=_congested,
    ),
    Drill(
        name="port-full",
        summary=f"A port carries more than nine tenths of its rate for {_MINUTES} minutes.",
        nodes="one",
        ends="by itself; a page says whose jobs run on the node",
        plan=_full,
    ),
    Drill(
        name="nic-broken",
        summary="The firmware of a network card does not answer its driver.",
        nodes="one",
        ends="nic.reset of the drained node's card",
        plan=begin(
            Fault(
                name="broken card",
                component=_NIC,
                fixes=(Fix.RESET_NIC,),
                symptoms=(
                    event(
                        "nic.driver", _NIC, Severity.FATAL, what="health_compromised", message="miss count"
                    ),
                ),
            )
        ),
    ),
    Drill(
        name="link-down",
        summary="A network interface loses its carrier until it is taken down and up.",
        nodes="one",
        ends="link.bounce on it",
        plan=_link_down,
    ),
    Drill(
        name="cable-cut",
        summary="A network interface loses its carrier for good: link.bounce does not help.",
        nodes="one",
        ends="it is not healed; it goes to a person",
        plan=_cable_cut,
        heals=False,
    ),
    Drill(
        name="link-flapping",
        summary=f"A network interface goes down and up {FLAPS} times within seconds.",
        nodes="one",
        ends="by itself; the node stays drained for a new cable, and the incident open, until you say `gpuward return NODE`",
        heals=False,
        plan=_flapping,
    ),
    Drill(
        name="dirty-fibre",
        summary="An optical module receives too little light on one of its lanes; its link still works.",
        nodes="one",
        ends="it is not healed; people get a ticket, and clean or exchange the fibre",
        heals=False,
        plan=begin(_dirty_fibre()),
    ),
    Drill(
        name="pfc-lost",
        summary="A priority of an interface has no flow control any more.",
        nodes="one",
        ends="it is not healed; people set it again",
        heals=False,
        plan=begin(_pfc_lost()),
    ),
    Drill(
        name="lossy-link",
        summary="An interface keeps its carrier and loses every tenth packet: probes of all its peers show it.",
        nodes="one",
        ends="it is not healed; people are told which end it is, with the evidence",
        heals=False,
        plan=begin(_lossy_link()),
    ),
    Drill(
        name="bond-degraded",
        summary="A slave of a bond is down.",
        nodes="one",
        ends="nic.reset of the slave's card; the failover before it does not help",
        plan=begin(
            Fault(
                name="degraded bond",
                component="link/eth2",
                fixes=(Fix.RESET_NIC,),
                symptoms=(event("bond.slaves", "bond/bond0", up=1, slaves=2, down="eth2", degraded=True),),
                recovery=(
                    event("bond.slaves", "bond/bond0", _INFO, up=2, slaves=2, down="", degraded=False),
                ),
            )
        ),
    ),
    Drill(
        name="mtu-drift",
        summary="An interface with jumbo frames gets a small MTU.",
        nodes="one",
        ends="mtu.set to what it was",
        plan=begin(
            Fault(
                name="small MTU",
                component="link/eth2",
                fixes=(Fix.SET_MTU,),
                symptoms=(event("link.mtu", "link/eth2", mtu=1500, before=9000),),
                recovery=(event("link.mtu", "link/eth2", mtu=9000, before=1500),),
            )
        ),
    ),
    Drill(
        name="rdma-refused",
        summary="Jobs cannot make RDMA connections: rdma_cm is not loaded.",
        nodes="one",
        ends="module.load of rdma_cm",
        plan=begin(
            Fault(
                name="no rdma_cm",
                component="node",
                fixes=(Fix.LOAD_MODULE,),
                target="rdma_cm",
                symptoms=(_RDMA_REFUSED,),
                repeat_s=5.0,
            )
        ),
    ),
    Drill(
        name="rdma-port-stuck",
        summary="Jobs cannot make RDMA connections on a port that their log names; its counters and state look fine.",
        nodes="one",
        ends="ib.port_reset of that port on the drained node, and back into service",
        plan=begin(
            Fault(
                name="stuck port",
                component=_PORT,
                fixes=(Fix.RESET_PORT,),
                symptoms=(_RDMA_REFUSED_ON_PORT,),
                repeat_s=5.0,
            )
        ),
    ),
    Drill(
        name="pause-storm",
        summary="A host stops its switch with pause frames.",
        nodes="one",
        ends="its switch port is taken down, when you approve it; the node stays drained until you say `gpuward return NODE`",
        heals=False,
        plan=begin(
            Fault(
                name="pause storm",
                component="link/eth2",
                fixes=(),
                symptoms=(
                    event(
                        "link.errors",
                        "link/eth2",
                        counter="tx_pause_storm_error_events",
                        delta=1,
                        value=1,
                        interval_s=10.0,
                    ),
                ),
            )
        ),
        approval=True,
    ),
)
