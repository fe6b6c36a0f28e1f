"""Accepted commands while they run: started once, followed, cancelled, recorded, reported.

An accepted command ends with exactly one result in the journal. A command whose action outlives the agent (`Resumable`)
stays open when the agent ends, and its action tells at the next start how it ended.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agent.actions.base import (
    RUNNING_COMMAND,
    Action,
    Done,
    NotPassed,
    Resumable,
    RunningCommand,
    StillRunning,
)
from agent.commands.journal import Journal, JournalEntry, Result
from agent.contract import figures, subjects
from agent.contract.commands import Command, Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.host import Host
from agent.shared.log_fields import about
from agent.uplink.port import Uplink

PROGRESS_EVERY_S = 10.0  # a command that runs for longer reports its progress, each time that this is over
FOLLOW_S = 1.0  # between checks of what continues without the agent

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Execution:
    """One running command."""

    # By the node's monotonic clock, as is `reported_s`.
    started_s: float
    # When its progress was last reported.
    reported_s: float
    # What it is doing, for people.
    progress: str = ""
    # Its action was called.
    begun: bool = False
    # Why it is being cancelled; empty: it is not.
    cancelled: str = ""
    # The action continues without the agent, which only checks on it.
    detached: bool = False
    task: asyncio.Task[None] | None = None


class Runner:
    """Runs the commands of one node."""

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
        """`bundle_made` is called when a result names a new evidence bundle."""
        self._host = host
        self._node = node
        self._boot = host.boot_id()
        self._actions = actions
        self._journal = journal
        self._uplink = uplink
        self._bundle_made = bundle_made
        self._stopping = False
        self.running: dict[str, Execution] = {}
        # Outcome -> how many commands have ended so since the start; for the metrics.
        self.ended: dict[str, int] = {}

    def start(self, command: Command, action: Action) -> None:
        """Begins an accepted command."""
        execution = self._track(command.id)
        execution.task = asyncio.create_task(
            self._perform(command, action, execution), name=f"command {command.id}"
        )

    def cancel(self, command: str, why: str) -> None:
        """Cancels a running command: its action puts things in order, then the result follows. A second cancellation would
        disturb that and is ignored.
        """
        execution = self.running[command]
        if execution.cancelled or execution.task is None:
            return
        execution.cancelled = f"cancelled: {why}" if why else "cancelled"
        if execution.detached:
            return  # what continues without the agent cannot be called back: its result follows
        execution.task.cancel()
        if not execution.begun:  # then the task ends before its `finally`
            del self.running[command]
            why = f"{execution.cancelled} (before it had begun: nothing was done)"
            self._finish(command, Result(outcome=Outcome.REFUSED, why=clip(why)))

    async def recover(self) -> None:
        """At start: reports results that may not have been reported, and settles what was running when the agent ended."""
        for entry in self._journal.unreported():
            self.report_result(entry)
        for entry in self._journal.unfinished():
            action = self._actions.get(entry.action)
            if isinstance(action, Resumable):
                await self._resume(entry, action)
            else:
                await self._recover(entry, action)

    async def stop(self) -> None:
        """Cancels what runs and waits until it has put things in order and is recorded."""
        self._stopping = True
        executions = dict(self.running)
        tasks = [execution.task for execution in executions.values() if execution.task is not None]
        for execution in executions.values():
            if execution.task is not None and (execution.detached or not execution.cancelled):
                execution.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for command in list(
            self.running
        ):  # cancelled before its first step: the task ended before its `finally`
            execution = self.running.pop(command)
            why = "the agent was stopped before it began: nothing was done"
            if not execution.begun:
                self._finish(command, Result(outcome=Outcome.UNREACHABLE, why=why))

    def report_progress(self) -> None:
        """Reports on commands that run for long; to be called each second or so."""
        now_s = self._host.mono_s()
        for command, execution in self.running.items():
            if now_s - execution.reported_s < PROGRESS_EVERY_S:
                continue
            execution.reported_s = now_s
            data: dict[str, Scalar] = {
                "command": command,
                "elapsed_s": round(now_s - execution.started_s, 1),
                "text": clip(execution.progress),
            }
            self._uplink.put(
                UnsentEvent(kind="command.progress", component="node", severity=Severity.INFO, data=data),
                now_s,
            )

    def report_result(self, entry: JournalEntry) -> None:
        """Puts the result of an ended command into the spool, as an event."""
        result = entry.result
        if result is None:
            return
        data: dict[str, Scalar] = {
            "command": entry.id,
            "outcome": result.outcome.value,
            "why": result.why,
            "took_s": result.took_s,
            **result.data,
        }
        if result.evidence:
            data["evidence"] = subjects.bundle(self._node, entry.id)
            data["evidence_bytes"] = result.evidence_bytes
        if result.blind:
            data["blind"] = result.blind
        self._uplink.put(
            UnsentEvent(kind="command.result", component="node", severity=Severity.INFO, data=data),
            self._host.mono_s(),
        )
        with contextlib.suppress(OSError):
            self._journal.mark_reported(entry.id)

    def _track(self, command: str, progress: str = "") -> Execution:
        now_s = self._host.mono_s()
        execution = self.running[command] = Execution(started_s=now_s, reported_s=now_s, progress=progress)
        return execution

    async def _perform(self, command: Command, action: Action, execution: Execution) -> None:
        execution.begun = True

        def report_progress(text: str) -> None:
            execution.progress = text

        RUNNING_COMMAND.set(RunningCommand(id=command.id, report_progress=report_progress))
        result = Result(outcome=Outcome.UNKNOWN, why="the agent was stopped, or failed, while it ran")
        still_running = False
        try:
            async with asyncio.timeout(command.timeout_s):
                done = await action.run(command.params)
            result = _result(Outcome.OK, done)
        except StillRunning as error:
            still_running = True
            execution.progress = str(error)
        except TimeoutError:
            result = Result(outcome=Outcome.UNKNOWN, why=f"not done within {command.timeout_s:g} s")
        except (ActionError, OSError) as error:
            result = _failed(error)
            if execution.cancelled:
                result = replace(result, outcome=Outcome.FAILED, why=f"{execution.cancelled}; {result.why}")
        except asyncio.CancelledError:
            if not execution.cancelled:
                raise
            result = Result(outcome=Outcome.FAILED, why=execution.cancelled)
        finally:
            if not still_running:
                self._end(command.id, execution, result)
        if still_running and not self._stopping:
            await self._follow(self._journal[command.id], execution)
        elif still_running:
            del self.running[command.id]

    def _end(self, command: str, execution: Execution, result: Result) -> None:
        took_s = round(self._host.mono_s() - execution.started_s, 3)
        self.running.pop(command, None)
        self._finish(command, replace(result, why=clip(result.why), took_s=took_s))

    async def _recover(self, entry: JournalEntry, action: Action | None) -> None:
        """A command that was running when the agent died: its outcome is unknown."""
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

    async def _resume(self, entry: JournalEntry, action: Resumable) -> None:
        """A command that outlived the agent: records its end, or follows it further."""
        result = await self._resumed(entry, action)
        if result is not None:
            self._finish(entry.id, result)
            return
        execution = self._track(entry.id, f"{entry.action} goes on without the agent")
        execution.begun = execution.detached = True
        execution.task = asyncio.create_task(self._follow(entry, execution), name=f"command {entry.id}")

    async def _resumed(self, entry: JournalEntry, action: Resumable) -> Result | None:
        """How it ended; None: it still runs, and its time is not over."""
        rebooted = entry.boot != self._boot
        try:
            done = await action.resume(entry.params, rebooted=rebooted)
        except StillRunning as error:
            if self._host.mono_s() < entry.until_s:
                return None
            return Result(
                outcome=Outcome.UNKNOWN, why=clip(f"its time is over, and it still goes on: {error}")
            )
        except (Unreachable, TimedOut, OSError) as error:
            return Result(outcome=Outcome.UNKNOWN, why=clip(f"cannot tell what became of it: {error}"))
        except ActionError as error:
            return Result(outcome=Outcome.FAILED, why=clip(str(error)))
        # The monotonic clock starts at zero with each boot, so how long it took is for the brain to tell.
        return Result(outcome=Outcome.OK, why=clip(done.text))

    async def _follow(self, entry: JournalEntry, execution: Execution) -> None:
        """Checks until it has ended, its time is over, or the agent ends too (then the command stays open)."""
        action = self._actions[entry.action]
        execution.detached = True
        while isinstance(action, Resumable):
            try:
                await asyncio.sleep(FOLLOW_S)
                result = await self._resumed(entry, action)
            except asyncio.CancelledError:
                self.running.pop(entry.id, None)
                raise
            if result is not None:
                self._end(entry.id, execution, result)
                return

    def _finish(self, command: str, result: Result) -> None:
        """Journal first: a result that was reported but not recorded could become another one after a crash."""
        outcome = result.outcome.value
        self.ended[outcome] = self.ended.get(outcome, 0) + 1
        with about(step=command):
            self._told(command, result)
        self.report_result(self._journal[command])
        if result.evidence:
            self._bundle_made()

    def _told(self, command: str, result: Result) -> None:
        try:
            self._journal.finish(command, result)
        except OSError:
            _log.exception(
                "the journal cannot be written; after a restart the result of %s is unknown", command
            )
        _log.info("command %s: %s: %s", command, result.outcome.value, result.why)


def _result(outcome: Outcome, done: Done) -> Result:
    data: dict[str, Scalar] = {}
    if done.figures:
        data = {"figures": figures.encode(done.figures), "alike": done.alike}
    if done.untested:
        data["untested"] = clip("; ".join(done.untested))
    return Result(
        outcome=outcome,
        why=done.text,
        evidence=done.evidence,
        evidence_bytes=done.evidence_bytes,
        blind=done.blind,
        data=data,
    )


def _failed(error: ActionError | OSError) -> Result:
    if isinstance(error, NotPassed):
        return _result(Outcome.FAILED, error.done)
    outcome = Outcome.FAILED
    if isinstance(error, Refused):
        outcome = Outcome.REFUSED
    elif isinstance(error, Unreachable):
        outcome = Outcome.UNREACHABLE
    elif isinstance(error, TimedOut):
        outcome = Outcome.UNKNOWN
    return Result(outcome=outcome, why=str(error))
