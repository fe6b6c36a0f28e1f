"""How a node is set up: what is told of it, and that passwords and what differs between equal nodes are not."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import config_file
from agent.collectors.samples import Sample
from agent.collectors.samples_node import GpuCard, Inventory, NodeSettings
from agent.collectors.settings import SettingsCollector
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.base import SourceSetup
from agent.sources.settings import SettingsSource, SettingsSourceOptions, _boot, _short
from brain.core.baseline import apart
from tests.agent.following import once

CMDLINE = (
    "BOOT_IMAGE=/vmlinuz-5.15.0 root=UUID=1f2e ro ip=10.1.2.3::10.1.0.1 ks=http://u:hunter2@boot/ks.cfg iommu=pt "
    "nvidia.NVreg_EnableGpuFirmware=1 mitigations=off\n"
)
FSTAB = """# <file system> <mount point> ...
UUID=77 / ext4 errors=remount-ro 0 1
10.0.0.5:/home /home nfs4 defaults,nconnect=16 0 0
10.0.0.9@o2ib:/scratch /scratch\\040fast lustre flock 0 0
/dev/sdz1 /gone xfs noatime 0 0
"""
MOUNTS = """/dev/sda2 / ext4 rw,relatime,errors=remount-ro 0 0
10.0.0.5:/home /home nfs4 rw,hard,vers=4.2,nconnect=16,clientaddr=10.1.2.3,addr=10.0.0.5,username=ann 0 0
10.0.0.9@o2ib:/scratch /scratch\\040fast lustre rw,flock,user_xattr 0 0
10.0.0.5:/users/ann /users/ann nfs4 rw,soft 0 0
"""
FILES = {
    "proc/cmdline": CMDLINE,
    "etc/fstab": FSTAB,
    "proc/1/mounts": MOUNTS,
    "sys/devices/system/cpu/smt/control": "on\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/disable": "0\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C2\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/disable": "1\n",
    "sys/kernel/iommu_groups/0/type": "identity\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1024\n",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/class/infiniband/mlx5_0/hca_type": "MT4129\n",
    "sys/class/infiniband/mlx5_0/device/numa_node": "0\n",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "sys/class/infiniband/mlx5_1/hca_type": "MT4129\n",
    "sys/class/infiniband/mlx5_1/device/numa_node": "1\n",
    "sys/class/infiniband/mlx5_1/device/net/eth2/mtu": "9000\n",
    "sys/class/infiniband/mlx5_1/ports/1/link_layer": "Ethernet\n",
    "sys/class/infiniband/mlx5_1/tc/1/traffic_class": "Global tclass=106\n",
    "sys/class/net/eth2/ecn/roce_np/enable/2": "0\n",
    "sys/class/net/eth2/ecn/roce_np/enable/3": "1\n",
    "sys/class/net/eth2/ecn/roce_rp/enable/3": "0\n",
}
SETTINGS = NodeSettings(boot="iommu=pt", processors="SMT on", mounts="/ ext4 rw", rdma="8 MT4129")
NODE = Inventory(
    kernel="6.1",
    driver="580",
    cpus=96,
    memory_mb=1024,
    product="G593",
    gpus=(GpuCard(bdf="0000:3b:00", model="H100"),) * 8,
)


def events_of(collector: SettingsCollector, samples: Iterable[Sample]) -> list[UnsentEvent]:
    return [event for sample in samples for event in collector.feed(sample, 0.0)]


def machine(root: Path, **changed: str) -> Host:
    """A recorded machine with these files."""
    for name, text in (FILES | changed).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(root=root)


async def settings(host: Host) -> NodeSettings:
    """What the source says of a machine."""
    (sample,) = await once(SettingsSource(host, SettingsSourceOptions(settings_interval_s=3600.0)))
    assert isinstance(sample, NodeSettings)
    return sample


async def test_what_is_told(tmp_path: Path) -> None:
    """What matters; no address, no disk's name, no user, no password, no mount of a user's."""
    told = await settings(machine(tmp_path))
    assert told.boot == "iommu=pt; mitigations=off; nvidia.NVreg_EnableGpuFirmware=1"
    assert told.processors == (
        "SMT on; NUMA nodes 0-1; frequency acpi-cpufreq performance; boost on; idle states POLL; IOMMU identity; "
        "huge pages 1024 x 2048kB; transparent huge pages madvise"
    )
    assert told.mounts == (
        "/ ext4 errors=remount-ro,relatime,rw; /home nfs4 hard,nconnect=16,rw,vers=4.2; "
        "/scratch fast lustre flock,rw,user_xattr"
    )
    assert told.rdma == "1 MT4129 NUMA 0; 1 MT4129 NUMA 1 ECN marks 3 DCQCN none traffic class 106"


async def test_another_bios_setting_is_another_text(tmp_path: Path) -> None:
    """And a file system that is not mounted, too."""
    before = await settings(machine(tmp_path / "one"))
    after = await settings(
        machine(tmp_path / "two", **{"sys/devices/system/cpu/smt/control": "off\n", "proc/1/mounts": ""})
    )
    assert apart(after.processors, before.processors) == ("SMT off", "SMT on")
    assert (after.mounts, after.boot, after.rdma) == ("", before.boot, before.rdma)


async def test_this_machine_is_read() -> None:
    """Of whatever runs this test the kernel shows something."""
    assert (await settings(Host())).processors


def test_it_is_off_until_it_is_asked_for(tmp_path: Path) -> None:
    """No source, no reading."""
    for text, wanted in (({}, False), ({"settings_interval_s": "3600"}, True)):
        config = config_file.load(None, {"node": "n1", "root": str(tmp_path), **text})
        made = SettingsSource.of(SourceSetup(host=Host(root=tmp_path), config=config))
        assert (made is not None) is wanted


def test_told_once_the_peers_are_known_and_on_change() -> None:
    """Of a node without GPUs too; equal settings are told once."""
    collector = SettingsCollector()
    assert events_of(collector, [SETTINGS]) == []
    (first,) = events_of(collector, [NODE, SETTINGS, NODE])
    assert (first.kind, first.component, first.data["gpu_models"]) == ("node.settings", "node", "8 H100")
    (changed,) = events_of(
        collector, [NodeSettings(boot="iommu=off", processors="SMT on", mounts="/ ext4 rw", rdma="8 MT4129")]
    )
    assert (changed.data["boot"], changed.evidence) == ("iommu=off", "boot iommu=pt -> iommu=off")
    (storage,) = events_of(
        SettingsCollector(), [SETTINGS, Inventory(kernel="6", driver="", cpus=1, memory_mb=1)]
    )
    assert storage.data["gpu_models"] == "no GPU"


@pytest.mark.parametrize(
    "word", ["root=UUID=1", "ds=nocloud;s=http://a", "token=x", "ip=dhcp", "ignition.config.url=http://a"]
)
def test_a_parameter_that_is_not_on_the_list_is_not_told(word: str) -> None:
    """It may be a password."""
    assert list(_boot(f"iommu=pt {word}")) == ["iommu=pt"]


@given(st.text(max_size=700), st.text(max_size=700))
def test_different_texts_stay_different(one: str, other: str) -> None:
    """Also where they are too long to be told whole."""
    assert len(_short(one)) <= 500
    assert (_short(one) == _short(other)) == (one == other)
    assert _short("x" * 600) != _short("x" * 601)
