"""What a node was told to do, under way: begun once, followed, cancelled, written down, told.

An accepted command ends in exactly one result in the journal. One whose action outlives the agent (`Outliving`)
stays open over the agent's end, and its action says at the next start what became of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.actions.base import CALL, Action, Call, Outliving, Underway
from agent.contract import subjects
from agent.contract.commands import Command, Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import Draft, Scalar, Severity, clip
from agent.host import Host
from agent.uplink.journal import Entry, Journal, Result
from agent.uplink.port import Uplink

PROGRESS_EVERY_S = 10.0  # a command that runs for longer says so, each time that this is over
FOLLOW_S = 1.0  # between looks at what goes on without us

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Run:
    """One command under way."""

    started_s: float  # by the node's monotonic clock
    said_s: float  # when its progress was last told
    doing: str = ""
    begun: bool = False  # its action was called
    cancelled: str = ""  # why, once it was
    alone: bool = False  # it goes on without us; we only look
    task: asyncio.Task[None] | None = None


class Runner:
    """Runs the commands of one node. `bundle_made` is called when a result names a new evidence bundle."""

    def __init__(
        self,
        *,
        host: Host,
        node: str,
        actions: Mapping[str, Action],
        journal: Journal,
        uplink: Uplink,
        bundle_made: Callable[[], None] = lambda: None,
    ) -> None:
        self._host = host
        self._node = node
        self._boot = host.boot_id()
        self._actions = actions
        self._journal = journal
        self._uplink = uplink
        self._bundle_made = bundle_made
        self._stopping = False
        self.running: dict[str, Run] = {}

    def start(self, command: Command, action: Action) -> None:
        """Begins an accepted command."""
        run = self._under_way(command.id)
        run.task = asyncio.create_task(self._perform(command, action, run), name=f"command {command.id}")

    def cancel(self, command: str, why: str) -> None:
        """Ends a running command: its action puts things in order, then the result follows. Once is enough:
        a second cancellation would disturb that.
        """
        run = self.running[command]
        if run.cancelled or run.task is None:
            return
        run.cancelled = f"cancelled: {why}" if why else "cancelled"
        if run.alone:
            return  # what goes on without us cannot be called back: its result follows
        run.task.cancel()
        if not run.begun:  # then its own `finally` never runs
            del self.running[command]
            why = f"{run.cancelled} (before it had begun: nothing was done)"
            self._finish(command, Result(outcome=Outcome.REFUSED, why=clip(why)))

    async def recover(self) -> None:
        """At start: results that nobody may have heard, and what was under way when the agent ended."""
        for entry in self._journal.untold():
            self.tell(entry)
        for entry in self._journal.unfinished():
            action = self._actions.get(entry.action)
            if isinstance(action, Outliving):
                await self._resume(entry, action)
            else:
                await self._put_right(entry, action)

    async def stop(self) -> None:
        """Cancels what runs and waits until it has been put in order and written down."""
        self._stopping = True
        runs = dict(self.running)
        tasks = [run.task for run in runs.values() if run.task is not None]
        for run in runs.values():
            if run.task is not None and (run.alone or not run.cancelled):
                run.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for command in list(self.running):  # cancelled before its first step: its own `finally` never ran
            run = self.running.pop(command)
            why = "the agent was stopped before it began: nothing was done"
            if not run.begun:
                self._finish(command, Result(outcome=Outcome.UNREACHABLE, why=why))

    def say_progress(self) -> None:
        """Tells of what runs for long; to be called each second or so."""
        now_s = self._host.mono_s()
        for command, run in self.running.items():
            if now_s - run.said_s < PROGRESS_EVERY_S:
                continue
            run.said_s = now_s
            data: dict[str, Scalar] = {
                "command": command,
                "elapsed_s": round(now_s - run.started_s, 1),
                "text": clip(run.doing),
            }
            self._uplink.put(
                Draft(kind="command.progress", component="node", severity=Severity.INFO, data=data), now_s
            )

    def tell(self, entry: Entry) -> None:
        """The result of an ended command as an event."""
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
            data["evidence"] = subjects.bundle(self._node, entry.id)
            data["evidence_bytes"] = result.evidence_bytes
        self._uplink.put(
            Draft(kind="command.result", component="node", severity=Severity.INFO, data=data),
            self._host.mono_s(),
        )
        with contextlib.suppress(OSError):
            self._journal.tell(entry.id)

    def _under_way(self, command: str, doing: str = "") -> Run:
        now_s = self._host.mono_s()
        run = self.running[command] = Run(started_s=now_s, said_s=now_s, doing=doing)
        return run

    async def _perform(self, command: Command, action: Action, run: Run) -> None:
        run.begun = True

        def say(text: str) -> None:
            run.doing = text

        CALL.set(Call(command=command.id, say=say))
        result = Result(outcome=Outcome.UNKNOWN, why="the agent was stopped, or failed, while it ran")
        underway = False
        try:
            async with asyncio.timeout(command.timeout_s):
                done = await action.run(command.params)
            result = Result(
                outcome=Outcome.OK,
                why=done.text,
                evidence=done.evidence,
                evidence_bytes=done.evidence_bytes,
            )
        except Underway as error:
            underway = True
            run.doing = str(error)
        except TimeoutError:
            result = Result(outcome=Outcome.UNKNOWN, why=f"not done within {command.timeout_s:g} s")
        except (ActionError, OSError) as error:
            result = _failed(error)
            if run.cancelled:
                result = Result(outcome=Outcome.FAILED, why=f"{run.cancelled}; {result.why}")
        except asyncio.CancelledError:
            if not run.cancelled:
                raise
            result = Result(outcome=Outcome.FAILED, why=run.cancelled)
        finally:
            if not underway:
                self._end(command.id, run, result)
        if underway and not self._stopping:
            await self._follow(self._journal[command.id], run)
        elif underway:
            del self.running[command.id]

    def _end(self, command: str, run: Run, result: Result) -> None:
        took_s = round(self._host.mono_s() - run.started_s, 3)
        self.running.pop(command, None)
        self._finish(
            command,
            Result(
                outcome=result.outcome,
                why=clip(result.why),
                took_s=took_s,
                evidence=result.evidence,
                evidence_bytes=result.evidence_bytes,
            ),
        )

    async def _put_right(self, entry: Entry, action: Action | None) -> None:
        """What was under way when the agent died gets the outcome that nobody knows."""
        why = (
            "the node was rebooted while it ran"
            if entry.boot != self._boot
            else "the agent was restarted while it ran (same boot)"
        )
        if action is not None:
            try:
                await action.recover(entry.params)
            except (ActionError, OSError) as error:
                why += f"; putting it right failed: {error}"
        self._finish(entry.id, Result(outcome=Outcome.UNKNOWN, why=clip(why)))

    async def _resume(self, entry: Entry, action: Outliving) -> None:
        """What outlived the agent: how it ended, or on with it."""
        result = await self._asked(entry, action)
        if result is not None:
            self._finish(entry.id, result)
            return
        run = self._under_way(entry.id, f"{entry.action} goes on without the agent")
        run.begun = run.alone = True
        run.task = asyncio.create_task(self._follow(entry, run), name=f"command {entry.id}")

    async def _asked(self, entry: Entry, action: Outliving) -> Result | None:
        """How it ended; None: it goes on, and its time is not over."""
        rebooted = entry.boot != self._boot
        try:
            done = await action.resume(entry.params, rebooted=rebooted)
        except Underway as error:
            if self._host.mono_s() < entry.until_s:
                return None
            return Result(
                outcome=Outcome.UNKNOWN, why=clip(f"its time is over, and it still goes on: {error}")
            )
        except (Unreachable, TimedOut, OSError) as error:
            return Result(outcome=Outcome.UNKNOWN, why=clip(f"cannot tell what became of it: {error}"))
        except ActionError as error:
            return Result(outcome=Outcome.FAILED, why=clip(str(error)))
        # The monotonic clock starts anew with each boot: how long it took is the brain's to say.
        return Result(outcome=Outcome.OK, why=clip(done.text))

    async def _follow(self, entry: Entry, run: Run) -> None:
        """Looks until it has ended, its time is over, or the agent ends too (then it stays open)."""
        action = self._actions[entry.action]
        run.alone = True
        while isinstance(action, Outliving):
            try:
                await asyncio.sleep(FOLLOW_S)
                result = await self._asked(entry, action)
            except asyncio.CancelledError:
                self.running.pop(entry.id, None)
                raise
            if result is not None:
                self._end(entry.id, run, result)
                return

    def _finish(self, command: str, result: Result) -> None:
        """Journal first: a result that was told and then forgotten could become another one after a crash."""
        try:
            self._journal.finish(command, result)
        except OSError:
            _log.exception(
                "the journal cannot be written; after a restart the result of %s is unknown", command
            )
        _log.info("command %s: %s: %s", command, result.outcome.value, result.why)
        self.tell(self._journal[command])
        if result.evidence:
            self._bundle_made()


def _failed(error: ActionError | OSError) -> Result:
    outcome = Outcome.FAILED
    if isinstance(error, Refused):
        outcome = Outcome.REFUSED
    elif isinstance(error, Unreachable):
        outcome = Outcome.UNREACHABLE
    elif isinstance(error, TimedOut):
        outcome = Outcome.UNKNOWN
    return Result(outcome=outcome, why=str(error))
