"""What others can read of the data folders after a whole run: nothing."""

import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

import nkeys
import pytest

from tests.e2e.stack import Stack
from tests.real.kernel_log import HEARD, write_kernel_line

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.component("nats-server")]


@pytest.fixture
def careless() -> Iterator[None]:
    """The umask that leaves everything open to all."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(folder: Path) -> tuple[list[str], int]:
    """(each file that is not 0640 or less, and each folder that is not 0750 or less; how many there are in all)."""
    found, count = [], 0
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        allowed = 0o750 if stat.S_ISDIR(mode) else 0o640
        count += 1
        if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) & ~allowed:
            found.append(f"{path.relative_to(folder)} {stat.S_IMODE(mode):o}")
    return found, count


def node_key(folder: Path) -> tuple[Path, str]:
    """The file of a node's seed, and its public NKEY."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    path = folder / "node.nk"
    path.write_bytes(seed)
    path.chmod(0o600)
    return path, nkeys.from_seed(bytearray(seed)).public_key.decode()


@pytest.mark.usefixtures("careless")
def test_no_file_of_a_whole_run_is_open_to_others(tmp_path: Path) -> None:
    """Brain with its own server, agent, an incident with evidence, a restart of both; started with umask 0."""
    whole = Stack(tmp_path)
    seed, public = node_key(tmp_path)
    try:
        whole.start_receiver()
        config = whole.write_brain_config('[[modes]]\nmode = "auto"\n')
        embedded = f'[nats.embedded]\nport = {whole.nats.port}\n[nats.embedded.nodes]\n"lab-1" = "{public}"'
        config.write_text(config.read_text().replace(f'[nats]\nurl = "{whole.nats.url}"', embedded))
        whole.start_brain()
        whole.write_agent_config(f'{HEARD}\nnats_seed_file = "{seed}"\nbug_report_s = 0')
        whole.start_agent()
        where = uuid.uuid4().int
        address = f"{where % 0xFFFF:04x}:{(where >> 16) % 0xFF:02x}:{(where >> 24) % 0x20:02x}"
        write_kernel_line(f"NVRM: Xid (PCI:{address}): 79, GPU has fallen off the bus.")
        whole.wait_for(
            lambda: list((tmp_path / "agent/evidence").glob("*.tar.gz")), "the node has made its evidence"
        )
        for name, start in (("agent", whole.start_agent), ("brain", whole.start_brain)):
            assert whole.stop(name) == 0
            start()
        for folder, least in ((tmp_path / "agent", 5), (tmp_path / "brain", 10)):
            found, count = open_to_others(folder)
            assert found == []
            assert count >= least, "there was nothing to look at"
    finally:
        whole.end()
