"""Commands from the brain: checked, written down, answered, run once each; the result goes up as an event.

Unsigned `{"hello": true}` is answered like a command ("accepted", why "hello") with session, boot id and
clock, so that a brain can learn the clock by which its commands expire without waiting for a beat. Nothing
else is done for it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from agent.actions.base import Action
from agent.contract import subjects
from agent.contract.commands import Answer, Command, Outcome, Reply, encode_reply
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import Draft, Scalar, Severity, clip
from agent.host import Host
from agent.uplink.journal import Entry, Journal, Result
from agent.uplink.port import Uplink
from agent.uplink.verify import BadCommand, Standing, verify

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

MAX_RUNNING = 8
REFUSALS_EVERY_S = 10.0  # at most one agent.bad_command in this time; it counts the others

_log = logging.getLogger(__name__)


class Commander:
    """One node's ear for commands. `serve` for each connection; what runs outlives the connection."""

    def __init__(
        self,
        *,
        host: Host,
        cell: str,
        node: str,
        session: str,
        keys: Mapping[str, bytes],
        allow: frozenset[str],
        actions: Mapping[str, Action],
        journal: Journal,
        uplink: Uplink,
    ) -> None:
        self._host = host
        self._subject = subjects.command(cell, node)
        self._node = node
        self._session = session
        self._boot = host.boot_id()
        self._keys = keys
        self._allow = allow
        self._actions = actions
        self._journal = journal
        self._uplink = uplink
        self._running: dict[str, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._refusals = 0  # since they were last reported
        self._last_refusal = ("", "")  # (command, why)
        self._refusals_said_s = -REFUSALS_EVERY_S

    async def serve(self, client: "Client") -> None:
        """Answers commands until cancelled."""

        async def hear(message: "Msg") -> None:
            reply = await self.handle(message.data)
            if message.reply:
                await client.publish(message.reply, orjson.dumps(encode_reply(reply)))

        await client.subscribe(self._subject, cb=hear)
        await asyncio.Event().wait()

    async def handle(self, envelope: bytes) -> Reply:
        """The answer to one request; what is accepted has begun to run."""
        if _is_hello(envelope):
            return self._reply(Answer.ACCEPTED, "hello")
        async with self._one_at_a_time:  # the same id twice at once must meet in the journal
            try:
                return await self._answer(envelope)
            except BadCommand as error:
                self._refused(error.command, str(error))
                return self._reply(Answer.REFUSED, str(error))

    async def recover(self) -> None:
        """At start: what was under way when the agent died gets the outcome that nobody knows."""
        for entry in self._journal.untold():
            self._tell(entry)
        for entry in self._journal.unfinished():
            rebooted = entry.boot != self._boot
            why = (
                "the node was rebooted while it ran"
                if rebooted
                else "the agent was restarted while it ran (same boot)"
            )
            if (action := self._actions.get(entry.action)) is not None:
                try:
                    await action.recover(entry.params)
                except (ActionError, OSError) as error:
                    why += f"; putting it right failed: {error}"
            self._finish(entry.id, Result(outcome=Outcome.UNKNOWN, why=why))

    def say_refusals(self) -> None:
        """Reports refused commands, at most every REFUSALS_EVERY_S; to be called each second or so."""
        now_s = self._host.mono_s()
        if not self._refusals or now_s - self._refusals_said_s < REFUSALS_EVERY_S:
            return
        command, why = self._last_refusal
        draft = Draft(
            kind="agent.bad_command",
            component="node",
            severity=Severity.WARNING,
            data={"command": command, "why": why},
            count=self._refusals,
        )
        self._refusals, self._refusals_said_s = 0, now_s
        self._uplink.put(draft, now_s)

    async def stop(self) -> None:
        """Cancels what runs and waits until it has been put in order and written down."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for command in list(self._running):  # cancelled before its first step: its own `finally` never ran
            del self._running[command]
            why = "the agent was stopped before it began: nothing was done"
            self._finish(command, Result(outcome=Outcome.UNREACHABLE, why=why))

    async def _answer(self, envelope: bytes) -> Reply:
        standing = Standing(
            node=self._node,
            session=self._session,
            epoch=self._journal.epoch,
            allow=self._allow,
            known=self._journal,
        )
        command = verify(envelope, self._keys, standing, self._host.mono_s())
        action = self._actions.get(command.action)
        if command.plan:
            return await self._plan(command, action)
        if command.id in self._journal:
            await self._believe(command)
            return self._known(self._journal[command.id])
        if action is None:
            raise BadCommand(f"{command.action} cannot be done on this machine", command.id)
        if len(self._running) >= MAX_RUNNING:
            raise BadCommand(f"{MAX_RUNNING} commands are running here already", command.id)
        try:
            await asyncio.to_thread(self._journal.accept, command, self._boot, self._session)
        except OSError as error:
            raise BadCommand(
                f"the journal cannot be written ({error}): nothing was done", command.id
            ) from error
        _log.info("command %s: %s %s (%s)", command.id, command.action, dict(command.params), command.why)
        self._running[command.id] = asyncio.create_task(
            self._run(command, action), name=f"command {command.id}"
        )
        return self._reply(Answer.ACCEPTED)

    async def _plan(self, command: Command, action: Action | None) -> Reply:
        await self._believe(command)
        lines = []
        if command.action not in self._allow:
            lines.append(f"(this node would refuse it: {command.action} is not on its allow-list)")
        if action is None:
            return self._reply(Answer.REFUSED, f"{command.action} cannot be done on this machine")
        try:
            async with asyncio.timeout(command.timeout_s):
                lines += await action.plan(command.params)
        except (ActionError, OSError, TimeoutError) as error:
            return self._reply(Answer.REFUSED, str(error) or "no plan within the time limit")
        return self._reply(Answer.ACCEPTED, "plan", lines)

    async def _believe(self, command: Command) -> None:
        """A signed epoch counts even when nothing is run for it."""
        if command.epoch > self._journal.epoch:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._journal.raise_epoch, command.epoch)

    async def _run(self, command: Command, action: Action) -> None:
        started_s = self._host.mono_s()
        outcome, why, evidence = Outcome.UNKNOWN, "the agent was stopped, or failed, while it ran", ""
        try:
            async with asyncio.timeout(command.timeout_s):
                done = await action.run(command.params)
            outcome, why, evidence = Outcome.OK, done.text, done.evidence
        except Refused as error:
            outcome, why = Outcome.REFUSED, str(error)
        except Unreachable as error:
            outcome, why = Outcome.UNREACHABLE, str(error)
        except TimedOut as error:
            outcome, why = Outcome.UNKNOWN, str(error)
        except TimeoutError:
            outcome, why = Outcome.UNKNOWN, f"not done within {command.timeout_s:g} s"
        except (ActionError, OSError) as error:
            outcome, why = Outcome.FAILED, str(error)
        finally:
            took_s = round(self._host.mono_s() - started_s, 3)
            del self._running[command.id]
            self._finish(command.id, Result(outcome=outcome, why=clip(why), took_s=took_s, evidence=evidence))

    def _finish(self, command: str, result: Result) -> None:
        """Journal first: a result that was told and then forgotten could become another one after a crash."""
        try:
            self._journal.finish(command, result)
        except OSError:
            _log.exception(
                "the journal cannot be written; after a restart the result of %s is unknown", command
            )
        _log.info("command %s: %s: %s", command, result.outcome.value, result.why)
        self._tell(self._journal[command])

    def _tell(self, entry: Entry) -> None:
        result = entry.result
        if result is None:
            return
        data: dict[str, Scalar] = {
            "command": entry.id,
            "outcome": result.outcome.value,
            "why": result.why,
            "took_s": result.took_s,
        }
        if result.evidence:
            data["evidence"] = result.evidence
        self._uplink.put(
            Draft(kind="command.result", component="node", severity=Severity.INFO, data=data),
            self._host.mono_s(),
        )
        with contextlib.suppress(OSError):
            self._journal.tell(entry.id)

    def _known(self, entry: Entry) -> Reply:
        if entry.result is None:
            return self._reply(Answer.KNOWN, "it is running")
        self._tell(entry)
        return self._reply(Answer.KNOWN, f"it ended: {entry.result.outcome.value}")

    def _refused(self, command: str, why: str) -> None:
        _log.warning("command %s refused: %s", command or "(unreadable)", why)
        self._refusals += 1
        self._last_refusal = (clip(command, 80), clip(why))
        self.say_refusals()

    def _reply(self, answer: Answer, why: str = "", plan: list[str] | None = None) -> Reply:
        return Reply(
            answer=answer,
            why=clip(why),
            session=self._session,
            boot=self._boot,
            mono_s=self._host.mono_s(),
            plan=plan or [],
        )


def _is_hello(envelope: bytes) -> bool:
    with contextlib.suppress(orjson.JSONDecodeError):
        return len(envelope) < 100 and bool(orjson.loads(envelope) == {"hello": True})
    return False
