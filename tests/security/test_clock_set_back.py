"""The clock of the brain's machine was set back: what had expired stays expired, as the log's time knows it (decision 48)."""

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import nkeys

from brain.cell.registry import CellRegistry
from brain.console.server import Console
from brain.console_config import Role
from tests import people
from tests.security.figures import Record, attacked
from tests.security.test_door import ask, shown
from tests.security.view import FolderView

DAY_S = 86400.0


@contextlib.asynccontextmanager
async def set_back(folder: Path, by_s: float) -> AsyncIterator[tuple[str, Any]]:
    """A console whose machine's clock is so far behind the log's time; its URL and view."""
    view: Any = FolderView.of(folder / "d", console={"port": 0, "open_reading": False} | people.ANN)
    view.state.now = time.time() + by_s
    async with Console(view).serving() as url:
        yield url, view


async def test_a_persons_token_does_not_come_back_to_life(tmp_path: Path, record_property: Record) -> None:
    """It expired an hour ago by the log; the list says so, and one that is made now counts for its whole time."""
    old = shown(people.token_file(tmp_path / "d", role=Role.VIEWER, lasts_s=3600))
    good = shown(people.token_file(tmp_path / "d", lasts_s=3 * DAY_S))
    async with set_back(tmp_path, 2 * 3600) as (url, view):
        assert (await ask(url, Authorization=old))[0] == 401
        assert (await ask(url, Authorization=good))[0] == 200
        tokens = (await ask(url, "/api/v1/tokens", Authorization=good))[1]["tokens"]
        assert [one["void"] for one in tokens] == ["its time is over", ""]
        status, made = await ask(url, "/api/v1/tokens", {"lasts_s": 60}, Authorization=good)
        new = f"Bearer {made['token']}"
        assert (status, (await ask(url, Authorization=new))[0]) == (200, 200)
        view.state.now += 61
        assert (await ask(url, Authorization=new))[0] == 401
    attacked(record_property, 2)


async def test_a_join_token_does_not_come_back_to_life(tmp_path: Path, record_property: Record) -> None:
    """The refusal says why one that `gpuward cell token` has just made is refused: it goes by the machine's clock."""
    async with set_back(tmp_path, 2 * 3600) as (url, view):
        view.config.cell_dir.mkdir(parents=True)
        id_, secret = CellRegistry(view.config.registry_file).make_token(
            "*", count=1, now=time.time(), lasts_s=3600
        )
        seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
        public = nkeys.from_seed(bytearray(seed)).public_key.decode()
        body = {"id": id_, "secret": secret, "node": "n1", "public": public}
        async with aiohttp.ClientSession() as client, client.post(f"{url}/api/join", json=body) as answer:
            assert answer.status == 403
            text = await answer.text()
            assert "has expired" in text
            assert "clock is 2.0 hours behind the log's time" in text
        assert not CellRegistry(view.config.registry_file).nodes()
    attacked(record_property, 1)
