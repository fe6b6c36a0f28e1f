"""What the brain keeps on NATS, the log first of all: has it the room that was meant for it?"""

import math
import time
from collections.abc import AsyncIterator

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.shared.words import t
from brain.adapters import log
from brain.cli.checkup import nats_copies
from brain.cli.checkup.lines import HealthLine, ok, warn
from brain.config import BrainConfig

FULL = 0.9  # of what the server lets the brain's account keep
SHORT_S = (
    3 * 86_400.0
)  # a full log that reaches back less is short: incidents of a weekend are gone on Monday
_GIB = 1024**3
_DAY_S = 86_400.0


async def kept(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
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
    async for line in nats_copies.copies_of_all(client, config):
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
    if not config.embedded and (
        more := _of_another(
            name, text, (info.max_bytes, info.max_age_s), (config.log.max_bytes, config.log.max_age_s)
        )
    ):
        return more
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


def _of_another(
    table: str, text: str, there: tuple[int, float], ours: tuple[int, float]
) -> HealthLine | None:
    """Has another brain, or a person, set limits that this one's configuration would make smaller? None: no. Limits are bytes and
    seconds; on the servers 0 is none. `table`: of brain.toml, and what is looked at.
    """
    (max_bytes, age_s), (our_bytes, our_age_s) = there, ours
    if (max_bytes or math.inf) <= our_bytes and (age_s or math.inf) <= our_age_s:
        return None
    days = f"{age_s / _DAY_S:.3g}"
    return warn(
        table,
        t(
            "{text} and {there}, and this brain.toml says less ({max_bytes} GiB, {days} days): the larger is kept",
            text=text,
            there=t("{days} days", days=days) if age_s else t("any age"),
            max_bytes=f"{our_bytes / _GIB:.2f}",
            days=f"{our_age_s / _DAY_S:.3g}",
        ),
        t(
            "write the same [{table}] for each brain of the cell; to keep less, `nats stream edit` on the servers, too",
            table=table,
        ),
    )


async def _evidence(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
    """The bundles of nodes have the room that was meant for them; nothing is said where they have, or none was kept yet."""
    try:
        there = (await client.jsm().stream_info(subjects.evidence_stream(config.cell))).config
    except NotFoundError:
        return
    most, wanted = max(0, there.max_bytes or 0), config.evidence
    if 0 < most < wanted.max_bytes:
        yield warn(
            "evidence",
            t(
                "bundles may take {most} GiB, and {wanted} GiB are configured (evidence.max_bytes): the server had no room",
                most=f"{most / _GIB:.2f}",
                wanted=f"{wanted.max_bytes / _GIB:.2f}",
            ),
            t("make room there, restart the brain"),
        )
    elif not config.embedded:
        text = (
            t("bundles may take {most} GiB", most=f"{most / _GIB:.2f}")
            if most
            else t("bundles have no limit of bytes")
        )
        limits = most, there.max_age or 0.0
        if more := _of_another("evidence", text, limits, (wanted.max_bytes, wanted.keep_s)):
            yield more


async def _reaches_back_s(client: Client, cell: str, first: int) -> float:
    try:
        oldest = (await client.jsm().get_msg(subjects.stream(cell), first)).time
    except NotFoundError:  # dropped meanwhile
        oldest = None
    return time.time() - oldest.timestamp() if oldest else 0.0
