"""What whoever has no credential reads where reading is open (console.open_reading), and what it costs others: not their places,
nor the brain's memory.
"""

import asyncio
import gc
import re
from pathlib import Path

import pytest

from brain.console import watching
from tests import people
from tests.real.brain_kit import Lab, lab
from tests.security.figures import Record, attacked
from tests.security.test_door import ask, shown

pytestmark = pytest.mark.component("nats-server")


async def test_strangers_who_watch_leave_places_to_people(tmp_path: Path, record_property: Record) -> None:
    """From as many addresses as they like: on this machine each user has 2**24 of them."""
    async with lab(tmp_path) as whole:
        writers: list[asyncio.StreamWriter] = []
        statuses = []
        for number in range(watching.MOST_WATCHERS):
            address = f"127.0.0.{2 + number // watching.WATCHERS_OF_ONE}"
            status, writer = await _watch(whole, address, "")
            writers.append(writer)
            statuses.append(status)
        assert set(statuses) == {b"200", b"503"}
        status, writer = await _watch(whole, "127.0.0.1", f"Authorization: {shown(whole.ann)}\r\n")
        writers.append(writer)
        assert status == b"200"
        for writer in writers:
            writer.close()
        attacked(record_property, len(statuses), refused=statuses.count(b"503"))


async def _watch(whole: Lab, address: str, header: str) -> tuple[bytes, asyncio.StreamWriter]:
    assert whole.running is not None
    port = int(whole.running.console_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(f"GET /api/v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n".encode())
    return (await reader.readline())[9:12], writer


async def test_globs_that_were_asked_for_are_not_kept(tmp_path: Path) -> None:
    """The standard library's fnmatch keeps 32,768 patterns, and those that the API takes are of up to 16 KB each."""
    async with lab(tmp_path, console={"port": 0, "requests_per_s": 10_000} | people.ANN) as whole:
        await (await whole.node("n1")).beat()
        await whole.until(lambda found: found["nodes"], "the node is heard", "/api/v1/nodes")
        before = _patterns()
        for number in range(700):
            assert (await whole.get(f"/api/v1/nodes?name=[m]{number}"))["nodes"] == []
        assert (await whole.get("/api/v1/nodes?name=[n]?"))["nodes"]
        # `re` itself keeps 512 at most (CPython's Lib/re/__init__.py).
        assert _patterns() - before < 600


def _patterns() -> int:
    gc.collect()
    return sum(isinstance(one, re.Pattern) for one in gc.get_objects())


async def test_strangers_do_not_learn_where_the_brain_keeps_what_it_has(tmp_path: Path) -> None:
    """The paths of its configuration and of its data are for people with a credential: they name users and mounts."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        status, told = await ask(whole.running.console_url, "/api/v1/status")
        assert (status, told["config_file"], told["data_dir"]) == (200, "", "")
        assert str(tmp_path) not in str(told)
        assert (await whole.get("/api/v1/status"))["data_dir"] == str(whole.config.data_dir)
