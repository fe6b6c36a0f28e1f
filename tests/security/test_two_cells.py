"""Two cells on one set of NATS servers: nothing of the one reaches the other, though both have the same names."""

import asyncio
import os
from pathlib import Path
from typing import Any

import nats
import nkeys
import orjson
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from brain import config
from brain.adapters import nats_accounts, nats_jwt, operator_mode
from brain.adapters.nats_accounts import Member
from brain.cell.registry import CellRegistry
from brain.cli import cell_export
from tests.real.brain_kit import lab
from tests.real.nats import NatsServer, login
from tests.real.operator_kit import OperatorLab
from tests.security.attacker import MARK, OFFERS, VICTIM, targets
from tests.security.figures import Record, attacked

pytestmark = pytest.mark.component("nats-server")
CELL = "default"


def node_key() -> tuple[str, str]:
    """(seed, public NKEY)."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
    return seed, nkeys.from_seed(bytearray(seed.encode())).public_key.decode()


async def neighbours(whole: OperatorLab) -> tuple[Path, Path]:
    """Another cell of the same operator, with the same names: the credentials of its brain and its node."""
    folder = whole.folder / "other"
    cell = folder / "brain/cell"
    cell.mkdir(parents=True)
    said = {"url": whole.server.url, "operator": {}}
    own = config.parse({"data_dir": str(folder / "brain"), "nats": said}, "test", folder)
    seed, public = node_key()
    registry = CellRegistry(cell / "registry.json")
    registry.add(VICTIM, public, now=0)
    cell_export.export(own, folder / "export", whole.folder / "brain/cell/operator.nk")
    system = await nats.connect(whole.server.url, **login(whole.folder / "brain/cell/system.creds"))
    for jwt in sorted((folder / "export/accounts").glob("*.jwt")):
        answer = await system.request("$SYS.REQ.CLAIMS.UPDATE", jwt.read_text().strip().encode(), 5)
        assert orjson.loads(answer.data)["data"]["code"] == 200
    await system.close()
    node = folder / "node.creds"
    jwt_of_node = operator_mode.load(own).node_jwt(VICTIM, registry.nodes()[VICTIM])
    node.write_text(nats_jwt.credentials(jwt_of_node, seed))
    return folder / "export/brain.creds", node


async def connected(url: str, credential: Path, refused: list[str]) -> Client:
    """A connection of somebody who goes on whatever is refused."""

    async def on_error(error: Exception) -> None:
        refused.append(str(error))

    return await nats.connect(url, error_cb=on_error, skip_subject_validation=True, **login(credential))


async def test_another_cell_of_the_operator_neither_hears_nor_says_anything(
    tmp_path: Path, record_property: Record
) -> None:
    """The other cell's brain, which may do everything in its own account, and its node, at every subject of this one's: lease,
    log, lanes, commands, bundles, the JetStream API.
    """
    came_here: list[str] = []
    came_there: list[str] = []
    ours = [b"gpuward-ours"]

    async def here(message: Msg) -> None:
        if MARK.encode() in message.data:
            came_here.append(message.subject)

    async def there(message: Msg) -> None:
        if any(word in message.data for word in ours):
            came_there.append(message.subject)

    async with lab(tmp_path, OperatorLab) as found:
        whole: Any = found
        honest = await whole.node(VICTIM)
        status = await whole.get("/api/v1/status")
        epoch = status["epoch"]
        ours.append(status["brain"].encode() + b":")  # in the lease
        watcher = await whole.brain_client()
        await watcher.subscribe(">", cb=here)
        await watcher.flush()
        tried, refused = 0, list[str]()
        for credential in await neighbours(whole):
            thief = await connected(whole.server.url, credential, refused)
            await thief.subscribe(
                ">" if "brain" in credential.name else subjects.command(CELL, VICTIM), cb=there
            )
            for target in targets(CELL):
                for reply in ("", f"$KV.{subjects.LEASE_BUCKET}.{CELL}"):
                    if "*" not in target and ">" not in target:
                        tried += 1
                        await thief.publish(target, MARK.encode(), reply=reply)
            for what in OFFERS:
                tried += 1
                await thief.publish(subjects.offer(CELL, VICTIM, what), MARK.encode())
            await thief.flush()
            await honest.event("agent.started", version="gpuward-ours")
            await asyncio.sleep(0.5)
            await thief.close()
        status = await whole.get("/api/v1/status")
        assert (status["leads"], status["epoch"]) == (True, epoch)
        assert (came_here, came_there) == ([], [])
        attacked(record_property, tried, refused=len(refused))


async def test_of_two_cells_accounts_in_one_configuration_the_first_are_refused(tmp_path: Path) -> None:
    """Accounts have the same names in each cell: they are not put together, and nobody comes into the account of the other."""
    seeds: dict[str, list[Path]] = {}
    server = NatsServer(tmp_path / "nats", 'include "../a.conf"\ninclude "../b.conf"')
    for cell in ("a", "b"):
        (brain, brain_public), (node, public) = node_key(), node_key()
        block = nats_accounts.accounts(cell, brain_public, [Member(name="n1", public=public, nodes=("n1",))])
        (tmp_path / f"{cell}.conf").write_bytes(
            orjson.dumps({"accounts": block, "system_account": nats_accounts.SYSTEM})
        )
        seeds[cell] = [tmp_path / f"{cell}-{who}.nk" for who in ("brain", "node")]
        for file, seed in zip(seeds[cell], (brain, node), strict=True):
            file.write_text(seed)
    server.start()
    try:
        for file in seeds["a"]:
            with pytest.raises(nats.errors.Error, match="Authorization Violation"):
                await nats.connect(server.url, allow_reconnect=False, **login(file))
        for file in seeds["b"]:
            await (await nats.connect(server.url, allow_reconnect=False, **login(file))).close()
    finally:
        server.kill()
