"""The key that signs commands is made once: where nodes obey one already, another would leave them obeying nobody."""

import asyncio
import base64
import contextlib
import time
from pathlib import Path

from nats.js.errors import NotFoundError

from agent.contract import subjects
from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from agent.shared import files
from agent.shared.nats_connection import LOST, NatsConnection, close
from brain.adapters import keys
from brain.cell.confirmations import read_confirmed
from brain.cell.registry import BY_HAND, CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig

ANSWER_WITHIN_S = 60.0
PAUSE_S = 1.0


def check(config: BrainConfig) -> None:
    """ConfigError: the key is gone, and nodes trust it, or it is another one than its public half says; it says what to do.
    Also when a file of the cell cannot be read.
    """
    key = config.signing_key
    if key.exists():
        _check_half(key)
        return
    trust = TrustFile(config.cell_dir)
    # Who was let in by hand, or stands in brain.toml, may never have heard of a key: nodes come before the brain's first start.
    joined = {name for name, node in CellRegistry(config.registry_file).nodes().items() if node.by != BY_HAND}
    nodes = {*joined, *read_confirmed(trust.confirmed_file)}
    public = key.with_name(f"{key.name}.pub")
    if not (nodes or trust.state().serial or public.exists()):
        return
    who = counted(len(nodes), "node") if nodes else "the nodes that were told of it"
    raise ConfigError(
        f"{key} is gone, and {who} would obey no other: put it back from your backup (mode 0600, the brain's user). If it is "
        "lost, `gpuward cell rotate signing --compromised` makes another, and every node joins again"
    )


def _check_half(key: Path) -> None:
    """ConfigError: a bit of the key is another one, say: that is a key as good as any, which no node obeys. Where a rotation was
    cut short, the public half of the key that came next is still beside it.
    """
    told = [public_half(keys.beside(key, what)) for what in ("pub", "next.pub", "fresh.pub")]
    if told[0] and keys.read_signer(key).public not in told:
        raise ConfigError(
            f"{key} is another key than {key.name}.pub says, and nodes obey that one: it is damaged, or one of the two is of "
            f"another time. Put both back from your backup. If {key.name} is the right one, remove {key.name}.pub, which is "
            "written again; if there is no backup: `gpuward cell rotate signing --compromised`, and every node joins again"
        )


def public_half(file: Path) -> str:
    """The key in base64 that this file names; empty: there is none, or it is damaged, and is written again."""
    try:
        key_id, equals, public = files.read(file).decode("ascii").strip().partition(" = ")
        key = base64.b64decode(public, validate=True)
    except (OSError, ValueError):
        return ""
    return base64.b64encode(key).decode() if equals and key_id == keys.key_id_of(key) else ""


async def check_log(config: BrainConfig, connection: NatsConnection, stop: asyncio.Event) -> None:
    """ConfigError: the key is not there, and the log says that the cell has had a brain, or the servers do not answer for
    ANSWER_WITHIN_S (or until `stop`); it says what to copy. An embedded server is for one brain: nothing is asked.
    """
    key = config.signing_key
    if config.embedded or key.exists():
        return
    written = await _asked(config, connection, stop)
    if written:
        raise ConfigError(
            f"{key} is not there, and another brain has written the log of cell {config.cell}: nodes obey its key and no "
            "other. On that brain's machine say `gpuward cell share FILE`, and here, as root, `gpuward cell take "
            "FILE` (docs/operations.md, `A second brain`). If nobody has the key any more: `gpuward cell rotate signing "
            "--compromised`, and every node joins again"
        )


async def _asked(config: BrainConfig, connection: NatsConnection, stop: asyncio.Event) -> bool:
    """Whether the log has had a message. ConfigError as above: servers that have just been started may take a while."""
    until_s = time.monotonic() + ANSWER_WITHIN_S
    while True:
        try:
            return await _is_written(config.cell, connection)
        except LOST as error:
            if time.monotonic() >= until_s or stop.is_set():
                raise ConfigError(
                    f"{config.signing_key} is not there, and NATS does not answer ({error}), so nobody can say whether the cell "
                    "has another brain, whose key nodes obey: start the brain when the servers run, or bring that key here "
                    "(`gpuward cell take`)"
                ) from error
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PAUSE_S)


async def _is_written(cell: str, connection: NatsConnection) -> bool:
    """As above. LOST: the servers do not say."""
    client = await connection.connect()
    try:
        info = await client.jsm().stream_info(subjects.stream(cell))
    except NotFoundError:
        return False
    finally:
        await close(client)
    return bool(info.state.last_seq)
