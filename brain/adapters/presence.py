"""Whether another brain is connected: it listens at a subject of its own, and the server says when nobody does.

"Nobody" is the server's word, and comes at once: a brain that hangs is still connected, and one whose process has ended is
not (docs/decisions/0041).
"""

import re
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NoAnswerError

from agent.contract import subjects
from agent.shared.nats_connection import LOST

_ABLE = "able"  # no brain has this name: those of runs have digits and hyphens


async def show(client: Client, cell: str, brain: str) -> Subscription:
    """From now on, others find this brain connected. `brain`: its name for this run."""
    return await client.subscribe(_subject(cell, brain), cb=_answer)


async def hide(shown: Subscription) -> None:
    """Ends `show`; nothing where its connection has ended."""
    try:
        await shown.unsubscribe()
    except LOST:
        return


async def is_shown(client: Client, cell: str, brain: str, within_s: float) -> bool:
    """False only if the server says that nobody listens there; no answer within that time is no such word.

    Other errors of the connection are raised (`LOST`).
    """
    try:
        await client.request(_subject(cell, brain), timeout=within_s)
    except NoRespondersError:
        return False
    except NoAnswerError:
        return True
    return True


async def show_able(client: Client, cell: str, brain: str, able: Callable[[], bool]) -> Subscription:
    """From now on, others who ask hear of this brain while it is able to lead."""

    async def answer(message: Msg) -> None:
        if message.data != brain.encode() and able():
            await message.respond(b"")

    return await client.subscribe(_subject(cell, _ABLE), cb=answer)


async def is_another_able(client: Client, cell: str, brain: str, within_s: float) -> bool:
    """Whether another brain that has read the log says, in that time, that it is able to lead. Errors as with `is_shown`."""
    try:
        await client.request(_subject(cell, _ABLE), brain.encode(), timeout=within_s)
    except (NoRespondersError, NoAnswerError):
        return False
    return True


async def _answer(message: Msg) -> None:
    await message.respond(b"")


def _subject(cell: str, brain: str) -> str:
    return subjects.presence(cell, re.sub(r"[^A-Za-z0-9_-]", "-", brain))
