"""Drills of InfiniBand: ports, switches and the subnet manager. Pure."""

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.drills.drill import Drill, Plan, begin, first_healthy
from simulations.events import event
from simulations.faults import FROZEN_MASTER, Fault, Fix
from simulations.state import MachineState

OUTAGE_S = 90.0
SEVERAL = 3  # ports that fall together have one cause
PORT = "port/mlx5_3.1"  # the port that has the faults; a lost link takes the first healthy port
_INFO = Severity.INFO
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


def _congested(machine: MachineState) -> Plan:
    """Reported once a minute; it ends by itself."""
    symptom = event(
        "ib.congestion", PORT, counter="port_xmit_wait", delta=300_000, per_s=5000.0, interval_s=60.0
    )
    fault = Fault(name="congestion", component=PORT, fixes=(Fix.TIME,), symptoms=(symptom,), repeat_s=60.0)
    end = after(_MINUTES * 60.0, ch.FixApplied(fix=Fix.TIME, component=PORT))
    return (*begin(fault)(machine), end)


def _full(machine: MachineState) -> Plan:
    """A job copies its data for some minutes; it ends by itself."""
    busy, over = (
        event(
            "link.busy", PORT, severity, percent=percent, direction="sent", received_gbps=4.0, sent_gbps=sent, rate_gbps=400.0
        )
        for severity, percent, sent in ((Severity.WARNING, 90, 380.0), (Severity.INFO, 0, 20.0))
    )  # fmt: skip
    fault = Fault(name="full port", component=PORT, fixes=(Fix.TIME,), symptoms=(busy,), recovery=(over,))
    end = after(_MINUTES * 60.0, ch.FixApplied(fix=Fix.TIME, component=PORT))
    return (*begin(fault)(machine), end)


def _healthy_port(machine: MachineState) -> str:
    ports = [port.device for port in machine.ports.values() if port.up]
    return first_healthy(ports, machine, "InfiniBand port")


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
)
