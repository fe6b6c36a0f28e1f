"""NATS: is it there, is it one that keeps nodes apart, what may the brain do there, and is there room?"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from pathlib import Path

from nats.aio.client import Client
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.shared import nats_connection
from agent.shared.nats_connection import LOST, NatsConnection
from agent.shared.words import later, t
from brain.adapters import broker_rights, copies, kept_streams, log, nats_server, operator_mode, server_check
from brain.adapters.broker import brain_connection
from brain.adapters.kept_streams import StreamUse
from brain.cli.checkup.installation import NO_BRAIN, Installation
from brain.cli.checkup.lines import HealthLine, fail, ok, some, unchecked, warn
from brain.config import BrainConfig

WITHIN_S = 15.0
FULL = 0.9  # of what the server lets the brain's account keep
SHORT_S = (
    3 * 86_400.0
)  # a full log that reaches back less is short: incidents of a weekend are gone on Monday
_GIB = 1024**3
_DAY_S = 86_400.0


async def broker(found: Installation) -> AsyncIterator[HealthLine]:
    """Connects as the brain does, a second time beside it, and reads."""
    name, config = "broker", found.config
    denied: list[str] = []
    if config.embedded and found.brain is None:
        yield unchecked(
            name,
            t("{no_brain}, and its NATS server runs while it does", no_brain=t(NO_BRAIN)),
            t("start it: `gpuward run`"),
        )
        return
    try:
        connection = _connection(config, denied)
        client = await connection.connect()
    except ConfigError as error:
        yield fail(name, str(error), t("correct [nats] of brain.toml, or the file"))
        return
    except LOST as error:
        action = t(_RESTART if config.embedded else _UNREACHABLE)
        yield fail(
            name, t("{config} does not let us in: {error}", config=_where(config), error=_said(error)), action
        )
        return
    try:
        async with asyncio.timeout(WITHIN_S):
            async for line in _looked(client, config, denied):
                yield line
    except LOST as error:
        yield fail(
            name, f"{_where(config)}: {_said(error)}", t(_RESTART if config.embedded else _UNREACHABLE)
        )
    finally:
        await nats_connection.close(client)


_CALLED = {
    StreamUse.LOG: later("the log"),
    StreamUse.LEASE: later("the lease"),
    StreamUse.STATE: later("the state"),
    StreamUse.EVIDENCE: later("the evidence"),
    StreamUse.LANES: later("the lanes"),
}
_UNREACHABLE = later("start the servers, or correct nats.url and nats.seed_file")
_RESTART = later("see the log of the brain, which runs this server, and restart it")


def _said(error: Exception) -> str:
    """What a client's error says; some say nothing."""
    return str(error) or t("no answer in time")


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
    async for line in _kept(client, config):
        yield line


async def _kept(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
    """The log, and the room that JetStream has."""
    manager = client.jsm()
    try:
        info = await log.info(client, config.cell)
    except NotFoundError:
        yield warn(
            "log", t("cell {cell} has none yet", cell=config.cell), t("the brain makes it at its first start")
        )
    else:
        yield await _log(client, config, info)
        async for line in _copies(client, config):
            yield line
    async for line in _evidence(client, config):
        yield line
    account = await manager.account_info()
    most = account.limits.max_storage if account.limits else 0
    if most > 0:
        share = account.storage / most
        text = t(
            "JetStream has {storage} of {most} GiB of this account",
            storage=f"{account.storage / _GIB:.1f}",
            most=f"{most / _GIB:.1f}",
        )
        full = share > FULL
        yield (
            warn("room on NATS", text, t("raise the account's limit, or lower log.max_bytes"))
            if full
            else ok("room on NATS", text)
        )


async def _copies(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
    """Each stream has as many copies as are wanted, all of them there: else the next server that dies is one too many."""
    name, wanted = "copies on NATS", config.nats.replicas
    few, away, leads = dict[str, int](), dict[str, str](), ""
    for what, found in await _streams(client, config.cell):
        if found.config.name == subjects.stream(config.cell):
            leads = str((found.cluster and found.cluster.leader) or "")
        if (there := copies.of(found.config)) < wanted:
            few[what] = min(there, few.get(what, wanted))
        for peer in (found.cluster and found.cluster.replicas) or ():
            gone = t("{server} is away", server=peer.name)
            if peer.offline or not peer.current:
                away[str(peer.name)] = gone if peer.offline else t("{server} is behind", server=peer.name)
    if away:
        yield warn(
            name,
            t("not on all servers: {away}", away=some(away.values())),
            t("start that server, or see its log and its disk: when another one dies, the cell stands"),
        )
    if few:
        yield warn(
            name,
            some(
                t("{what}: {copies} of {wanted}", what=t(what), copies=there, wanted=wanted)
                for what, there in few.items()
            ),
            t(
                "nats.replicas servers must be there: start them, then restart the brain, which makes the copies"
            ),
        )
    if wanted > 1 and not away and not few:
        log_leader = t("; {server} leads the log", server=leads) if leads else ""
        yield ok(
            name,
            t("{wanted} of everything, and all are there{log_leader}", wanted=wanted, log_leader=log_leader),
        )


async def _streams(client: Client, cell: str) -> list[tuple[str, StreamInfo]]:
    """What the brain keeps on NATS, and each stream that has it. `LOST`: the servers say nothing of one of them."""
    found: list[tuple[str, StreamInfo]] = []
    for what, info in await kept_streams.told(client, cell):
        if isinstance(info, Exception):
            raise info
        found.append((_CALLED[what], info))
    return found


async def _log(client: Client, config: BrainConfig, info: log.LogInfo) -> HealthLine:
    name = "log"
    taken = f"{info.bytes / _GIB:.2f}"
    if info.max_bytes:
        text = t("{bytes} of {max_bytes} GiB", bytes=taken, max_bytes=f"{info.max_bytes / _GIB:.2f}")
    else:
        text = t("{bytes} GiB, without a limit", bytes=taken)
    if 0 < info.max_bytes < config.log.max_bytes:
        wanted = t(
            "{max_bytes} GiB are configured (log.max_bytes)", max_bytes=f"{config.log.max_bytes / _GIB:.2f}"
        )
        return warn(
            name,
            t("{text}, and {wanted}: the server had no room", text=text, wanted=wanted),
            t("make room there, restart the brain"),
        )
    if not config.embedded and _keeps_more(info, config):
        days = f"{info.max_age_s / _DAY_S:.3g}"
        return warn(
            name,
            t(
                "{text} and {there}, and this brain.toml says less ({max_bytes} GiB, {days} days): the larger is kept",
                text=text,
                there=t("{days} days", days=days) if info.max_age_s else t("any age"),
                max_bytes=f"{config.log.max_bytes / _GIB:.2f}",
                days=f"{config.log.max_age_s / _DAY_S:.3g}",
            ),
            t(
                "write the same [log] for each brain of the cell; to keep less, `nats stream edit` on the servers, too"
            ),
        )
    if not info.max_bytes or info.bytes <= FULL * info.max_bytes:
        return ok(name, text)
    back_s = await _reaches_back_s(client, config.cell, info.first_seq)
    if back_s >= min(SHORT_S, config.log.max_age_s / 2):
        return ok(
            name,
            t(
                "{text}, of the last {back_s} days: the oldest goes",
                text=text,
                back_s=f"{back_s / 86400:.0f}",
            ),
        )
    return warn(
        name,
        t("{text}: full, and only of the last {back_s} hours", text=text, back_s=f"{back_s / 3600:.0f}"),
        t("raise log.max_bytes"),
    )


def _keeps_more(info: log.LogInfo, config: BrainConfig) -> bool:
    """Has another brain, or a person, set limits that this one's configuration would make smaller?"""
    return (info.max_bytes or math.inf) > config.log.max_bytes or (
        info.max_age_s or math.inf
    ) > config.log.max_age_s


async def _evidence(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
    """The bundles of nodes have the room that was meant for them; nothing is said where they have, or none was kept yet."""
    try:
        info = await client.jsm().stream_info(subjects.evidence_stream(config.cell))
    except NotFoundError:
        return
    if 0 < (most := info.config.max_bytes or 0) < config.evidence.max_bytes:
        yield warn(
            "evidence",
            t(
                "bundles may take {most} GiB, and {wanted} GiB are configured (evidence.max_bytes): the server had no room",
                most=f"{most / _GIB:.2f}",
                wanted=f"{config.evidence.max_bytes / _GIB:.2f}",
            ),
            t("make room there, restart the brain"),
        )


async def _reaches_back_s(client: Client, cell: str, first: int) -> float:
    try:
        oldest = (await client.jsm().get_msg(subjects.stream(cell), first)).time
    except NotFoundError:  # dropped meanwhile
        oldest = None
    return time.time() - oldest.timestamp() if oldest else 0.0


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
