"""A brain starts while a disk of its is not mounted, or the store of its NATS server takes nothing: it waits, and people hear."""

import asyncio
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from agent.shared import files
from brain.adapters import lost_folder, mounts
from brain.adapters.disk import try_folder
from brain.adapters.files import runtime_folder
from brain.leader import disk_watch
from tests.real import disk_kit
from tests.real.brain_kit import Lab
from tests.real.disk_kit import frozen, looped_disk, small_disk
from tests.real.nats import free_port
from tests.real.test_nobody_leads import Outside, outside, told

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root]

LITTLE: dict[str, Any] = {"log": {"max_bytes": 64 * 2**20}, "evidence": {"max_bytes": 16 * 2**20}}


@pytest.fixture(autouse=True)
def _told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lasts half a second is a page, where the product waits longer."""
    monkeypatch.setattr(disk_watch, "TELL_AFTER_S", 0.5)
    monkeypatch.setattr(disk_watch, "HANGS_S", 1.0)


class Disk:
    """A folder's content, mounted at its place; gone from there at the end."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self._content = at.with_name(f"{at.name}.content")
        self._content.mkdir()
        at.mkdir()

    def mount(self) -> None:
        """As at a boot that goes well."""
        subprocess.run(["mount", "--bind", str(self._content), str(self.at)], check=True)

    def __enter__(self) -> Self:
        self.mount()
        return self

    def __exit__(self, *_: object) -> None:
        self.umount()

    def umount(self) -> None:
        """Nothing is left at its place."""
        subprocess.run(["umount", "-l", str(self.at)], check=True)


async def waits_for(disk: Disk, brain: Lab, out: Outside, why: str, made: Callable[[], set[str]]) -> None:
    """The disk is not mounted: one page, nothing is made, and with the disk it is the brain that it was."""
    await brain.start()
    await brain.say("hold", scope="all", why="a look")
    assert brain.running is not None
    key = brain.running.signer.key_id
    await brain.stop()
    disk.umount()
    try:
        starting = asyncio.create_task(brain.start())
        await told(out, "brain_disk")
        (page,) = [page for page in out.pages if page["cause"] == "brain_disk"]
        assert why in page["why_now"], page["why_now"]
        assert "it starts by itself" in page["why_now"]
        assert not starting.done()
        assert made() <= {"alerts.json", "tokens.json", "cell"}
    finally:
        disk.mount()
    await starting
    assert brain.running is not None
    assert brain.running.signer.key_id == key
    assert (await brain.get("/api/v1/status"))["holds"]
    await told(out, "brain_disk", "resolve")
    assert out.told("brain_disk") == ["open", "resolve"]
    await brain.stop()


async def test_an_empty_store_of_a_brain_that_had_a_log_is_waited_for(tmp_path: Path) -> None:
    """A new log would be a new cell: what was held and drained is not known there."""
    with Disk(tmp_path / "disk") as disk:
        async with outside() as out:
            embedded = {"embedded": {"port": free_port(), "store": str(disk.at / "nats")}}
            brain = Lab(tmp_path, {"nats": embedded} | LITTLE | out.config)
            why = f"and {disk.at}/nats (nats.embedded.store) has none: mount its disk"
            await waits_for(disk, brain, out, why, lambda: {one.name for one in disk.at.iterdir()})


async def test_an_empty_data_folder_beside_a_log_is_waited_for(tmp_path: Path) -> None:
    """It would make another key, which no node obeys."""
    embedded = {"embedded": {"port": free_port(), "store": str(tmp_path / "nats")}}
    with Disk(tmp_path / "disk") as disk:
        async with outside() as out:
            brain = Lab(tmp_path / "disk", {"nats": embedded} | LITTLE | out.config)
            why = f"has the log of a cell, and {disk.at}/brain has nothing of one, not even its key"
            data = brain.config.data_dir
            await waits_for(disk, brain, out, why, lambda: {one.name for one in data.glob("*")})


async def test_what_fstab_names_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all of the brain's folders are on it, so that none is left to tell."""
    table = tmp_path / "fstab"
    monkeypatch.setattr(mounts, "TABLE", table)
    with Disk(tmp_path / "disk") as disk:
        async with outside() as out:
            table.write_text(f"UUID=1 {disk.at} ext4 defaults,nofail 0 2\n")
            brain = Lab(tmp_path / "disk", LITTLE | out.config)
            why = f"is below {disk.at}, which /etc/fstab names, and nothing is mounted there"
            data = brain.config.data_dir
            await waits_for(disk, brain, out, why, lambda: {one.name for one in data.glob("*")})


async def test_a_lost_log_can_be_given_up(tmp_path: Path) -> None:
    """Whoever makes the folder that is named has a new one."""
    embedded = {"embedded": {"port": free_port(), "store": str(tmp_path / "store")}}
    async with outside() as out:
        brain = Lab(tmp_path, {"nats": embedded} | LITTLE | out.config)
        await brain.start()
        await brain.stop()
        (tmp_path / "store").rename(tmp_path / "gone")
        starting = asyncio.create_task(brain.start())
        await told(out, "brain_disk")
        (tmp_path / "store/js").mkdir(parents=True)
        await starting
        await told(out, "log_lost")
        await brain.stop()


async def test_a_store_that_can_only_be_read_is_told_and_the_brain_goes_on_when_it_is_mended(
    tmp_path: Path,
) -> None:
    """It is another disk than that of the data folder."""
    with small_disk(tmp_path / "disk") as disk:
        embedded = {"embedded": {"port": free_port(), "store": str(disk / "nats")}}
        async with outside() as out:
            brain = Lab(tmp_path, {"nats": embedded} | LITTLE | out.config)
            await brain.start()
            await brain.say("hold", scope="all", why="a look")
            await brain.stop()
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            starting = asyncio.create_task(brain.start())
            await told(out, "brain_disk")
            (page,) = [page for page in out.pages if page["cause"] == "brain_disk"]
            assert f"{disk}/nats can only be read (" in page["why_now"], page["why_now"]
            assert not starting.done()
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            await starting
            assert (await brain.get("/api/v1/status"))["holds"]
            await told(out, "brain_disk", "resolve")
            await brain.stop()


async def test_a_store_that_hangs_is_told_and_the_brain_goes_on_when_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is started by the event loop: only when its disk answers."""
    monkeypatch.setattr(disk_kit, "DISK_MB", 256)
    with looped_disk(tmp_path / "disk") as disk:
        embedded = {"embedded": {"port": free_port(), "store": str(disk / "nats")}}
        async with outside() as out:
            brain = Lab(tmp_path, {"nats": embedded} | LITTLE | out.config)
            await brain.start()
            await brain.stop()
            with frozen(disk):
                starting = asyncio.create_task(brain.start())
                await told(out, "brain_disk")
                (page,) = [page for page in out.pages if page["cause"] == "brain_disk"]
                assert f"{disk}/nats hangs" in page["why_now"], page["why_now"]
            await starting
            await told(out, "brain_disk", "resolve")
            await brain.stop()


async def test_a_data_folder_that_hangs_before_anything_is_opened_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file server that is away: not even the folder's number, or what was paged before, is asked on the event loop."""
    free = threading.Event()

    def hanging(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            free.wait(60)
            return real(*given)

        return call

    async with outside() as out:
        brain = Lab(tmp_path, LITTLE | out.config)
        for place, real in (
            ("brain.app.runtime_folder", runtime_folder),
            ("brain.adapters.lost_folder.check", lost_folder.check),
            ("brain.leader.start_folder.try_folder", try_folder),
            ("agent.shared.files.read_json", files.read_json),
        ):
            monkeypatch.setattr(place, hanging(real))
        starting = asyncio.create_task(brain.start())
        await told(out, "brain_disk")
        (page,) = [page for page in out.pages if page["cause"] == "brain_disk"]
        assert f"{brain.config.data_dir} hangs" in page["why_now"], page["why_now"]
        free.set()
        await starting
        await told(out, "brain_disk", "resolve")
        await brain.stop()
