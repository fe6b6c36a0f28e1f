"""A node that `gpuward cell revoke` has named is not heard any more, and forgotten: its incidents and pages end, under the
operator's name on the log. When it is let in again, that stands there too.

The log tells the other brains of the cell, which have another registry or none: each drops what such a node offers. No brain
relies on the servers: those of a site's own let the node in until somebody has written the accounts again. Join tokens that were
taken away stand on the log too. So a registry from a backup, which knows of neither, lets nobody in again.
"""

import asyncio
import contextlib
import time
import uuid

from agent.contract.errors import ConfigError, Unreachable
from agent.shared.tasks import abandonable
from brain.adapters.liveness import Beats
from brain.cell.registry import CellRegistry
from brain.config import BrainConfig
from brain.core import ids
from brain.core.inputs import OperatorCommand
from brain.core.pack.spec import Scalar
from brain.leader.log_writer import LogWriter
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica

CHECK_S = 0.2
AFTER_S = 2.0  # by then what it said before is on the log
AGAIN_S = 30.0  # something of it was under way still, or the log did not take it


class RevokedNodes:
    """The registry is that of this machine, so that it needs no lease: whoever leads handles the commands."""

    def __init__(
        self,
        config: BrainConfig,
        *,
        replica: Replica,
        beats: Beats,
        writer: LogWriter,
        notes: BrainNotes,
    ) -> None:
        self._notes = notes
        self._told_of: set[tuple[str, float]] = set()
        self._embedded = config.embedded  # then this registry is the cell's only one
        self._configured = frozenset(config.nats.embedded.nodes)
        self._registry = CellRegistry(config.registry_file, config.nats.embedded.nodes)
        self._shut_out: frozenset[str] = frozenset()
        with contextlib.suppress(ConfigError):
            self._shut_out = self._registry.shut_out()
        self._replica = replica
        self._beats = beats
        self._writer = writer
        self._said_s: dict[
            tuple[str, str, float], float
        ] = {}  # (node or token, verb, of which revocation) -> when

    def shut_out(self, node: str) -> bool:
        """Was it revoked, here or where another brain of the cell runs? Then what it offers is not taken."""
        told = node in self._replica.state.shut_out and node not in self._configured
        return told or node in self._shut_out

    async def serve(self) -> None:
        """Looks at the registry and the log, until cancelled. A registry that cannot be read is told by
        brain/leader/cell_members.py.
        """
        while True:
            await asyncio.sleep(CHECK_S)
            with contextlib.suppress(ConfigError, Unreachable):
                await self._look()

    async def _look(self) -> None:
        told, joined = self._replica.state.shut_out, self._registry.nodes()
        self._shut_out = self._registry.shut_out()
        if not self._replica.caught_up:
            return
        for name in told.keys() - self._configured:
            self._beats.forget(name)
        for name, at in [one for one in told.items() if one[0] in joined and joined[one[0]].since > one[1]]:
            await self._say("admit", f"by {joined[name].by}", at, {"node": name})
        for name in self._shut_out:
            await self._revoke(name)
        for id_, one in self._registry.void().items():
            if id_ not in self._replica.state.void_tokens:
                await self._say("void", one.by or "an operator", one.at, {"token": id_})
        for name, at in [one for one in told.items() if one[0] in joined and joined[one[0]].since <= one[1]]:
            await self._from_backup(name, at)

    async def _from_backup(self, name: str, at: float) -> None:
        """The registry has a node that the log says was revoked later: it is older than the log."""
        if (name, at) in self._told_of:
            return
        self._told_of.add((name, at))
        text = (
            f"node {name} stands in the registry of this machine, and the log says that it was revoked later"
        )
        if self._embedded:
            by = "an operator, before the registry was put back"
            await abandonable(lambda: self._registry.turn_out(name, at=at, by=by), "registry")
            self._notes.write(
                "cell.changed", f"{text}: taken out of the registry. It can join again by a new token"
            )
        else:
            self._notes.write(
                "cell.failed",
                f"{text}, perhaps on another brain: nothing that it says is taken. `gpuward cell revoke {name}` here too, or "
                "join it again by a new token",
            )

    async def _revoke(self, name: str) -> None:
        """Says on the log that this machine's operator has revoked a node, once that is so for a moment; and again while
        something of it that was under way is left.
        """
        one, state = self._registry.revoked()[name], self._replica.state
        if time.time() - one.at < AFTER_S:
            return
        self._beats.forget(name)
        if name in state.nodes or state.shut_out.get(name, 0.0) < one.at:
            args: dict[str, Scalar] = {"node": name, "revoked": True, "at": one.at}
            await self._say("forget", one.by or "an operator", one.at, args)

    async def _say(self, verb: str, who: str, at: float, args: dict[str, Scalar]) -> None:
        key = str(args.get("node", args.get("token"))), verb, at
        if time.monotonic() - self._said_s.get(key, float("-inf")) < AGAIN_S:
            return
        self._said_s[key] = time.monotonic()
        await self._writer.append_and_wait(
            OperatorCommand(id=f"{ids.COMMAND}{uuid.uuid4().hex}", who=who, verb=verb, args=args)
        )
