"""Keeps NATS servers in operator mode to the registry of the cell: who joins is let in, who is revoked is thrown out, at once.

It needs a key of the operator's and credentials of the system account (`nats.operator`); without them it says what an
administrator has to do. Every connection begins with all accounts: whatever the servers had before, they have the newest then.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from nats.aio.client import Client
from nats.errors import NoRespondersError

from agent.contract.errors import ConfigError
from agent.shared.nats_connection import NatsConnection
from brain.adapters import nkey, operator_mode
from brain.adapters.broker import brain_connection
from brain.adapters.nkey import Nkey, NkeyKind
from brain.adapters.operator_mode import OperatorMode
from brain.cell import by_hand
from brain.cell.registry import CellNode, CellRegistry
from brain.config import BrainConfig
from brain.leader.accounts_by_hand import AccountsByHand
from brain.leader.notes import BrainNotes
from brain.leader.registry_watch import RegistryWatch
from brain.nats_config import NatsConfig, OperatorConfig

CHECK_S = 0.2
_ANSWER_S = 5.0
_BEFORE_A_LOOK = (
    20  # at what has changed meanwhile: a node that joins does not wait for thousands that are known
)
_SERVER = "$SYS.REQ.SERVER.PING.VARZ"
_UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
_OK = 200
_BRAINS = ""  # in place of a node's name


class AccountKeeper:
    """The accounts of one cell."""

    def __init__(self, config: BrainConfig, jwts: OperatorMode, notes: BrainNotes) -> None:
        """ConfigError: a file of `nats.operator` cannot be read."""
        self._config = config
        self._jwts = jwts
        self._notes = notes
        self._registry = CellRegistry(config.registry_file)
        self._watch = RegistryWatch(notes, CHECK_S)
        self._seen: Mapping[str, CellNode] | None = None
        # node -> its state when it was dealt with
        self._done: dict[str, CellNode | float] = {}
        operator = config.nats.operator or OperatorConfig()
        signs, system = operator.seed_file, operator.system_creds_file
        self._operator = nkey.load(signs, NkeyKind.OPERATOR) if signs else None
        self._connection = (
            _system_connection(config.nats, *operator_mode.credentials(system)) if system else None
        )

    async def serve(self) -> None:
        """Until cancelled. What cannot be read or is refused is told once, and tried again."""
        if self._connection is not None and self._operator is not None:
            await self._connection.serve(partial(self._session, self._operator))
            return
        await AccountsByHand(self._config, self._notes).serve()

    async def _session(self, operator: Nkey, client: Client) -> None:
        self._done, self._seen = {}, None
        await self._watch.run(partial(self._update, operator, client))

    async def _update(self, operator: Nkey, client: Client) -> None:
        """Gives the servers what has changed. ConfigError: they do not take it."""
        if _BRAINS not in self._done:
            now = time.time()
            await _check(client, operator)
            await _give(client, self._jwts.brains_account(operator, now))
            self._done[_BRAINS] = now
        while due := self._due():
            for name, of in due[:_BEFORE_A_LOOK]:
                await _give(client, self._jwts.node_account(name, of, operator))
                self._done[name] = of

    def _due(self) -> list[tuple[str, CellNode | float]]:
        """Nodes that have changed, the newest change first. ConfigError: the registry cannot be read."""
        nodes = self._registry.nodes()
        if nodes is self._seen:  # a registry that was changed is read anew
            return []
        due = [
            (name, of) for name, of in by_hand.states(self._registry).items() if self._done.get(name) != of
        ]
        self._seen = None if due else nodes
        return sorted(
            due, key=lambda one: one[1].since if isinstance(one[1], CellNode) else one[1], reverse=True
        )


async def _check(client: Client, operator: Nkey) -> None:
    """ConfigError: the servers do not trust this key. They would keep what it signs, and refuse it after their next start."""
    found = await _asked(client, _SERVER, b"")
    trusted = found.get("data", {}).get("trusted_operators_claim") or []
    keys = {key for one in trusted for key in (one["sub"], *one["nats"].get("signing_keys", ()))}
    if trusted and operator.public not in keys:
        raise ConfigError(
            "the NATS servers do not trust the key of nats.operator.seed_file: give that of their operator, or of one of its "
            "signing keys"
        )


async def _give(client: Client, jwt: str) -> None:
    """Every server of the cluster takes the account; the first that has done so answers."""
    answer = await _asked(client, _UPDATE, jwt.encode())
    if answer.get("data", {}).get("code") != _OK:
        why = answer.get("error", {}).get("description", "")
        raise ConfigError(f"the NATS servers refuse an account of this cell: {why}")


async def _asked(client: Client, subject: str, body: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads((await client.request(subject, body, _ANSWER_S)).data)
    except NoRespondersError as error:
        raise ConfigError(
            "the NATS servers take no accounts while they run: set `resolver { type: full }` in their configuration, "
            "and see that nats.operator.system_creds_file is of their system account"
        ) from error
    return found


def _system_connection(config: NatsConfig, jwt: str, seed: str) -> NatsConnection:
    return brain_connection(config, name="gpuward accounts", seed=seed, jwt=jwt)
