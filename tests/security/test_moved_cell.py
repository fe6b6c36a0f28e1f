"""A cell moves to another machine, as docs/operations.md says: nobody joins again, and no word of a person is lost."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.security import rotation_kit as kit
from tests.security.test_cell import Machine, machine

pytestmark = pytest.mark.component("nats-server")
NODES = ("gpu-1", "gpu-2", "gpu-3")
MOVED_WITHIN_S = 120.0  # a few seconds where nothing else runs


def moved(whole: Machine) -> None:
    """The old machine is off; the new one has its name, an archive of its files, and the packages."""
    typed(whole, "(umask 077 && tar -C / -czf ~/cell.tar.gz etc/gpuward var/lib/gpuward)")
    archive = whole.folder / "cell.tar.gz"
    assert archive.stat().st_mode & 0o777 == 0o600, "it is as secret as what is in it"
    shutil.rmtree(whole.data)
    (whole.folder / "brain.toml").unlink()
    typed(whole, "tar -C / -xzf ~/cell.tar.gz && systemctl enable --now gpuward")


def typed(whole: Machine, command: str) -> None:
    """A line of the page, with the folders of this machine. The test itself starts the brain."""
    command = command.partition(" && systemctl")[0].replace(" / ", f" {whole.folder} ")
    command = command.replace("etc/gpuward", "brain.toml").replace("var/lib/gpuward", "brain")
    env = {**os.environ, "HOME": str(whole.folder)}
    subprocess.run(["bash", "-ec", command], env=env, check=True, timeout=60)


def test_a_cell_moves_to_another_machine(tmp_path: Path) -> None:
    """All nodes are heard again without a hand on them and obey; a hold, who set it, and the history are there."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "9")
        for node in NODES:
            whole.join(node, token)
        kit.start_heard(whole, *NODES)
        whole.ann("hold", "node/gpu-2", "--why", "its board is being exchanged")
        noted = whole.notes()
        assert "its board is being exchanged" in noted

        whole.stop_brain()
        began = time.monotonic()
        moved(whole)
        whole.start_brain()
        for node in NODES:
            whole.until(lambda node=node: whole.beat_age_s(node) < 5, f"{node} is heard")
        took_s = time.monotonic() - began
        print(f"stopped, packed, unpacked, started, {len(NODES)} nodes heard: {took_s:.1f} s")
        assert took_s < MOVED_WITHIN_S

        (hold,) = whole.status()["holds"]
        assert hold["scope"] == "node/gpu-2", hold
        assert "ann" in hold.values(), hold
        assert noted.count("its board is being exchanged") == whole.notes().count(
            "its board is being exchanged"
        )
        assert whole.status()["troubles"] == []
        # The nodes obey it, and what it announces.
        whole.cell("rotate", "signing")
        whole.until(
            lambda: not kit.keys(whole)["rotations"], "the rotation is over: all nodes have taken the new key"
        )
