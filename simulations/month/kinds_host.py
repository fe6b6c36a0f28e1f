"""Kinds of faults of networks and of the nodes themselves. Pure."""

import math

from agent.contract.messages import Severity
from simulations import changes as ch
from simulations.changes import after
from simulations.events import event
from simulations.faults import Fault, Fix
from simulations.month.kinds import Cured, FaultKind, Harm, Onset, Plan, Reach, begins

_NICS = ("5e", "5f", "86", "87", "af", "b0", "d8", "d9")


def _device(onset: Onset) -> str:
    return list(onset.machine.ports)[onset.part]


def _port_down(onset: Onset) -> Plan:
    device, trains = _device(onset), Fix.RESET_PORT in onset.fixes
    return (
        begins(onset, f"port/{device}.1"),
        after(0, ch.PortDown(device=device, stuck=trains, cut=not trains)),
    )


def _leaf_down(onset: Onset) -> Plan:
    device = _device(onset)
    return (
        begins(onset, f"port/{device}.1"),
        after(0, ch.PortDown(device=device)),
        after(onset.lasts_s, ch.PortUp(device=device)),
    )


def _nic(onset: Onset) -> Plan:
    broken = event(
        "nic.driver",
        f"nic/0000:{_NICS[onset.part]}:00.0",
        Severity.FATAL,
        what="health_compromised",
        message="miss count",
    )
    fault = Fault(
        name=onset.name, component=broken.component, fixes=onset.fixes, symptoms=(broken,), shows_again=True
    )
    return (after(0, ch.FaultBegins(fault=fault)),)


def _hung(onset: Onset) -> Plan:
    return (begins(onset, "node", hangs_node=True),)


def _dark(onset: Onset) -> Plan:
    return begins(onset, "node", hangs_node=True), after(0, ch.GoesDown(for_s=math.inf, power=True))


def _crashed(onset: Onset) -> Plan:
    """It restarts by itself."""
    return begins(onset, "node"), after(0, ch.GoesDown(for_s=onset.machine.times.boot_s))


def _service(onset: Onset) -> Plan:
    unit = "slurmd.service"
    return (
        begins(onset, f"service/{unit}"),
        after(0, ch.UnitChanges(unit=unit, active="failed", result="exit-code")),
    )


def _says(onset: Onset, line: str) -> Plan:
    return begins(onset, "node"), after(0.1, ch.KernelLogs(text=line))


def _memory(onset: Onset) -> Plan:
    return _says(
        onset,
        "EDAC MC3: 2 UE memory scrubbing error on P1-DIMMH1 (channel:0 slot:0 page:0x0 offset:0x0 grain:32)",
    )


def _disk(onset: Onset) -> Plan:
    return _says(onset, "nvme nvme0: Removing after probe failure status: -19")


def _processor(onset: Onset) -> Plan:
    return _says(onset, "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: bf80000000100134")


def _board(onset: Onset) -> Plan:
    return _says(onset, "pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error received: 0000:81:00.0")


def _port_flap(onset: Onset) -> Plan:
    device = _device(onset)
    return (
        begins(onset, f"port/{device}.1"),
        after(0, ch.PortDown(device=device)),
        after(onset.lasts_s, ch.PortUp(device=device)),
    )


def _unheard(onset: Onset) -> Plan:
    return begins(onset, "node"), after(0, ch.GoesUnreachable(for_s=onset.lasts_s))


KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="port-down",
        summary="an InfiniBand port loses its link",
        plan=_port_down,
        harm=Harm.KILLS,
        seen_as="ib-port-down",
        # of 34.1 % of events that are InfiniBand's, 4.9 are recovered in place and 12.2 are hardware
        cures={Fix.RESET_PORT: 0.29, Fix.RESET_NIC: 0.29, Fix.REBOOT: 0.29, Fix.CYCLE_POWER: 0.29},
        source="Crusoe H200, GTC25, by glennklockwood.com: 4.9 of 17.1 recovered in place",
    ),
    FaultKind(
        name="leaf-down",
        summary="a leaf switch restarts: the ports of all of its nodes are down for minutes",
        plan=_leaf_down,
        harm=Harm.KILLS,
        seen_as="switch-suspected",
        cured=Cured.TIME,
        lasts=(420.0, 0.4),
        reach=Reach.LEAF,
    ),
    FaultKind(
        name="nic-broken",
        summary="the firmware of a network card does not answer its driver",
        plan=_nic,
        harm=Harm.KILLS,
        seen_as="nic-broken",
        cures={Fix.RESET_NIC: 0.6, Fix.REBOOT: 0.8, Fix.CYCLE_POWER: 0.9},
    ),
    FaultKind(
        name="node-hung",
        summary="the kernel of a node hangs",
        plan=_hung,
        harm=Harm.KILLS,
        seen_as="node-unreachable",
        cures={Fix.REBOOT: 0.95, Fix.CYCLE_POWER: 0.98},
    ),
    FaultKind(
        name="node-dark",
        summary="a node loses its power",
        plan=_dark,
        harm=Harm.KILLS,
        seen_as="node-unreachable",
        cures={Fix.CYCLE_POWER: 0.3},
    ),
    FaultKind(
        name="node-restarts",
        summary="a node crashes and boots by itself",
        plan=_crashed,
        harm=Harm.KILLS,
        seen_as="node-unreachable",
        cures={Fix.REBOOT: 1.0},
        cured=Cured.TIME,
        lasts=(math.inf, 0.0),
    ),
    FaultKind(
        name="service-failed",
        summary="the scheduler's daemon of a node fails; its job runs on",
        plan=_service,
        harm=Harm.NONE,
        seen_as="service-failed",
        cures={Fix.RESTART_SERVICE: 1.0, Fix.REBOOT: 1.0, Fix.CYCLE_POWER: 1.0},
    ),
    FaultKind(
        name="memory-broken",
        summary="an uncorrected error of a node's memory",
        plan=_memory,
        harm=Harm.KILLS,
        seen_as="memory-uncorrected",
    ),
    FaultKind(
        name="disk-broken",
        summary="a disk of a node is gone",
        plan=_disk,
        harm=Harm.KILLS,
        seen_as="disk-failing",
    ),
    FaultKind(
        name="processor-broken",
        summary="an uncorrected error of a processor",
        plan=_processor,
        harm=Harm.KILLS,
        seen_as="memory-uncorrected",
    ),
    FaultKind(
        name="board-broken",
        summary="a fatal PCIe error of an expansion board",
        plan=_board,
        harm=Harm.KILLS,
        seen_as="pcie-fatal",
    ),
    FaultKind(
        name="port-flaps",
        summary="a port is down for seconds and comes back (noise)",
        plan=_port_flap,
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(6.0, 0.5),
    ),
    FaultKind(
        name="node-unheard",
        summary="a node's control network fails for half a minute (noise)",
        plan=_unheard,
        harm=Harm.NONE,
        seen_as="node-unreachable",
        cured=Cured.TIME,
        lasts=(30.0, 0.3),
    ),
)
