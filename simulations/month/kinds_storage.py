"""Kinds of faults of a node's own disks and file systems: what NVMe disks say of their health, and what the kernel says. Pure."""

from agent.contract.messages import Scalar
from simulations.faults import Fix
from simulations.month.kinds import Cured, FaultKind, Harm
from simulations.month.signs import Shows, logs, says, shows, well

_DISK = "disk/{disk}"
_MODEL: dict[str, Scalar] = {"model": "SAMSUNG MZQL23T8HCLS-00A07", "serial": "S64HNE0T601234"}
_WELL: dict[str, Scalar] = {
    "answers": True, "read_only": False, "unreliable": False, "spare_low": False, "worn": False, "unprotected": False,
    "hot": False, "spare_percent": 100, "spare_threshold_percent": 10, "used_percent": 3, "media_errors": 0,
    "temperature_c": 37,
}  # fmt: skip


def _health(**ill: Scalar) -> Shows:
    """What the disk's own health page says each hour, until it is replaced."""
    return shows(
        _DISK,
        says("disk.health", more=_WELL | ill | _MODEL),
        well=(well("disk.health", more=_WELL | _MODEL),),
        every_s=3600.0,
        after_s=60.0,
    )


def _space(mount: str, what: str, used_percent: float) -> Shows:
    return shows(
        f"mount/{mount}",
        says(
            "mount.space",
            what=what,
            full=True,
            used_percent=used_percent,
            free=9000,
            fstype="ext4",
            remote=False,
        ),
        well=(
            well(
                "mount.space",
                what=what,
                full=False,
                used_percent=60.0,
                free=90_000,
                fstype="ext4",
                remote=False,
            ),
        ),
        after_s=60.0,
    )


KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="disk-read-only",
        summary="a disk has used up its spare, and can only be read",
        plan=_health(read_only=True, spare_low=True, spare_percent=0),
        harm=Harm.KILLS,
        seen_as="disk-failing",
    ),
    FaultKind(
        name="disk-worn",
        summary="a disk is beyond the life that its maker expects",
        plan=_health(worn=True, used_percent=104),
        harm=Harm.NONE,
        seen_as="disk-worn",
    ),
    FaultKind(
        name="disk-unprotected",
        summary="a disk would lose what its cache holds with the power",
        plan=_health(unprotected=True),
        harm=Harm.NONE,
        seen_as="disk-unprotected",
    ),
    FaultKind(
        name="disk-silent",
        summary="the controller of a disk does not answer",
        plan=shows(
            _DISK,
            says("disk.health", answers=False, waited_s=10.0, more=_MODEL),
            well=(well("disk.health", more=_WELL | _MODEL),),
            after_s=30.0,
        ),
        harm=Harm.KILLS,
        cures={Fix.REBOOT: 0.3, Fix.CYCLE_POWER: 0.6},
        seen_as="disk-silent",
    ),
    FaultKind(
        name="disk-hot",
        summary="a disk is above its critical temperature for a while",
        plan=shows(
            _DISK,
            says("disk.counter", counter="critical_temperature_min", delta=4, value=4, interval_s=600.0, more=_MODEL),
            every_s=600.0,
        ),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="disk-hot",
        lasts=(7200.0, 0.6),
    ),
    FaultKind(
        name="disk-misreads",
        summary="a disk cannot read some of its sectors, again and again",
        plan=logs(
            "critical medium error, dev sdb, sector 3907029160 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
            component="disk/sdb", every_s=900.0,
        ),
        harm=Harm.KILLS,
        seen_as="disk-failing",
    ),
    FaultKind(
        name="files-damaged",
        summary="the metadata of a file system is damaged",
        plan=logs(
            "XFS (nvme0n1p2): Metadata corruption detected at xfs_agf_read_verify+0x7a/0x120 [xfs], xfs_agf block 0x1",
            component="disk/nvme0n1p2",
        ),
        harm=Harm.NONE,
        seen_as="filesystem-damaged",
    ),
    FaultKind(
        name="files-read-only",
        summary="a file system of the node goes read-only",
        plan=logs("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", component="disk/nvme0n1p2"),
        harm=Harm.KILLS,
        seen_as="filesystem-unwritable",
    ),
    FaultKind(
        name="disk-full",
        summary="the root file system of a node is full",
        plan=_space("/", "bytes", 96.0),
        harm=Harm.NONE,
        seen_as="disk-full",
    ),
    FaultKind(
        name="inodes-gone",
        summary="the scratch file system has no inode left: a job writes very many small files",
        plan=_space("/scratch", "inodes", 99.0),
        harm=Harm.KILLS,
        seen_as="disk-full",
    ),
    FaultKind(
        name="files-exhausted",
        summary="no further file can be opened on the node, until the job that holds them ends",
        plan=logs("VFS: file-max limit 1048576 reached"),
        harm=Harm.KILLS,
        cured=Cured.JOB,
        seen_as="files-exhausted",
    ),
    FaultKind(
        name="locks-lost",
        summary="a node loses its locks on the file server after a short outage (noise)",
        plan=logs("NFS: __nfs4_reclaim_open_state: Lock reclaim failed!"),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="file-locks-lost",
        lasts=(60.0, 0.5),
        alerts=False,
        checked=False,
    ),
)  # fmt: skip
