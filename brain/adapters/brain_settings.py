"""What the brains of a cell are to have alike in brain.toml: each tells whoever asks, as NATS does not show who differs.

Of two limits the larger is in force (brain/adapters/streams.py), so the brain that wants more never sees that another one wants
less; and of the two it depends on who comes first how many copies there are (docs/decisions/0091).
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from brain.config import BrainConfig

MOST_BRAINS = 16  # whose answers are read
_NOBODY = "503"  # the server's word that nobody listens

# Key of brain.toml -> its value
Settings = Mapping[str, float]


def of(config: BrainConfig) -> Settings:
    """What this brain.toml says."""
    return {
        "log.max_age_s": config.log.max_age_s,
        "log.max_bytes": config.log.max_bytes,
        "log.duplicate_window_s": config.log.duplicate_window_s,
        "evidence.keep_s": config.evidence.keep_s,
        "evidence.max_bytes": config.evidence.max_bytes,
        "nats.replicas": config.nats.replicas,
    }


async def tell(client: Client, config: BrainConfig, brain: str) -> None:
    """Answers whoever asks, on one connection, until cancelled. `brain`: its name."""
    said = orjson.dumps({"brain": brain, "settings": of(config)})

    async def answer(message: Msg) -> None:
        await message.respond(said)

    await client.subscribe(subjects.brain_settings(config.cell), cb=answer)
    await asyncio.Event().wait()


async def told(client: Client, cell: str, *, within_s: float) -> list[tuple[str, Settings]]:
    """What each brain says that is connected, with its name, which two may have; one of 0.2.0 says nothing. `LOST`: the
    connection ends.
    """
    found: list[tuple[str, Settings]] = []
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    await client.publish(subjects.brain_settings(cell), reply=inbox)
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while len(found) < MOST_BRAINS:
                message = await answers.next_msg(timeout=within_s + 1.0)
                if (message.headers or {}).get("Status") == _NOBODY:
                    break
                with suppress(ValueError, TypeError, KeyError, AttributeError):
                    said = orjson.loads(message.data)
                    settings = {str(key): float(one) for key, one in said["settings"].items()}
                    found.append((str(said["brain"]), settings))
    await answers.unsubscribe()
    return found
