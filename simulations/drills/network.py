"""Drills of interfaces, cards, optical modules and the RDMA connections of jobs. Pure."""

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import JOB, Drill, Plan, begin, first_healthy
from simulations.drills.infiniband import PORT
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.parts import CONTROL_LINK
from simulations.state import MachineState

FLAPS = 4
_INFO = Severity.INFO
_NIC = "nic/0000:5e:00.0"


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


def _healthy_link(machine: MachineState) -> str:
    links = [link.name for link in machine.links.values() if link.carrier and link.name != CONTROL_LINK]
    return first_healthy(links, machine, "link")


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
    port=PORT,
)

DRILLS: tuple[Drill, ...] = (
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
                component=PORT,
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
