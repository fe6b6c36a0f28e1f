"""Faults of ports, links, cards and the fabric. Pure."""

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.ailments import Ailment, Cure, said
from simulations.changes import After
from simulations.facilities import SILENT_SM
from simulations.fault import JOB, Fault, ill, pick
from simulations.machines import Machine

OUTAGE_S = 90.0
FLAPS = 4
_INFO = Severity.INFO
_PORT = "port/mlx5_3.1"
_NIC = "nic/0000:5e:00.0"
_MINUTES = 12  # of congestion


def _phy_errors(machine: Machine) -> tuple[After, ...]:
    ports = [port.device for port in machine.ports.values() if port.up and not port.errors_per_s]
    return (After(s=0, change=ch.PortErrs(device=pick(ports, machine, "InfiniBand port"), per_s=240)),)


def _port_down(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.PortDown(device=_up(machine), stuck=True)),)


def _port_cut(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.PortDown(device=_up(machine), cut=True)),)


def _switch_down(machine: Machine) -> tuple[After, ...]:
    device = _up(machine)
    return (
        After(s=0, change=ch.PortDown(device=device)),
        After(s=OUTAGE_S, change=ch.PortUp(device=device)),
    )


def _failover(machine: Machine) -> tuple[After, ...]:
    lid = 7 if next(iter(machine.ports.values())).sm_lid == 1 else 1
    return (After(s=0, change=ch.MasterMoves(sm_lid=lid)),)


def _link_down(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.CarrierLost(link=pick(_links(machine), machine, "link"))),)


def _cable_cut(machine: Machine) -> tuple[After, ...]:
    return (After(s=0, change=ch.CarrierLost(link=pick(_links(machine), machine, "link"), cut=True)),)


def _flapping(machine: Machine) -> tuple[After, ...]:
    """Down and up faster than an outage settles, so that it is the flapping that shows, not one of the outages."""
    link = pick(_links(machine), machine, "link")
    return tuple(
        After(s=number * 0.4, change=ch.AdminUp(link=link) if number % 2 else ch.CarrierLost(link=link))
        for number in range(2 * FLAPS)
    )


def _congested(machine: Machine) -> tuple[After, ...]:
    """Said once a minute; it ends by itself."""
    fact = said(
        "ib.congestion", _PORT, counter="port_xmit_wait", delta=300_000, per_s=5000.0, interval_s=60.0
    )
    name = "congestion"
    once = Ailment(name=name, component=_PORT, cures=(Cure.PEOPLE,), signs=(fact,), again_s=60.0)
    over = After(s=_MINUTES * 60.0, change=ch.Treated(cure=Cure.PEOPLE, component=_PORT))
    return (*ill(once)(machine), over)


def _up(machine: Machine) -> str:
    return pick([port.device for port in machine.ports.values() if port.up], machine, "InfiniBand port")


def _links(machine: Machine) -> list[str]:
    return [link.name for link in machine.links.values() if link.carrier and link.name != "eth0"]


def _no_sm(*, answers: bool) -> tuple[str, str, Severity | None, dict[str, str | int | bool]]:
    data: dict[str, str | int | bool] = {
        "answers": answers,
        "state": "MASTER" if answers else "",
        "sm_lid": 1,
    }
    return "ib.sm_answer", "port/mlx5_0.1", _INFO if answers else None, data


def _silent_sm(name: str, *cures: Cure) -> Ailment:
    kind, component, worse, data = _no_sm(answers=False)
    _, _, well, after = _no_sm(answers=True)
    return Ailment(
        name=name,
        component="node",
        cures=cures,
        signs=(said(kind, component, worse, **data),),
        relief=(said(kind, component, well, **after),),
        again_s=300.0,
    )


_REFUSED = said(
    "job.rdma_error",
    f"job/{JOB}",
    name="RDMA_CM_EVENT_CONNECT_ERROR",
    job=JOB,
    file=f"/var/log/jobs/{JOB}.log",
)

_REFUSED_ON_PORT = said(
    "job.rdma_error",
    f"job/{JOB}",
    name="RDMA_CM_EVENT_UNREACHABLE",
    job=JOB,
    file=f"/var/log/jobs/{JOB}.log",
    port=_PORT,
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        name="ib-phy-errors",
        summary="The symbol errors of an InfiniBand port grow by 240 a second.",
        nodes="one",
        ends="link.bounce on the port of the drained node; its verification then watches the counters for some minutes",
        plan=_phy_errors,
    ),
    Fault(
        name="ib-port-down",
        summary="An InfiniBand port loses its link and is stuck so.",
        nodes="one",
        ends="ib.port_reset on it, after the half minute in which a port may come back by itself",
        plan=_port_down,
    ),
    Fault(
        name="ib-cable-cut",
        summary="An InfiniBand port loses its link for good.",
        nodes="one",
        ends="nothing: after resets of both ends and of the card it goes to a person",
        plan=_port_cut,
        heals=False,
    ),
    Fault(
        name="switch-down",
        summary=f"A port of every node is down for {OUTAGE_S:g} s, as when switches restart.",
        nodes="all",
        ends=f"by itself, after {OUTAGE_S:g} s; nothing is done on the nodes",
        plan=_switch_down,
    ),
    Fault(
        name="sm-failover",
        summary="The subnet manager fails over: every port of every node learns another sm_lid.",
        nodes="all",
        ends="nothing needs to: it happens once, and the incident closes after some minutes of quiet",
        plan=_failover,
    ),
    Fault(
        name="sm-frozen",
        summary="The master subnet manager freezes: it holds its place and answers nobody.",
        nodes="all",
        ends="sm.stop_master: the frozen master is stopped as a service, the standby takes over",
        plan=ill(_silent_sm(SILENT_SM, Cure.MANAGER)),
    ),
    Fault(
        name="sm-unreachable",
        summary="One node gets no answer from the subnet manager.",
        nodes="one",
        ends="nothing: the evidence is kept, and it goes to a person",
        plan=ill(_silent_sm("unreachable subnet manager")),
        heals=False,
    ),
    Fault(
        name="ib-congested",
        summary=f"A port is congested for {_MINUTES} minutes.",
        nodes="one",
        ends="by itself; the scheduler's people are told whose jobs run there",
        plan=_congested,
    ),
    Fault(
        name="nic-broken",
        summary="The firmware of a network card does not answer its driver.",
        nodes="one",
        ends="nic.reset of the drained node's card",
        plan=ill(
            Ailment(
                name="broken card",
                component=_NIC,
                cures=(Cure.CARD,),
                signs=(
                    said("nic.driver", _NIC, Severity.FATAL, what="health_compromised", message="miss count"),
                ),
            )
        ),
    ),
    Fault(
        name="link-down",
        summary="A network interface loses its carrier and is stuck so.",
        nodes="one",
        ends="link.bounce on it",
        plan=_link_down,
    ),
    Fault(
        name="cable-cut",
        summary="A network interface loses its carrier for good: link.bounce does not help.",
        nodes="one",
        ends="nothing: it goes to a person",
        plan=_cable_cut,
        heals=False,
    ),
    Fault(
        name="link-flapping",
        summary=f"A network interface goes down and up {FLAPS} times within seconds.",
        nodes="one",
        ends="by itself; the node stays drained for a new cable, the incident closes after ten minutes of quiet",
        plan=_flapping,
    ),
    Fault(
        name="bond-degraded",
        summary="A slave of a bond is down.",
        nodes="one",
        ends="nic.reset of the slave's card; the failover before it does not help",
        plan=ill(
            Ailment(
                name="degraded bond",
                component="link/eth2",
                cures=(Cure.CARD,),
                signs=(said("bond.slaves", "bond/bond0", up=1, slaves=2, down="eth2", degraded=True),),
                relief=(said("bond.slaves", "bond/bond0", _INFO, up=2, slaves=2, down="", degraded=False),),
            )
        ),
    ),
    Fault(
        name="mtu-drift",
        summary="An interface with jumbo frames gets a small MTU.",
        nodes="one",
        ends="mtu.set to what it was",
        plan=ill(
            Ailment(
                name="small MTU",
                component="link/eth2",
                cures=(Cure.MTU,),
                signs=(said("link.mtu", "link/eth2", mtu=1500, before=9000),),
                relief=(said("link.mtu", "link/eth2", mtu=9000, before=1500),),
            )
        ),
    ),
    Fault(
        name="rdma-refused",
        summary="Jobs cannot make RDMA connections: rdma_cm is not loaded.",
        nodes="one",
        ends="module.load of rdma_cm",
        plan=ill(
            Ailment(
                name="no rdma_cm",
                component="node",
                cures=(Cure.MODULE,),
                what="rdma_cm",
                signs=(_REFUSED,),
                again_s=5.0,
            )
        ),
    ),
    Fault(
        name="rdma-port-stuck",
        summary="Jobs cannot make RDMA connections on a port that their log names; its counters and state look well.",
        nodes="one",
        ends="ib.port_reset of that port on the drained node, and back into service",
        plan=ill(
            Ailment(
                name="stuck port", component=_PORT, cures=(Cure.PORT,), signs=(_REFUSED_ON_PORT,), again_s=5.0
            )
        ),
    ),
    Fault(
        name="pause-storm",
        summary="A host stops its switch with pause frames.",
        nodes="one",
        ends="its switch port is taken down, when you approve it; ten minutes later nothing is left of the storm",
        plan=ill(
            Ailment(
                name="pause storm",
                component="link/eth2",
                cures=(),
                signs=(
                    said(
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
