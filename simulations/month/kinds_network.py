"""Kinds of faults of cards, ports, cables, interfaces and bonds. Pure."""

from simulations import changes as ch
from simulations.changes import after
from simulations.faults import Fix
from simulations.month.kinds import Cured, FaultKind, Harm
from simulations.month.signs import Facts, Says, Shows, Sign, logs, says, shows, well

_PORT, _LINK, _BOND = "port/{port}.1", "link/{link}", "bond/bond0"
_CRUSOE = (
    "4.9 of 17.1 % of InfiniBand's events are recovered in place: Crusoe H200, GTC25, by glennklockwood.com"
)


def _symbol_errors(per_s: int) -> Says:
    return says(
        "ib.errors",
        counter="symbol_error",
        delta=per_s * 60,
        value=per_s * 60,
        interval_s=60.0,
        spec_s=per_s * 600.0,
    )


def _ufm(kind: str, number: str, name: str, more: Facts | None = None) -> Says:
    return says(kind, side="switch", event=number, name=name, text="", more=more)


_DEVICE_GONE = says("ib.device", "nic/{port}", present=False)
_DEVICE_THERE = well("ib.device", "nic/{port}", present=True)
_FLAPS = 12
_PAUSES = says("link.errors", counter="tx_pause_storm_error_events", delta=1, value=1, interval_s=10.0)
_CONGESTED = says("ib.congestion", counter="port_xmit_wait", delta=300_000, per_s=5000.0, interval_s=60.0)

KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="port-errs",
        summary="a port counts more and more symbol errors: a dirty or bent cable",
        plan=Shows(
            first=Sign(component=_PORT, bad=(_symbol_errors(20),), after_s=60.0),
            grows=((1800.0, Sign(component=_PORT, bad=(_symbol_errors(240),), every_s=600.0)),),
        ),
        harm=Harm.SLOWS,
        cures={Fix.RESET_PORT: 0.29, Fix.RESET_NIC: 0.29, Fix.REBOOT: 0.29, Fix.CYCLE_POWER: 0.29},
        seen_as="ib-phy-errors",
        source=_CRUSOE,
    ),
    FaultKind(
        name="port-marginal",
        summary="a port counts errors; each reset of its link helps for hours",
        plan=shows(_PORT, _symbol_errors(240), every_s=600.0, after_s=60.0),
        harm=Harm.SLOWS,
        seen_as="ib-phy-errors",
        soothes={Fix.RESET_PORT: 0.9, Fix.RESET_NIC: 0.9, Fix.REBOOT: 0.9, Fix.CYCLE_POWER: 0.9},
        relapses=(4 * 3600.0, 0.8),
    ),
    FaultKind(
        name="port-far-end",
        summary="the switch's end of a cable counts errors, which the node's end does not see",
        plan=shows(_PORT, _ufm("ufm.port_errors", "110", "Symbol Error", {"counter": "symbol_error"}), every_s=600.0),
        harm=Harm.SLOWS,
        cures={Fix.RESET_PORT: 0.29, Fix.RESET_NIC: 0.29, Fix.REBOOT: 0.29, Fix.CYCLE_POWER: 0.29},
        seen_as="ib-far-end",
        checked=False,
        source=_CRUSOE,
    ),
    FaultKind(
        name="port-slow",
        summary="a port trained at half of its rate",
        plan=shows(
            _PORT,
            says("ib.degraded", what="rate", degraded=True, value="200", expected="400", by="peers"),
            well=(well("ib.degraded", what="rate", degraded=False, value="400", expected="400", by="peers"),),
            after_s=10.0,
        ),
        harm=Harm.SLOWS,
        cures={Fix.RESET_PORT: 0.4, Fix.RESET_NIC: 0.5, Fix.REBOOT: 0.5, Fix.CYCLE_POWER: 0.5},
        seen_as="port-degraded",
    ),
    FaultKind(
        name="optics-hot",
        summary="a transceiver at the switch is too hot",
        plan=shows(_PORT, _ufm("ufm.module_hot", "919", "Cable Temperature High"), every_s=3600.0),
        harm=Harm.NONE,
        seen_as="ib-module-hot",
        checked=False,
    ),
    FaultKind(
        name="port-congested",
        summary="a port is congested for a quarter of an hour: others' traffic",
        plan=shows(_PORT, _CONGESTED, every_s=60.0, after_s=60.0),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="port-congested",
        lasts=(1500.0, 0.3),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="port-congested-briefly",
        summary="a port is congested for some minutes (noise)",
        plan=shows(_PORT, _CONGESTED, every_s=60.0, after_s=60.0),
        harm=Harm.NONE,
        cured=Cured.TIME,
        lasts=(200.0, 0.3),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="roce-loses",
        summary="the transport of a port loses packets for good, and a connection with them",
        plan=shows(_PORT, says("ib.errors", counter="rnr_nak_retry_err", delta=3, value=3, interval_s=10.0), after_s=10.0),
        harm=Harm.KILLS,
        cured=Cured.TIME,
        seen_as="roce-loss",
        lasts=(300.0, 0.5),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="nic-hot",
        summary="a network card's module is too hot",
        plan=logs("mlx5_core {nic}.0: Port module event[error]: module 0, Cable error, High Temperature",
            component="nic/{nic}.0",
        ),
        harm=Harm.SLOWS,
        seen_as="nic-hot-or-starved",
    ),
    FaultKind(
        name="nic-queue-stuck",
        summary="a network card does not send what it was given",
        plan=logs("NETDEV WATCHDOG: ens1np0 (mlx5_core): transmit queue 12 timed out", component="nic/{nic}.0", every_s=60.0),
        harm=Harm.KILLS,
        cures={Fix.RESET_NIC: 0.7, Fix.REBOOT: 0.9, Fix.CYCLE_POWER: 0.95},
        seen_as="nic-queue-stuck",
    ),
    FaultKind(
        name="nic-gone",
        summary="an InfiniBand device is missing from the kernel",
        plan=shows("nic/{port}", _DEVICE_GONE, well=(_DEVICE_THERE,), after_s=3.0),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.5, Fix.CYCLE_POWER: 0.8},
        seen_as="ib-device-gone",
    ),
    FaultKind(
        name="nic-fragile",
        summary="a card's firmware does not answer; a reset of the card may lose it until its power is cut",
        plan=Shows(
            first=Sign(
                component="nic/{nic}.0",
                again=True,
                lines=("mlx5_core {nic}.0: poll_health:776:(pid 0): device's health compromised - reached miss count",),
            ),
            worse=Sign(component="nic/{nic}.0", bad=(_DEVICE_GONE,), well=(_DEVICE_THERE,), after_s=3.0),
        ),
        harm=Harm.KILLS,
        cures={Fix.RESET_NIC: 0.4, Fix.REBOOT: 0.45, Fix.CYCLE_POWER: 0.8},
        seen_as="nic-broken",
        worsens={Fix.RESET_NIC: 0.4},
    ),
    FaultKind(
        name="nic-pcie-fatal",
        summary="a PCIe error of a network card that its hardware could not correct",
        plan=logs(
            "mlx5_core {nic}.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
            component="nic/{nic}.0",
        ),
        harm=Harm.KILLS,
        cures={Fix.CYCLE_POWER: 0.4},
        seen_as="pcie-fatal",
    ),
    FaultKind(
        name="link-down",
        summary="an Ethernet interface loses its carrier, until it is taken down and up",
        plan=Shows(first=Sign(component="link/eth1"), changes=(after(0, ch.CarrierLost(link="eth1")),)),
        harm=Harm.KILLS,
        cures={Fix.RESET_PORT: 1.0},
        seen_as="link-down",
    ),
    FaultKind(
        name="link-flaps",
        summary="an Ethernet interface comes and goes for seconds (noise)",
        plan=Shows(
            first=Sign(),
            changes=tuple(
                after(n * 0.4, ch.AdminUp(link="eth2") if n % 2 else ch.CarrierLost(link="eth2")) for n in range(_FLAPS)
            ),
        ),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="link-flapping",
        lasts=(30.0, 0.0),
    ),
    FaultKind(
        name="link-blinks",
        summary="an interface's carrier changes faster than the kernel tells: a bad contact",
        plan=shows(_LINK, says("link.carrier_changes", unseen=4, value=18), every_s=900.0),
        harm=Harm.SLOWS,
        seen_as="link-blinking",
    ),
    FaultKind(
        name="mtu-small",
        summary="an interface got a smaller MTU than the other hosts have",
        plan=shows(
            "link/eth2",
            says("link.mtu", mtu=1500, before=9000),
            well=(well("link.mtu", mtu=9000, before=1500),),
        ),
        harm=Harm.SLOWS,
        cures={Fix.SET_MTU: 1.0},
        seen_as="mtu-drift",
        alerts=False,
    ),
    FaultKind(
        name="pause-storm",
        summary="a host pauses its switch for seconds, and traffic far beyond its port",
        plan=shows(_LINK, _PAUSES, every_s=600.0),
        harm=Harm.SLOWS,
        cures={Fix.REBOOT: 0.6, Fix.CYCLE_POWER: 0.8},
        seen_as="pause-storm",
        alerts=False,
    ),
    FaultKind(
        name="bond-degraded",
        summary="one cable of a bond is broken; the other one carries everything",
        plan=shows(
            _BOND,
            says("bond.slaves", up=1, slaves=2, down="eth2", degraded=True),
            well=(well("bond.slaves", up=2, slaves=2, down="", degraded=False),),
        ),
        harm=Harm.NONE,
        seen_as="bond-degraded",
    ),
    FaultKind(
        name="bond-alone",
        summary="a bond has no LACP partner",
        plan=shows(
            _BOND,
            says("bond.lacp", partner="00:00:00:00:00:00", answers=False, apart=0),
            well=(well("bond.lacp", partner="0c:42:a1:00:00:01", answers=True, apart=0),),
        ),
        harm=Harm.SLOWS,
        seen_as="bond-without-partner",
    ),
    FaultKind(
        name="bond-flaps",
        summary="the active slave of a bond changes every two seconds for a while",
        plan=shows(_BOND, says("bond.active_slave", active="eth3", before="eth2"), every_s=2.0),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="bond-flapping",
        lasts=(60.0, 0.3),
    ),
    FaultKind(
        name="manager-unheard",
        summary="one node gets no answer from the subnet manager",
        plan=shows(
            "port/mlx5_0.1",
            says("ib.sm_answer", answers=False, state="", sm_lid=1),
            well=(well("ib.sm_answer", answers=True, state="MASTER", sm_lid=1),),
            every_s=300.0,
        ),
        harm=Harm.NONE,
        seen_as="sm-unreachable",
    ),
)  # fmt: skip
