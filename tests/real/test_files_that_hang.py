"""Small files of the brain on a file server that hangs: what was read last counts, and what is new as soon as it answers."""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brain import config
from brain.adapters.keys import CurrentSigner, load_signer
from brain.console.access.tls import Certificate
from brain.leader.own_files import HANGS_S, OwnFiles
from brain.notify.compose import compose
from brain.notify.first_messages import FirstMessages
from tests.brain.notify.pages import page
from tests.real.brain_kit import lab
from tests.real.disk_kit import FileServer, file_server
from tests.security.test_door import certificate

pytestmark = [pytest.mark.root, pytest.mark.component("bindfs"), pytest.mark.timeout(120)]
WELL_WITHIN_S = 60.0
STILL_S = 5.0  # of a loaded machine; the disk hangs for longer


@pytest.fixture(name="served")
def _served(tmp_path: Path) -> Iterator[tuple[Path, FileServer]]:
    """A folder of a file server's."""
    with file_server(tmp_path / "files") as server:
        yield tmp_path / "files", server


async def until(look: Callable[[], object]) -> None:
    """Until it is so."""
    async with asyncio.timeout(WELL_WITHIN_S):
        while not look():
            await asyncio.sleep(0.05)


async def test_a_file_that_hangs_is_paged_once(tmp_path: Path, served: tuple[Path, FileServer]) -> None:
    """brain.toml on a disk of its own, by its own page; what lies on the disk of the data folder has that disk's page."""
    folder, server = served
    file = folder / "brain.toml"
    file.write_text(f'data_dir = "{tmp_path}"\n[console.users.ann]\nrole = "administrator"\n')
    told: dict[str, str] = {}
    alerts: Any = SimpleNamespace(open=told.__setitem__, clear=lambda cause: told.pop(cause, None))
    at_s, disk_hangs = [0.0], [True]
    files = OwnFiles(config.load(file), alerts, clock=lambda: at_s[0], disk_hangs=lambda: disk_hangs[0])
    files.look()
    with server.hanging():
        for at_s[0] in (1.0, 1.0 + 2 * HANGS_S):
            files.look()
            assert not told, "people hear of the disk"
        disk_hangs[0] = False
        for at_s[0], paged in ((100.0, False), (100.0 + HANGS_S, True)):
            files.look()
            assert (told.keys() == {"people_unreadable"}) is paged, told
        assert "brain.toml: its disk does not answer: see `dmesg`" in told["people_unreadable"]

    def is_over() -> bool:
        files.look()
        return not told

    await until(is_over)


async def test_a_certificate_and_a_key(served: tuple[Path, FileServer]) -> None:
    """What is in use stays; what came meanwhile is taken up when the server answers."""
    folder, server = served
    behind = folder.with_name("files.behind")
    chain, key = certificate(folder, "first")
    shown = Certificate(chain, key)
    signer = CurrentSigner(folder / "signing.key")
    first, new = signer().key_id, load_signer(behind.parent / "new.key").key_id
    with server.hanging():
        for source, target in zip(certificate(behind.parent, "second"), (chain, key), strict=True):
            (behind / target.name).write_bytes(source.read_bytes())
        (behind.parent / "new.key").replace(behind / "signing.key")
        shown.refresh()
        assert signer().key_id == first
        assert subject(shown) != (behind.parent / "second.pem").read_text()
    await until(lambda: signer().key_id == new)

    def is_second() -> bool:
        shown.refresh()
        return subject(shown) == (behind.parent / "second.pem").read_text()

    await until(is_second)


def subject(shown: Certificate) -> str:
    """The certificate that a client is shown, in PEM."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    ways = [ssl.MemoryBIO() for _ in range(2)]
    here = client.wrap_bio(ways[0], ways[1])
    there = shown.context.wrap_bio(ways[1], ways[0], server_side=True)
    for side in (here, there, here, there):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return ssl.DER_cert_to_PEM_cert(here.getpeercert(binary_form=True) or b"")


async def test_a_page_does_not_wait_for_its_note_of_the_first_message(
    served: tuple[Path, FileServer],
) -> None:
    """It is out; what the next one refers to is written when the server answers."""
    folder, server = served
    first = FirstMessages()
    with server.hanging():
        first.remember_in(folder, "slack", "hook")
        await first.keep(compose(page()), "1.1")
        assert first.of(compose(page())) == "1.1"
    await until((folder / "slack-hook.json").exists)
    other = FirstMessages()
    other.remember_in(folder, "slack", "hook")
    assert other.of(compose(page())) == "1.1"


@pytest.mark.component("nats-server")
async def test_the_event_loop_of_an_embedded_cell_goes_on(tmp_path: Path) -> None:
    """Its NATS server hangs with it, so nothing is healed; it says so, answers within a second, and leads again by itself."""
    longest_s = 0.0

    async def watch() -> None:
        nonlocal longest_s
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(0.01)
            longest_s = max(longest_s, time.monotonic() - began_s)

    with file_server(tmp_path / "brain") as server:
        async with lab(tmp_path) as whole:
            epoch = (await whole.get("/api/v1/status"))["epoch"]
            async with whole.fetch("/api/join") as answer:
                assert answer.status == 200
            watching = asyncio.create_task(watch())
            with server.hanging():
                await whole.until(
                    lambda found: (
                        {one["cause"] for one in found["troubles"]} >= {"nobody_leads", "brain_disk"}
                    ),
                    "people hear of both",
                )
                async with whole.fetch("/api/join") as answer:
                    assert answer.status == 200, "what a node is told was read before"
                watching.cancel()
            await whole.until(lambda found: found["leads"] and not found["troubles"], "it leads again")
            assert (await whole.get("/api/v1/status"))["epoch"] >= epoch
    assert longest_s < STILL_S, f"the event loop stood still for {longest_s:.2f} s"
    print(f"the event loop stood still for {1000 * longest_s:.0f} ms at most")
