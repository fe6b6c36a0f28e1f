"""The brain refuses a NATS server that would not keep nodes apart, and says what to change."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nats.aio.client import Client

from agent.contract.errors import ConfigError
from agent.shared.nats_connection import LOST
from brain.adapters import server_check
from tests.real.nats import client, free_port, nats_server

pytestmark = pytest.mark.component("nats-server")


async def test_a_strict_server_passes(tmp_path: Path) -> None:
    """As the embedded one, and as a newer server is by itself."""
    with nats_server(tmp_path) as server:
        async with client(server.url) as connection:
            await server_check.check(connection)


async def test_a_lax_server_is_refused(tmp_path: Path) -> None:
    """The message names the line of its configuration."""
    with nats_server(tmp_path, strict=False) as server:
        async with client(server.url) as connection:
            with pytest.raises(ConfigError, match=r"jetstream \{ strict: true \}"):
                await server_check.check(connection)


async def test_a_server_whose_cluster_has_no_leader_is_asked_again(tmp_path: Path) -> None:
    """It answers that it cannot answer now, as for seconds after another one has died: that says nothing of its strictness."""
    alone = f"routes: ['nats://127.0.0.1:{free_port()}', 'nats://127.0.0.1:{free_port()}']"
    cluster = f"server_name: s1\ncluster {{ name: site, listen: '127.0.0.1:{free_port()}', {alone} }}"
    with nats_server(tmp_path, config=cluster) as server:
        async with client(server.url) as connection:
            said = ""
            async with asyncio.timeout(60):
                while "temporarily unavailable" not in said:  # it does not answer at all until it knows
                    with pytest.raises(LOST) as why:
                        await server_check.check(connection)
                    said = str(why.value)


async def test_an_old_server_is_refused() -> None:
    """By its version."""
    old: Any = SimpleNamespace(connected_server_version=SimpleNamespace(major=2, minor=11, patch=9))
    with pytest.raises(ConfigError, match=r"2\.11\.9.*2\.12\.0 or newer"):
        await server_check.check(cast(Client, old))
