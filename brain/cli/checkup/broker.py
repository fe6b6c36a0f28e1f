"""NATS: is it there, is it one that keeps nodes apart, what may the brain do there, and is there room?"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from nats.aio.client import Client

from agent.contract.errors import ConfigError
from agent.shared import nats_connection, reasons
from agent.shared.nats_connection import LOST, NatsConnection
from agent.shared.words import t
from brain.adapters import broker_rights, nats_server, operator_mode, server_check
from brain.adapters.broker import brain_connection
from brain.cli.checkup import brains, nats_kept, reached
from brain.cli.checkup.installation import NO_BRAIN, Installation
from brain.cli.checkup.lines import HealthLine, fail, ok, some, unchecked
from brain.config import BrainConfig

WITHIN_S = 15.0


async def broker(found: Installation) -> AsyncIterator[HealthLine]:
    """Connects as the brain does, a second time beside it, and reads."""
    name, config = "broker", found.config
    denied: list[str] = []
    if config.embedded and found.brain is None:
        yield unchecked(name, t("{no_brain}, and its NATS server runs while it does", no_brain=t(NO_BRAIN)))
        return
    try:
        connection = _connection(config, denied)
        client = await connection.connect()
    except ConfigError as error:
        yield fail(name, str(error), t("correct [nats] of brain.toml, or the file"))
        return
    except LOST as error:
        yield _lost(config, error)
        return
    try:
        async with asyncio.timeout(WITHIN_S):
            async for line in _looked(client, config, denied):
                yield line
    except LOST as error:
        yield _lost(config, error)
    finally:
        await nats_connection.close(client)


def _lost(config: BrainConfig, error: Exception) -> HealthLine:
    """No connection, or no more: why, and who must do what."""
    text = f"{_where(config)}: {reasons.what(error)}"
    if config.embedded:
        return fail("broker", text, t("see the log of the brain, which runs this server, and restart it"))
    action = reached.todo(
        error,
        key="nats.url",
        ca_key="nats.ca_file",
        credential=t(
            "give nats.seed_file the seed of the brain's key, and the servers its account, which `gpuward cell show "
            "--nats-accounts` prints"
        ),
        otherwise=t("start the servers, or correct nats.url and nats.seed_file"),
    )
    return fail("broker", text, action)


async def _looked(client: Client, config: BrainConfig, denied: list[str]) -> AsyncIterator[HealthLine]:
    try:
        await server_check.check(client)
    except ConfigError as error:
        yield fail("broker", str(error), t("update or reconfigure each server of the cluster"))
    else:
        version = client.connected_server_version
        yield ok(
            "broker",
            t(
                "{config}: NATS {major}.{minor}.{patch}, strict, JetStream",
                config=_where(config),
                major=version.major,
                minor=version.minor,
                patch=version.patch,
            ),
        )
    denied.clear()
    await broker_rights.try_all(client, config.cell)
    refused = [text for text in denied if "permissions violation" in text.lower()]
    if refused:
        yield fail(
            "rights on NATS",
            some(text.removeprefix("nats: ") for text in refused),
            t("give the brain's user the account that `gpuward cell show --nats-accounts` prints"),
        )
    else:
        yield ok("rights on NATS", t("the brain's user may do all that the brain does"))
    async for line in nats_kept.kept(client, config):
        yield line
    async for line in brains.brains(client, config):
        yield line


def _where(config: BrainConfig) -> str:
    return ",".join(map(nats_connection.shown, (config.nats.url or nats_server.of(config).url).split(",")))


def _connection(config: BrainConfig, denied: list[str]) -> NatsConnection:
    """As the brain connects (brain/app.py). ConfigError: a file cannot be read."""
    server = nats_server.of(config) if config.embedded else None
    jwts = operator_mode.of(config)
    seed: Path | None = server.brain_seed_file if server else None
    return brain_connection(
        config.nats,
        name="gpuward doctor",
        url=server.url if server else "",
        seed_file=seed,
        seed=jwts.user.seed if jwts else "",
        jwt=jwts.brain_jwt(time.time()) if jwts else "",
        ca_file=server.ca_file if server else None,
        on_error=denied.append,
    )
