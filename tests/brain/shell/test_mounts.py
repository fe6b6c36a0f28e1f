"""Which disk is to be above a folder, and is not: tables of real machines, and this one's own."""

import subprocess
from pathlib import Path

import pytest

from brain.adapters import mounts
from brain.adapters.mounts import unmounted_above
from tests.real.disk_kit import small_disk

ROOT = "29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw"
DATA = "40 29 254:16 / /data rw,relatime shared:9 - ext4 /dev/vdb rw"
# A unit's ReadWritePaths=/data/gpuward, where /data is not mounted
OWN = "51 29 254:0 /data/gpuward /data/gpuward rw,relatime - ext4 /dev/vda rw"
OTHER = "52 29 254:0 /srv/data /data rw,relatime - ext4 /dev/vda rw"  # a bind mount of another folder
AUTO = "53 29 0:44 / /data rw,relatime - autofs systemd-1 rw"
SPACE = r"54 29 254:16 / /my\040data rw,relatime - ext4 /dev/vdb rw"
FSTAB = "# made by the installer\nUUID=1 / ext4 errors=remount-ro 0 1\nUUID=2 none swap sw 0 0\nUUID=3 {} ext4 nofail 0 2\n"


@pytest.mark.parametrize(
    ("place", "folder", "there", "found"),
    [
        ("/data", "/data/gpuward", [ROOT], "/data"),
        ("/data", "/data", [ROOT], "/data"),
        ("/data", "/data/gpuward", [ROOT, DATA], None),
        ("/data", "/database/gpuward", [ROOT], None),
        ("/data", "/var/lib/gpuward", [ROOT], None),
        ("/data/gpuward", "/data/gpuward", [ROOT, OWN], "/data/gpuward"),
        ("/data", "/data/gpuward", [ROOT, OWN], "/data"),
        ("/data", "/data/gpuward", [ROOT, OTHER], None),
        ("/data", "/data/gpuward", [ROOT, AUTO], None),
        (r"/my\040data", "/my data/gpuward", [ROOT], "/my data"),
        (r"/my\040data", "/my data/gpuward", [ROOT, SPACE], None),
    ],
)
def test_a_table_and_what_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, folder: str, there: list[str], found: str
) -> None:
    """What is mounted at its own place once more, as by a unit's ReadWritePaths=, is no disk."""
    monkeypatch.setattr(mounts, "TABLE", tmp_path / "fstab")
    monkeypatch.setattr(mounts, "MOUNTED", tmp_path / "mountinfo")
    mounts.TABLE.write_text(FSTAB.format(place))
    mounts.MOUNTED.write_text("\n".join(there) + "\n")
    assert unmounted_above(Path(folder)) == (Path(found) if found else None)


def test_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: nobody can tell."""
    monkeypatch.setattr(mounts, "TABLE", tmp_path / "fstab")
    assert unmounted_above(tmp_path) is None


@pytest.mark.root
def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a folder that is a link to one on that disk, and while it is bound to its own place."""
    at = tmp_path / "disk"
    link = tmp_path / "link"
    link.symlink_to(at / "gpuward")
    monkeypatch.setattr(mounts, "TABLE", tmp_path / "fstab")
    mounts.TABLE.write_text(f"tmpfs {at} tmpfs defaults 0 0\n")
    assert unmounted_above(link) == at
    with small_disk(at):
        assert unmounted_above(link) is None
    subprocess.run(["mount", "--bind", str(at), str(at)], check=True)
    try:
        assert unmounted_above(link) == at
    finally:
        subprocess.run(["umount", str(at)], check=True)
