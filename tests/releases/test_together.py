"""Versions side by side, as processes: agents older or newer than their brain, and brains that are upgraded one by one."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stack import BIN, Stack
from tests.real.kernel_log import HEARD, write_kernel_line
from tests.releases.kit import install, versions

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root, pytest.mark.slow]
LINE = "NVRM: Xid (PCI:0000:{:02x}:00): 79, GPU has fallen off the bus."


@pytest.fixture(params=versions()[-2:])
def version(request: pytest.FixtureRequest) -> str:
    """One that is not more than two older."""
    return str(request.param)


@pytest.fixture
def released(version: str, tmp_path: Path) -> tuple[Path, Path]:
    """(programs, source) of that version."""
    folder = tmp_path / "released"
    folder.mkdir()
    return install(version, folder), folder / "source"


def with_its_rules(whole: Stack, source: Path) -> None:
    """A brain of that version reads rules of that version."""
    for name in ("rules", "runbooks"):
        shutil.rmtree(whole.folder / name)
        shutil.copytree(source / name, whole.folder / name)


def lost_gpu(whole: Stack, number: int) -> None:
    """Writes to the kernel log that a GPU is lost, and waits for the incident that knows it: its own, or its node's."""
    write_kernel_line(LINE.format(number))
    gpu = f"gpu/{whole.node}/0000:{number:02x}:00"
    whole.wait_for(lambda: gpu in lost_gpus(whole), f"{gpu} is lost")


def lost_gpus(whole: Stack) -> set[str]:
    """The GPUs of which an open incident says that they are lost."""
    symptoms = (text for one in whole.incidents("gpu-lost") for text in one["symptoms"])
    return {scope for name, _, scope in (text.partition("@") for text in symptoms) if name == "gpu_off_bus"}


def said(whole: Stack, programs: Path, *, understood: bool) -> str:
    """What the command line of another version prints of this brain's status."""
    done = subprocess.run(
        [str(programs / "gpuward"), "--url", whole.url, "status"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == (0 if understood else 1), done.stdout + done.stderr
    return done.stdout + done.stderr


@contextlib.contextmanager
def site(folder: Path, programs: Path, source: Path) -> Iterator[Stack]:
    """A cell of a released version in which a GPU is lost: broker, receiver, brain and agent."""
    whole = Stack(folder, programs=programs)
    try:
        with_its_rules(whole, source)
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config()
        whole.start_brain()
        whole.write_agent_config(HEARD)
        whole.start_agent()
        lost_gpu(whole, 0x41)
        yield whole
    finally:
        whole.end()


def test_brain_then_agents_are_upgraded_and_go_back(
    tmp_path: Path, version: str, released: tuple[Path, Path]
) -> None:
    """The order of docs/operations.md, on the same folders. Incident and hold stand all the while, and each pair of versions
    works: what the kernel says becomes an incident. The command lines of both understand both brains, but for 0.1, whose API is
    another one (decision 50): they say so.
    """
    old, source = released
    same_api = not version.startswith("0.1.")
    with site(tmp_path / "stack", old, source) as whole:
        whole.gpuward("hold", f"node/{whole.node}", "--why", "over the upgrade")
        words = said(whole, BIN, understood=same_api)
        assert ("over the upgrade" if same_api else "a brain of version 0.1") in words
        whole.programs = BIN
        for number, (part, programs) in enumerate(
            (("brain", BIN), ("agent", BIN), ("brain", old), ("agent", old), ("agent", BIN)), 0x42
        ):
            whole.stop(part)
            whole.programs = programs
            (whole.start_brain if part == "brain" else whole.start_agent)()
            lost_gpu(whole, number)
            assert len(lost_gpus(whole)) == number - 0x40, "what was open is open"
            assert [hold["why"] for hold in whole.get("/api/v1/status")["holds"]] == ["over the upgrade"]
            if (part, programs) == ("brain", BIN):
                words = said(whole, old, understood=same_api)
                assert ("over the upgrade" if same_api else "use the `gpuward` of its version") in words


def test_brains_are_upgraded_one_by_one(tmp_path: Path, released: tuple[Path, Path]) -> None:
    """A standby of this version reads the old leader's log, and leads when that is killed."""
    with site(tmp_path / "stack", *released) as whole:
        whole.start_standby()
        whole.kill("brain")
        whole.url = whole.url_of("standby")
        whole.wait_for(lambda: whole.get("/api/v1/status").get("leads"), "the new brain leads")
        lost_gpu(whole, 0x42)
        assert len(lost_gpus(whole)) == 2
