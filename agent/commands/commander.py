"""Commands from the brain: verified, written to the journal, answered, and handed to the runner.

The unsigned message `{"hello": true}` is answered like a command ("accepted", why "hello") with session, boot id and clock,
so that a brain learns the clock by which its commands expire without waiting for a heartbeat. It has no other effect.
Announcements of keys (agent/contract/trust.py) come by the same way, in their turn with the commands.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import orjson

from agent.actions.base import Action
from agent.commands.announcements import endorsed
from agent.commands.journal import Journal, JournalEntry
from agent.commands.runner import Runner
from agent.commands.verify import MAX_ENVELOPE_BYTES, BadCommand, VerifierState, verify
from agent.contract import requests, subjects
from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import Repeat
from agent.contract.commands import Answer, Command, Reply, encode_reply
from agent.contract.errors import ActionError, ContractError, Refused
from agent.contract.messages import Severity, UnsentEvent, clip
from agent.contract.trust import Announcement, unpack_announcements
from agent.host import Host
from agent.remembered.trusted import Trusted
from agent.shared.log_fields import about
from agent.uplink.port import MOST_WAITING_BYTES, Uplink

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

MAX_RUNNING = 8
# Commands that begin: what each writes into the journal, and does, is bounded, and so must be how many there are. No brain of
# ours comes near.
BEGUN_AT_ONCE, BEGUN_PER_S = 100, 1.0
# After a start with a journal that may lack a command: longer than a brain goes on to send one that it has no answer to.
DOUBT_S = 20.0
REFUSALS_EVERY_S = 10.0  # at most one agent.bad_command in this time, which counts the others

_log = logging.getLogger(__name__)


class Commander:
    """Receives one node's commands. `serve` for each connection; what runs outlives the connection."""

    def __init__(
        self,
        *,
        host: Host,
        cell: str,
        node: str,
        session: str,
        trusted: Trusted,
        allow: frozenset[str],
        actions: Mapping[str, Action],
        journal: Journal,
        uplink: Uplink,
        bundle_made: Callable[[], None] = lambda: None,
        lacks: Callable[[str], str] = lambda _action: "",
    ) -> None:
        """`bundle_made` is called when there is a new evidence bundle to upload. `lacks`: why this process is not allowed to
        perform an action (agent.commands.rights); empty when it is.
        """
        self._host = host
        self._subject = subjects.command(cell, node)
        self._offer = subjects.offer(cell, node, subjects.ANSWER)
        self._node = node
        self._session = session
        self._boot = host.boot_id()
        self._trusted = trusted
        self._allow = allow
        self._actions = actions
        self._lacks = lacks
        self._journal = journal
        self._uplink = uplink
        self.runner = Runner(
            host=host, node=node, actions=actions, journal=journal, uplink=uplink, bundle_made=bundle_made
        )
        self._one_at_a_time = asyncio.Lock()
        self._answering: set[asyncio.Future[Reply]] = set()  # the loop itself keeps no strong reference
        self._pace = StartPace(BEGUN_AT_ONCE, BEGUN_PER_S, host.mono_s())
        self._doubt_until_s = host.mono_s() + DOUBT_S if journal.doubtful else 0.0
        self._refusals = 0  # since they were last reported
        self._last_refusal = ("", "")  # command, why
        self._refusals_reported_s = -REFUSALS_EVERY_S

    async def serve(self, client: "Client") -> None:
        """Answers commands until cancelled."""

        async def on_command(message: "Msg") -> None:
            request = requests.unpack(message.data)
            if request is None:
                _log.warning("a message at %s without a reference: ignored", self._subject)
                return
            reference, envelope = request
            answer = orjson.dumps(encode_reply(await self.handle(envelope)))
            await client.publish(self._offer, requests.pack(reference, answer))

        await client.subscribe(self._subject, cb=on_command, pending_bytes_limit=MOST_WAITING_BYTES)
        await asyncio.Event().wait()

    async def handle(self, envelope: bytes) -> Reply:
        """The answer to one request; an accepted command has begun to run.

        A lost connection cancels the caller, but not the work: what is in the journal must be begun.
        """
        if _is_hello(envelope):
            return self._reply(Answer.ACCEPTED, "hello")
        answer = asyncio.ensure_future(self._in_turn(envelope))
        self._answering.add(answer)
        answer.add_done_callback(self._answering.discard)
        return await asyncio.shield(answer)

    async def _in_turn(self, envelope: bytes) -> Reply:
        async with (
            self._one_at_a_time
        ):  # of two requests with one id the second must find the first in the journal
            try:
                announcements = unpack_announcements(envelope[: MAX_ENVELOPE_BYTES + 1])
                if announcements is not None:
                    return await self._announced(announcements)
                return await self._answer(envelope)
            except (BadCommand, ContractError) as error:
                self._refused(error.command if isinstance(error, BadCommand) else "", str(error))
                return self._reply(Answer.REFUSED, str(error))

    async def _announced(self, announcements: Sequence[Announcement]) -> Reply:
        """Trusts what a key that is trusted has endorsed. What is old changes nothing."""
        trusted = self._trusted
        try:
            found = endorsed(announcements, cell=trusted.cell, serial=trusted.serial, keys=trusted.keys)
            if found is not None:
                await asyncio.to_thread(trusted.take, found)
        except Refused as error:
            raise BadCommand(str(error)) from error
        except OSError as error:
            raise BadCommand(f"what is trusted cannot be written ({error}): nothing has changed") from error
        if found is not None:
            _log.info("announcement %d: commands of the keys %s count", found.serial, ", ".join(found.keys))
        return self._reply(Answer.ACCEPTED, f"trusts announcement {trusted.serial}")

    async def recover(self) -> None:
        """At start: see Runner.recover."""
        await self.runner.recover()

    async def stop(self) -> None:
        """At the end: see Runner.stop."""
        await asyncio.gather(*self._answering, return_exceptions=True)
        await self.runner.stop()

    def tick(self) -> None:
        """To be called each second or so: reports what takes long, and what was refused."""
        self.runner.report_progress()
        self.report_refusals()

    def report_refusals(self) -> None:
        """Reports refused commands, also in the log, at most every REFUSALS_EVERY_S."""
        now_s = self._host.mono_s()
        if not self._refusals or now_s - self._refusals_reported_s < REFUSALS_EVERY_S:
            return
        command, why = self._last_refusal
        with about(step=command):
            _log.warning(
                "command %s refused: %s (%d of them)", command or "(unreadable)", why, self._refusals
            )
        unsent = UnsentEvent(
            kind="agent.bad_command",
            component="node",
            severity=Severity.WARNING,
            data={"command": command, "why": why},
            count=self._refusals,
        )
        self._refusals, self._refusals_reported_s = 0, now_s
        self._uplink.put(unsent, now_s)

    async def _answer(self, envelope: bytes) -> Reply:
        state = VerifierState(
            node=self._node,
            session=self._session,
            epoch=self._journal.epoch,
            allow=self._allow,
            known=self._journal,
        )
        trusted = self._trusted
        command = verify(envelope, trusted.keys, state, self._host.mono_s(), ended=trusted.ended)
        action = self._actions.get(command.action)
        if command.cancels:
            return await self._cancel(command)
        if command.plan:
            return await self._plan(command, action)
        if command.id in self._journal:
            await self._adopt_epoch(command)
            return self._known(self._journal[command.id])
        if action is None:
            raise BadCommand(f"{command.action} cannot be done on this machine", command.id)
        if self._host.mono_s() < self._doubt_until_s and ACTIONS[command.action].repeat is not Repeat.SAFE:
            raise BadCommand(
                f"the journal of commands was damaged when the agent started: for {DOUBT_S:.0f} s nothing is begun that may have "
                "been done already",
                command.id,
            )
        if why := self._lacks(command.action):
            raise BadCommand(why, command.id)
        if len(self.runner.running) >= MAX_RUNNING:
            raise BadCommand(f"{MAX_RUNNING} commands are running here already", command.id)
        now_s = self._host.mono_s()
        if not self._pace.takes_one(now_s):
            raise BadCommand(
                f"more than {BEGUN_AT_ONCE} commands came at once, and then more than {BEGUN_PER_S:g} in a second",
                command.id,
            )
        try:
            await asyncio.to_thread(self._journal.accept, command, self._boot, self._session, now_s)
        except OSError as error:
            raise BadCommand(
                f"the journal cannot be written ({error}): nothing was done", command.id
            ) from error
        with about(incident=command.incident, run=command.run, step=command.id):
            _log.info("command %s: %s %s (%s)", command.id, command.action, dict(command.params), command.why)
            self.runner.start(command, action)
        return self._reply(Answer.ACCEPTED)

    async def _cancel(self, command: Command) -> Reply:
        """Cancels a running command. This needs no place on the allow-list."""
        await self._adopt_epoch(command)
        if command.cancels not in self._journal:
            return self._reply(Answer.REFUSED, f"{command.cancels} was never accepted here")
        entry = self._journal[command.cancels]
        if entry.action != command.action:
            return self._reply(Answer.REFUSED, f"{entry.id} is {entry.action}, not {command.action}")
        execution = self.runner.running.get(entry.id)
        if execution is None or execution.cancelled:
            return self._known(entry)
        with about(incident=command.incident, run=command.run, step=entry.id):
            _log.info("command %s: to be cancelled (%s)", entry.id, command.why)
        self.runner.cancel(entry.id, command.why)
        return self._reply(Answer.ACCEPTED, f"{entry.id} is being cancelled")

    async def _plan(self, command: Command, action: Action | None) -> Reply:
        await self._adopt_epoch(command)
        lines = []
        if command.action not in self._allow:
            lines.append(f"(this node would refuse it: {command.action} is not on its allow-list)")
        if why := self._lacks(command.action):
            lines.append(f"(this node would refuse it: {why})")
        if action is None:
            return self._reply(Answer.REFUSED, f"{command.action} cannot be done on this machine")
        try:
            async with asyncio.timeout(command.timeout_s):
                lines += await action.plan(command.params)
        except (ActionError, OSError, TimeoutError) as error:
            return self._reply(Answer.REFUSED, str(error) or "no plan within the time limit")
        return self._reply(Answer.ACCEPTED, "plan", lines)

    async def _adopt_epoch(self, command: Command) -> None:
        """The epoch of a signed command counts even when nothing is run for it."""
        if command.epoch > self._journal.epoch:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._journal.raise_epoch, command.epoch)

    def _known(self, entry: JournalEntry) -> Reply:
        if entry.result is None:
            return self._reply(Answer.KNOWN, "it is running")
        self.runner.report_result(entry)
        return self._reply(Answer.KNOWN, f"it ended: {entry.result.outcome.value}")

    def _refused(self, command: str, why: str) -> None:
        self._refusals += 1
        self._last_refusal = (clip(command, 80), clip(why))
        self.report_refusals()

    def _reply(self, answer: Answer, why: str = "", plan: list[str] | None = None) -> Reply:
        return Reply(
            answer=answer,
            why=clip(why),
            session=self._session,
            boot=self._boot,
            mono_s=self._host.mono_s(),
            plan=plan or [],
        )


class StartPace:
    """So many at once, and then so many in a second."""

    def __init__(self, at_once: int, per_s: float, now_s: float) -> None:
        self._most, self._per_s = float(at_once), per_s
        self._left, self._at_s = self._most, now_s

    def takes_one(self, now_s: float) -> bool:
        """False: there are too many."""
        self._left = min(self._most, self._left + self._per_s * max(0.0, now_s - self._at_s))
        self._at_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def _is_hello(envelope: bytes) -> bool:
    with contextlib.suppress(orjson.JSONDecodeError):
        return len(envelope) < 100 and bool(orjson.loads(envelope) == {"hello": True})
    return False
