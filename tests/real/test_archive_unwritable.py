"""A folder for the log's archive in which the brain may not write: its unit lets it only read there, say."""

import asyncio
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.archive_kit import Hands, connected
from tests.real.disk_kit import small_disk
from tests.real.nats import make_log, nats_server

pytestmark = [pytest.mark.component("nats-server"), pytest.mark.root]


async def test_it_is_told_before_the_first_file_is_due(tmp_path: Path) -> None:
    """That takes an hour, and a page six more. Once it may write there it does, without a restart."""
    with small_disk(tmp_path / "share") as disk, nats_server(tmp_path / "nats") as server:
        await make_log(server.url)
        async with connected(server.url) as client:
            hands = Hands(client, disk)
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            async with hands.writing():
                deadline = time.monotonic() + 30
                while not hands.noted:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.1)
                assert hands.noted == ["archive.failing"]
                assert hands.failing == f"{disk}: the brain's user may not write in {disk}"
                subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
                await hands.say_until_kept(10)
                assert hands.failing == ""
            assert hands.noted == ["archive.failing", "archive.works"]
