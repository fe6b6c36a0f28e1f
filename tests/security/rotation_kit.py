"""What the tests of rotations share: what is in force, commands by any key, and the brain's place on the bus."""

import asyncio
import contextlib
import json
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import nats
import orjson
from nats.aio.client import Client

from agent.contract import requests, subjects
from agent.contract.commands import Command, Reply, decode_reply
from agent.contract.trust import Announcement, Trust, pack_announcements
from brain.adapters.keys import Signer, load_signer
from brain.cell.registry import CellRegistry
from brain.cell.trust import TrustFile
from brain.cli import cell_rotate
from brain.config import load
from tests.security.test_cell import Machine

CELL = "default"


def keys(whole: Machine) -> dict[str, Any]:
    """What `gpuward cell show` says of keys, without a command: tests wait for it."""
    config = load(whole.folder / "brain.toml")
    return cell_rotate.shown(config, CellRegistry(config.registry_file).nodes())


def start_heard(whole: Machine, *nodes: str) -> None:
    """The agents of these nodes run, and the brain hears them."""
    for node in nodes:
        whole.start_agent(node)
    for node in nodes:
        whole.until(lambda node=node: whole.beat_age_s(node) < 5, f"{node} is heard")


def stop(whole: Machine, node: str) -> None:
    """The agent of this node ends."""
    process = whole.processes.pop(node)
    process.terminate()
    process.wait(60)


def trusted(whole: Machine, node: str) -> dict[str, Any]:
    """What the node has written down; nothing yet: {}."""
    file = whole.folder / node / "data/trusted.json"
    return json.loads(file.read_text()) if file.exists() else {}


def signer(whole: Machine, name: str = "signing.key") -> Signer:
    """A signing key of the brain's folder."""
    return load_signer(whole.data / name)


def announcements(whole: Machine) -> list[Announcement]:
    """All that the brain has announced."""
    return TrustFile(whole.data / "cell").state().after(0)


def forged(trust: Trust, by: Signer, key_id: str = "") -> bytes:
    """An announcement that somebody has signed."""
    payload = trust.payload()
    return pack_announcements(
        [Announcement(payload=payload, signatures={key_id or by.key_id: by.sign(payload.encode())})]
    )


def command(node: str, by: Signer, *, epoch: int = 2**53) -> bytes:
    """A signed command that only asks for a plan: it needs no session."""
    payload = Command(
        id="t1", node=node, action="evidence.collect", params={"component": "node"}, epoch=epoch, session="",
        not_after_s=0.0, timeout_s=30.0, why="test", plan=True,
    ).payload()  # fmt: skip
    return orjson.dumps({"payload": payload.decode(), "key": by.key_id, "sig": by.sign(payload)})


@contextlib.asynccontextmanager
async def on_bus(whole: Machine, seed_file: Path) -> AsyncIterator[Client]:
    """A connection with this seed."""

    async def quiet(_: Exception) -> None:
        return

    context = ssl.create_default_context(cafile=str(whole.data / "cell/ca.pem"))
    client = await nats.connect(
        f"tls://localhost:{whole.nats_port}",
        nkeys_seed=str(seed_file),
        tls=context,
        error_cb=quiet,
        allow_reconnect=False,
        connect_timeout=20,
    )
    try:
        yield client
    finally:
        await client.close()


async def accepted(whole: Machine, seed_file: Path, *, wanted: bool = True) -> None:
    """Waits until the broker takes this seed, or (`wanted` False) refuses it: it reads its users a moment after a change."""
    deadline = time.monotonic() + 60
    while True:
        try:
            async with on_bus(whole, seed_file):
                taken = True
        except nats.errors.Error as error:
            if "authorization" not in str(error).lower():
                raise
            taken = False
        if taken == wanted:
            return
        assert time.monotonic() < deadline, f"the broker {'takes' if taken else 'refuses'} {seed_file}"
        await asyncio.sleep(0.1)


async def asked(client: Client, node: str, body: bytes) -> Reply:
    """A node's answer to what is sent with the brain's credential."""
    subscription = await client.subscribe(subjects.answer(CELL, node))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        reference = secrets.token_hex(12)
        await client.publish(subjects.command(CELL, node), requests.pack(reference, body))
        with contextlib.suppress(nats.errors.TimeoutError):
            while True:
                found = requests.unpack((await subscription.next_msg(timeout=5)).data)
                if found is not None and found[0] == reference:
                    await subscription.unsubscribe()
                    return decode_reply(orjson.loads(found[1]))
    raise AssertionError(f"no answer of {node}")


def names(found: Sequence[Announcement]) -> list[list[str]]:
    """The keys of each announcement."""
    return [list(json.loads(one.payload)["trust"]["keys"]) for one in found]
