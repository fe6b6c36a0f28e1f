"""Kinds of faults of what nodes share: racks, switches, the subnet manager, file servers. Pure."""

from simulations import changes as ch
from simulations.changes import after
from simulations.faults import Fix
from simulations.month.kinds import Cured, FaultKind, Harm, Onset, Plan, Reach
from simulations.month.signs import Facts, Shows, Sign, says, shows, well

_PORT = "port/mlx5_0.1"
_SERVER = "10.0.0.5"


def _rack_dark(onset: Onset) -> Plan:
    """Its nodes fall within a second or two, and boot when they have power again."""
    sign = Sign().fault(onset)
    late_s = 0.25 * onset.nth
    return (
        after(late_s, ch.FaultBegins(fault=sign)),
        after(late_s, ch.GoesDown(for_s=onset.lasts_s, power=True)),
    )


def _spine_down(onset: Onset) -> Plan:
    """One port of each node, one after the other, as their leaves notice."""
    device, late_s = list(onset.machine.ports)[onset.part], 0.01 * onset.nth
    return (
        after(late_s, ch.FaultBegins(fault=Sign(component=f"port/{device}.1").fault(onset))),
        after(late_s, ch.PortDown(device=device)),
        after(late_s + onset.lasts_s, ch.PortUp(device=device)),
    )


def _another_master(onset: Onset) -> Plan:
    lid = 7 if next(iter(onset.machine.ports.values())).sm_lid == 1 else 1
    return after(0, ch.FaultBegins(fault=Sign().fault(onset))), after(
        0.05 * onset.nth, ch.MasterChanges(sm_lid=lid)
    )


_HOT = says("gpu.temperature", "gpu/{gpu}", active=True, sensor="gpu", margin_c=-1.0)
_COOL = well("gpu.temperature", "gpu/{gpu}", active=False, sensor="gpu", margin_c=9.0)
_FULL: Facts = {"what": "bytes", "fstype": "lustre", "remote": True}

KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="rack-dark",
        summary="a rack loses its power for a while",
        plan=_rack_dark,
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 1.0},
        cured=Cured.TIME,
        seen_as="shared-node-unreachable-rack",
        lasts=(1800.0, 0.8),
        reach=Reach.RACK,
    ),
    FaultKind(
        name="rack-hot",
        summary="the cooling of a rack fails: one GPU after the other is at its temperature limit",
        plan=Shows(first=Sign(component="gpu/{gpu}", bad=(_HOT,), well=(_COOL,), after_s=1.0), apart_s=10.0),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="shared-gpu-thermal-rack",
        lasts=(3600.0, 0.6),
        reach=Reach.RACK,
    ),
    FaultKind(
        name="spine-down",
        summary="a spine of the fabric restarts: ports of all nodes are down for minutes",
        plan=_spine_down,
        harm=Harm.KILLS,
        cured=Cured.TIME,
        seen_as="fabric-suspected",
        lasts=(300.0, 0.4),
        reach=Reach.CELL,
    ),
    FaultKind(
        name="leaf-errs",
        summary="a leaf switch counts errors on all of its ports, after its firmware was changed",
        plan=Shows(
            first=Sign(
                component=_PORT,
                bad=(says("ib.errors", counter="symbol_error", delta=14_400, value=14_400, interval_s=60.0, spec_s=144_000.0),),
                every_s=600.0, after_s=60.0,
            ),
            apart_s=1.0,
        ),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="shared-ib-symbol-errors-leaf",
        lasts=(4 * 3600.0, 0.6),
        reach=Reach.LEAF,
    ),
    FaultKind(
        name="manager-changes",
        summary="another subnet manager takes over, and every port learns its LID (noise)",
        plan=_another_master,
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="sm-failover",
        lasts=(30.0, 0.0),
        alerts=False,
        checked=False,
        reach=Reach.CELL,
    ),
    FaultKind(
        name="manager-frozen",
        summary="the master subnet manager stays master and answers nothing: no new job can connect",
        plan=shows(
            "node",
            says("ib.sm_answer", _PORT, answers=False, state="", sm_lid=1),
            well=(well("ib.sm_answer", _PORT, answers=True, state="MASTER", sm_lid=1),),
            every_s=300.0,
        ),
        harm=Harm.NONE,
        cures={Fix.REPLACE_MASTER: 1.0},
        seen_as="no-working-sm",
        reach=Reach.CELL,
    ),
    FaultKind(
        name="server-gone",
        summary="the file server of all nodes does not answer: their jobs wait",
        plan=shows(
            "mount//data",
            says("mount.state", state="hung", before="ok", fstype="nfs4", waited_s=10.0),
            well=(well("mount.state", state="ok", before="hung", fstype="nfs4"),),
            lines=(f"nfs: server {_SERVER} not responding, still trying",),
            after_s=20.0,
        ),
        harm=Harm.HANGS,
        cured=Cured.TIME,
        seen_as="shared-file-server-gone-cell",
        lasts=(1500.0, 0.7),
        reach=Reach.CELL,
        source="10 of Acme's failures are of its storage (NSDI '24)",
    ),
    FaultKind(
        name="storage-full",
        summary="the shared file system is full: whoever writes fails, until people have deleted something",
        plan=shows(
            "mount//lustre",
            says("mount.space", full=True, used_percent=99.0, free=9000, more=_FULL),
            well=(well("mount.space", full=False, used_percent=80.0, free=9_000_000, more=_FULL),),
            after_s=60.0,
        ),
        harm=Harm.KILLS,
        cured=Cured.TIME,
        seen_as="shared-shared-fs-full-cell",
        lasts=(5400.0, 0.7),
        reach=Reach.CELL,
    ),
)  # fmt: skip
