"""Names of the parts of a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.components import whole_disk

# Kernel name -> the disk that fails when it does.
DISKS = {
    "nvme0": "nvme0",
    "nvme0n1": "nvme0",
    "nvme12n1p15": "nvme12",
    "nvme0c1n1": "nvme0",  # a path of a namespace with several
    "sda": "sda",
    "sdaa12": "sdaa",
    "vda1": "vda",
    "xvdb2": "xvdb",
    "md0": "md0",
    "md127p1": "md127",
    "md_d0p1": "md_d0",
    "mmcblk0p2": "mmcblk0",
    "mmcblk0boot0": "mmcblk0boot0",  # a disk of its own
    "ata3.00": "ata3",
    "dm-3": "dm-3",  # what lies below it, no line says
    "8:16": "8:16",
    "mpatha1": "mpatha1",
    "cciss/c0d0": "cciss/c0d0",
}


@pytest.mark.parametrize(("name", "disk"), DISKS.items())
def test_a_part_of_a_disk_is_that_disk(name: str, disk: str) -> None:
    """A controller, its namespace and a partition of that are one disk; names that say nothing of a whole stay."""
    assert whole_disk(name) == disk


@given(st.text(alphabet="nvmesdaxtp0123456789c-:.", max_size=30))
def test_a_whole_disk_is_its_own_whole(name: str) -> None:
    """Whatever a node writes."""
    assert whole_disk(whole_disk(name)) == whole_disk(name)
