"""Fleets, rules and settings that stories are played on. Read once, used by thousands of stories."""

import functools
from collections.abc import Mapping
from dataclasses import replace

from brain.adapters import pack as packs
from brain.core.pack.spec import EscalationStep, Mode, ModeSetting, Pack, Place, Priority, Settings, Window
from tests.shipped import shipped_pack

START = 1_700_000_000.0
SIZES = (6, 24, 64, 200)
NODES_PER_LEAF = 8

# Components that nodes have, by the type of scope that symptoms name.
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("gpu/0000:3b:00", "gpu/0000:5e:00"),
    "nvswitch": ("nvswitch/0000:c1:00",),
    "nic": ("nic/mlx5_0", "nic/mlx5_1"),
    "port": ("port/mlx5_0.1", "port/mlx5_1.1"),
    "link": ("link/eth0", "link/eth1"),
    "bond": ("bond/bond0",),
    "service": ("service/slurmd.service", "service/nvidia-fabricmanager.service"),
    "job": ("job/4711",),
    "disk": ("disk/nvme0n1",),
    "mount": ("mount/scratch",),
    "pcie": ("pcie/0000:3a:00",),
    "node": ("node",),
}


def places(size: int) -> dict[str, Place]:
    """A cell of so many nodes in leaves of eight, racks of sixteen and two pods."""
    return {
        f"n{n:03}": Place(leaf=f"l{n // 8}", rack=f"r{n // 16}", pod=f"p{n % 2}", fabric="default")
        for n in range(size)
    }


@functools.cache
def _shipped() -> Pack:
    pack = shipped_pack()
    # Weekly inspections of 200 nodes would drown what stories are about; they are started by operators here.
    return replace(pack, runbooks=tuple(replace(one, every_s=0) for one in pack.runbooks))


@functools.cache
def pack(size: int, mode: Mode, *, careful: bool) -> Pack:
    """The shipped rules on a fleet. `careful`: jobs are asked for, a maintenance window, patterns of modes."""
    settings = Settings(
        modes=(ModeSetting(mode=mode), ModeSetting(runbook="reset-*", nodes="n00*", mode=Mode.APPROVE))
        if careful
        else (ModeSetting(mode=mode),),
        disruptive_runs=5,
        disruptive_runs_per_leaf=2,
        ask_jobs=careful,
        ask_who_is_hit=careful,
        breaker_runs=3 if careful else 12,
        maintenance=(Window(scope="rack/r0", since=START + 600, until=START + 5400, why="new cables"),)
        if careful
        else (),
        escalation={Priority.P1: (EscalationStep(to="oncall"), EscalationStep(to="lead", after_s=900))},
    )
    whole = _shipped()
    made = replace(whole, version=f"{whole.version}-{mode}-{careful}", settings=settings, places=places(size))
    return packs.parse(packs.dump(made))  # as it is read from the log
