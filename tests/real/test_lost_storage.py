"""The broker's disk is full, the broker dies, its files are gone: people hear of it, and it is well again without them."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from brain.adapters import keys
from brain.cell.registry import CellRegistry
from brain.leader import disk_watch, server_keeper
from tests.real.brain_kit import lab
from tests.real.disk_kit import fill, out_of_inodes, small_disk
from tests.real.nats import NatsServer, free_port, nats_server
from tests.real.test_metrics import fetch
from tests.real.test_nobody_leads import Outside, outside, told, until

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root]

LITTLE: dict[str, Any] = {"log": {"max_bytes": 64 * 2**20}, "evidence": {"max_bytes": 16 * 2**20}}
WELL_WITHIN_S = 120.0
HEALTH = Path(__file__).parents[2] / "deploy/nats/health.sh"


def opened(out: Outside) -> list[str]:
    """The causes of all pages that open an alert."""
    return [page["cause"] for page in out.pages if page["what"] == "open"]


async def test_a_full_disk_is_told_and_needs_nobody_when_it_has_space_again(tmp_path: Path) -> None:
    """The page says whose disk; what nodes say meanwhile is on the log afterwards."""
    with small_disk(tmp_path / "disk") as disk:
        embedded = {"embedded": {"port": free_port(), "store": str(disk / "nats")}}
        async with outside() as out, lab(tmp_path, nats=embedded, **out.config) as whole:
            node = await whole.node("n1")
            ballast = fill(disk)
            saying = asyncio.create_task(node.event("gpu.lost", "gpu/0000:3b:00", reason="lost"))
            took = await until(
                lambda: bool({"nobody_leads", "brain_disconnected"} & set(opened(out))), "people hear", 30
            )
            print(f"full disk told after {took:.1f} s")
            page = next(page for page in out.pages if page["cause"] in ("nobody_leads", "brain_disconnected"))
            assert f"NATS has no space left in {disk}/nats" in page["why_now"], page["why_now"]
            assert (await fetch(whole, "/readyz"))[0] == 503, "nothing is healed"
            ballast.unlink()
            began = time.monotonic()
            await whole.until(lambda status: status["leads"] and not status["troubles"], "it leads again")
            print(f"well again after {time.monotonic() - began:.1f} s")
            await saying
            await whole.until(lambda found: found["incidents"], "the fault is seen", "/api/v1/incidents")
            await told(out, page["cause"], "resolve")
            epoch = (await whole.get("/api/v1/status"))["epoch"]
            await asyncio.sleep(3 * server_keeper.CHECK_S)
            assert (await whole.get("/api/v1/status"))["epoch"] == epoch, "it is started again once"


@contextmanager
def looked_after(server: NatsServer, folder: Path) -> Iterator[None]:
    """deploy/nats/health.sh beside the server; who ends it has it started again by whatever keeps it running."""
    argv = [
        str(HEALTH),
        f"http://127.0.0.1:{server.monitor}",
        str(folder),
        "pkill",
        "-KILL",
        "-F",
        str(server.pid_file),
    ]
    with subprocess.Popen(argv, env=os.environ | {"EVERY_S": "0.3"}, start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)


async def test_a_server_of_the_sites_own_stores_again_when_there_is_space(tmp_path: Path) -> None:
    """The page says what to do; where health.sh stands beside the server, nobody has to."""
    with small_disk(tmp_path / "disk") as disk, nats_server(disk) as server:
        (disk / "pid").write_text(str(server.pid))
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **LITTLE, **out.config) as whole:
            ballast = fill(disk)
            with suppress(AssertionError):  # its answer would come round through the log
                await whole.say("hold", scope="all", why="more than fits into the last page " * 200)
            # A server that is slow to refuse may be left meanwhile, which is another page.
            await until(lambda: "nobody_leads" in opened(out), "people hear", WELL_WITHIN_S)
            page = next(page for page in out.pages if page["cause"] == "nobody_leads")
            await whole.until(
                lambda status: any("restart it" in one["text"] for one in status["troubles"]),
                "and what to do",
                within_s=WELL_WITHIN_S,
            )
            assert "no input came round" in page["why_now"], page["why_now"]
            with looked_after(server, disk):
                await asyncio.sleep(2)
                assert not server.died, "a restart makes no room"
                ballast.unlink()
                await until(lambda: server.died, "it is restarted", WELL_WITHIN_S)
                server.kill()
                server.start()
            await whole.until(
                lambda status: status["leads"] and not status["troubles"],
                "it leads again",
                within_s=WELL_WITHIN_S,
            )
            await whole.say("hold", scope="all", why="a look")
            await until(
                lambda: "resolve" in out.told("nobody_leads"), "people hear of its end", WELL_WITHIN_S
            )


async def test_a_brain_starts_on_a_disk_that_others_have_filled_since(tmp_path: Path) -> None:
    """There is less free than log and evidence may grow to: it leads, as it did before."""
    with small_disk(tmp_path / "disk") as disk:
        embedded = {"embedded": {"port": free_port(), "store": str(disk / "nats")}}
        async with lab(tmp_path, nats=embedded) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            ballast = fill(disk)
            os.truncate(ballast, ballast.stat().st_size - 8 * 2**20)
            await whole.start()
            status = await whole.until(lambda found: found["leads"], "it leads")
            assert status["holds"]
            assert not status["troubles"]


async def test_a_brain_starts_where_its_server_has_not_one_byte_left(tmp_path: Path) -> None:
    """It was restarted on a full disk: people hear whose disk and what to do, once; with room all goes on without them."""
    with small_disk(tmp_path / "disk") as disk:
        embedded = {"embedded": {"port": free_port(), "store": str(disk / "nats")}}
        async with outside() as out, lab(tmp_path, nats=embedded, **LITTLE, **out.config) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            ballast = fill(disk)
            await whole.start(leads=False)
            assert whole.running is not None
            assert whole.running.server is not None
            assert not whole.running.server.running(), "there is no room for it"
            await told(out, "brain_disconnected")
            (page,) = [page for page in out.pages if page["cause"] == "brain_disconnected"]
            assert f"NATS has no space left in {disk}/nats (0 MiB free)" in page["why_now"], page["why_now"]
            assert "make room for at least 32 MiB" in page["why_now"]
            (trouble,) = (await whole.get("/api/v1/status"))["troubles"]
            assert "the server is then started again by itself" in trouble["text"]
            ballast.unlink()
            status = await whole.until(lambda found: found["leads"] and not found["troubles"], "it leads")
            assert status["holds"]
            await told(out, "brain_disconnected", "resolve")
            assert out.told("brain_disconnected") == ["open", "resolve"]


@pytest.fixture(name="told_soon")
def _told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lasts half a second is a page, where the product waits longer."""
    monkeypatch.setattr(disk_watch, "TELL_AFTER_S", 0.5)


@pytest.mark.usefixtures("told_soon")
async def test_a_brain_all_of_whose_files_are_on_a_full_disk_is_told_and_starts_with_room(
    tmp_path: Path,
) -> None:
    """As installed, its server's streams are in its data folder: not even the history can be opened there."""
    with small_disk(tmp_path / "disk") as disk:
        async with outside() as out, lab(disk, **LITTLE, **out.config) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            ballast = fill(disk)
            starting = asyncio.create_task(whole.start())
            await told(out, "brain_disk")
            assert not starting.done()
            page = next(page for page in out.pages if page["cause"] == "brain_disk")
            assert f"{disk}/brain is full" in page["why_now"], page["why_now"]
            assert "Make room on it: it then starts by itself" in page["why_now"]
            ballast.unlink()
            await starting
            status = await whole.until(lambda found: found["leads"] and not found["troubles"], "it leads")
            assert status["holds"]
            await told(out, "brain_disk", "resolve")
            assert out.told("brain_disk") == ["open", "resolve"]


@pytest.mark.usefixtures("told_soon")
async def test_a_brain_whose_folder_can_only_be_read_is_told_and_starts_when_it_is_mended(
    tmp_path: Path,
) -> None:
    """Not even its lock can be opened there. One page, whoever starts it again meanwhile; one who asks it to stop is obeyed."""
    with small_disk(tmp_path / "disk") as disk:
        async with outside() as out, lab(disk, **LITTLE, **out.config) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            starting = asyncio.create_task(whole.start())
            await told(out, "brain_disk")
            page = next(page for page in out.pages if page["cause"] == "brain_disk")
            assert f"{disk}/brain can only be read (" in page["why_now"], page["why_now"]
            assert "mount it for writing again" in page["why_now"]
            await whole.stop()
            await starting
            starting = asyncio.create_task(whole.start())
            await asyncio.sleep(disk_watch.TELL_AFTER_S + 2 * disk_watch.AGAIN_S)
            assert out.told("brain_disk") == ["open"]
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            await starting
            status = await whole.until(lambda found: found["leads"] and not found["troubles"], "it leads")
            assert status["holds"]
            await told(out, "brain_disk", "resolve")
            assert out.told("brain_disk") == ["open", "resolve"]


@pytest.mark.usefixtures("told_soon")
async def test_the_first_start_of_a_cell_on_a_full_disk_is_told_and_goes_on_with_room(tmp_path: Path) -> None:
    """Nothing was ever made there: neither the brain's key for its own server, nor the name of its run in the lock."""
    with small_disk(tmp_path / "disk") as disk:
        async with outside() as out, lab(disk, **LITTLE, **out.config) as whole:
            await whole.stop()
            people = whole.config.tokens_file.read_bytes()  # who asks below
            shutil.rmtree(whole.config.data_dir)
            whole.config.data_dir.mkdir()
            whole.config.tokens_file.write_bytes(people)
            ballast = fill(disk)
            starting = asyncio.create_task(whole.start())
            await told(out, "brain_disk")
            assert not starting.done()
            page = next(page for page in out.pages if page["cause"] == "brain_disk")
            assert f"{disk}/brain/nats is full" in page["why_now"], page["why_now"]
            ballast.unlink()
            await starting
            await told(out, "brain_disk", "resolve")


@pytest.mark.usefixtures("told_soon")
async def test_who_starts_a_brain_again_while_its_disk_is_full_is_not_told_anew(tmp_path: Path) -> None:
    """Not even that it has told somebody can be written down there: one page, and its end is told when there is room."""
    with small_disk(tmp_path / "disk") as disk:
        async with outside() as out, lab(disk, **LITTLE, **out.config) as whole:
            await whole.stop()
            ballast = fill(disk)
            for _ in range(2):
                starting = asyncio.create_task(whole.start())
                await told(out, "brain_disk")
                await asyncio.sleep(disk_watch.TELL_AFTER_S + 2 * disk_watch.AGAIN_S)
                await whole.stop()
                await starting
            assert out.told("brain_disk") == ["open"]
            ballast.unlink()
            await whole.start()
            await told(out, "brain_disk", "resolve")
            assert out.told("brain_disk") == ["open", "resolve"]


async def test_a_brain_without_one_inode_left_is_told_and_starts_with_some(tmp_path: Path) -> None:
    """There are bytes, as `df` says: its server does not start all the same."""
    with small_disk(tmp_path / "disk") as disk:
        embedded = {"embedded": {"port": free_port(), "store": str(disk / "nats")}}
        async with outside() as out, lab(tmp_path, nats=embedded, **LITTLE, **out.config) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            inodes = out_of_inodes(disk)
            await whole.start(leads=False)
            await told(out, "brain_disconnected")
            (page,) = [page for page in out.pages if page["cause"] == "brain_disconnected"]
            assert f"NATS cannot write in {disk}/nats, though" in page["why_now"], page["why_now"]
            assert "inodes (`df -i`) or a quota" in page["why_now"]
            shutil.rmtree(inodes)
            status = await whole.until(lambda found: found["leads"] and not found["troubles"], "it leads")
            assert status["holds"]
            await told(out, "brain_disconnected", "resolve")
            assert out.told("brain_disconnected") == ["open", "resolve"]


async def test_a_server_that_dies_is_started_again(tmp_path: Path) -> None:
    """Before anybody would be told."""
    async with outside() as out, lab(tmp_path, **out.config) as whole:
        for _ in range(2):
            pid = int((whole.config.data_dir / "nats/nats.pid").read_text())
            os.kill(pid, signal.SIGKILL)
            await whole.until(lambda status: not status["leads"], "it is noticed")
            await whole.until(lambda status: status["leads"], "it leads again")
        node = await whole.node("n1")
        await node.event("agent.started", version="1")
        assert "brain_disconnected" not in opened(out)


async def test_another_log_is_told(tmp_path: Path) -> None:
    """The server's files are gone while the brain runs: it begins anew, leads with a higher epoch, and says what is lost."""
    with nats_server(tmp_path) as server:
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **out.config) as whole:
            epoch = (await whole.get("/api/v1/status"))["epoch"]
            await whole.say("hold", scope="all", why="a look")
            assert (await whole.get("/api/v1/status"))["holds"]
            server.kill()
            shutil.rmtree(tmp_path / "nats/js")
            server.start()
            await until(lambda: "log_lost" in opened(out), "people hear of it")
            status = await whole.until(lambda found: found["leads"] and found["pack"], "it leads again")
            assert status["epoch"] > epoch
            assert status["holds"] == []
            (page,) = [page for page in out.pages if page["cause"] == "log_lost"]
            assert "gpuward hold all" in page["why_now"]
            await whole.stop()
            await whole.start()
            assert opened(out).count("log_lost") == 1, "the new log is known now"


async def test_another_log_is_told_by_a_brain_that_was_not_running(tmp_path: Path) -> None:
    """Its snapshot is of the old one."""
    with nats_server(tmp_path) as server:
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **out.config) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            server.kill()
            shutil.rmtree(tmp_path / "nats/js")
            server.start()
            await whole.start()
            await until(lambda: "log_lost" in opened(out), "people hear of it")


@pytest.mark.parametrize("left", ["the registry", "the read model"])
async def test_a_brain_that_is_restored_without_its_log_says_so(tmp_path: Path, left: str) -> None:
    """There is no snapshot that could be of another one: what people held is lost, and they hear of it once."""
    with nats_server(tmp_path) as server:
        async with outside() as out, lab(tmp_path, nats={"url": server.url}, **out.config) as whole:
            await whole.say("hold", scope="all", why="a look")
            await whole.stop()
            server.kill()
            shutil.rmtree(tmp_path / "nats/js")
            server.start()
            config = whole.config
            (config.data_dir / "state.snapshot").unlink()
            if left == "the registry":
                for file in config.data_dir.glob("history.sqlite*"):
                    file.unlink()
                config.cell_dir.mkdir()
                registry = CellRegistry(config.registry_file)
                id_, secret = registry.make_token("*", count=1, now=0, lasts_s=60)
                public = keys.load_nkey(tmp_path / "n1.nk")
                registry.join(id_, secret, "n1", public, now=1)
            await whole.start()
            await until(lambda: "log_lost" in opened(out), "people hear of it")
            await whole.until(lambda status: status["leads"], "it leads")
            await whole.stop()
            await whole.start()
            await whole.until(lambda status: status["leads"], "it leads")
            assert opened(out).count("log_lost") == 1
