"""Performs the steps that the brain does itself: with a deadline, watched, and only while this brain leads."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from agent.contract.messages import clip
from agent.shared.tasks import end
from brain import actions as known
from brain import fence
from brain.actions.base import Action, Order, Unwell
from brain.core.effects import Step
from brain.core.inputs import StepProgress, StepResult, result_of_brain
from brain.fence import Deposed, EpochFence
from brain.unreadable import answered_by

CHECK_S = 0.2  # how often it is checked whether this brain still leads
PROGRESS_S = 10.0  # how often a long step reports that it is still under way
_log = logging.getLogger(__name__)


class Performer:
    """The brain's own steps. It keeps nothing but those that run now."""

    def __init__(
        self,
        actions: Mapping[str, Action],
        *,
        may_act: Callable[[int], bool],
        confirm: Callable[[int], Awaitable[bool]],
        report: Callable[[StepProgress], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`may_act(epoch)`: does this brain still lead with that epoch? `confirm(epoch)` asks the server.
        `report` puts a sign of life on the log.
        """
        self._actions = actions
        self._may_act = may_act
        self._confirm = confirm
        self._report = report
        self._clock = clock
        self._running: dict[str, asyncio.Task[StepResult | None]] = {}
        self._cancelled: dict[str, str] = {}  # step -> why

    async def perform(self, step: Step, epoch: int) -> StepResult | None:
        """Does the step and returns how it ended. None: this brain no longer leads, the next leader decides."""
        if step.id in self._running:
            return None  # asked for again by our own new epoch: the one that runs will answer
        task = asyncio.create_task(self._run(step, epoch), name=f"{step.action} {step.id}")
        self._running[step.id] = task
        began_s = reported_s = self._clock()
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=CHECK_S)
                if done:
                    return None if task.cancelled() else task.result()
                now = self._clock()
                if not self._may_act(epoch):
                    return None
                if step.id in self._cancelled:
                    await end(task)
                    why = f"cancelled: {self._cancelled[step.id]}"
                    return result_of_brain(step.id, epoch, Outcome.UNKNOWN, why)
                if now - reported_s >= PROGRESS_S:
                    reported_s = now
                    self._progress(step, epoch, now - began_s, "")
        finally:
            await end(task)
            del self._running[step.id]
            self._cancelled.pop(step.id, None)

    def cancel(self, step: str, why: str) -> None:
        """Stops a step that a person or a wider cause has made unwanted. Does nothing if it is not under way here."""
        if step in self._running:
            self._cancelled[step] = why

    async def plan(self, step: Step) -> list[str]:
        """Returns what the step would do. Refused and its kin: it would not be done."""
        with answered_by(step.action):
            return await self._action(step).plan(self._order(step, 0))

    def _action(self, step: Step) -> Action:
        action = self._actions.get(step.action)
        if action is None:
            raise known.missing(step.action)
        return action

    def _order(self, step: Step, epoch: int) -> Order:
        began_s = self._clock()
        return Order(
            id=step.id,
            incident=step.incident,
            node=step.node,
            params=step.params,
            timeout_s=step.timeout_s,
            why=step.why,
            progress=lambda text: self._progress(step, epoch, self._clock() - began_s, text),
        )

    def _progress(self, step: Step, epoch: int, elapsed_s: float, text: str) -> None:
        self._report(
            StepProgress(
                id=f"g:{step.id}:{epoch}:{elapsed_s:.3f}",
                step=step.id,
                elapsed_s=round(elapsed_s, 1),
                text=clip(text, 200),
            )
        )

    async def _run(self, step: Step, epoch: int) -> StepResult | None:
        _log.info("step %s: %s %s (%s)", step.id, step.action, dict(step.params), step.why)
        try:
            async with asyncio.timeout(step.timeout_s):
                with (
                    fence.around(EpochFence(self._may_act, self._confirm, epoch)),
                    answered_by(step.action, TimedOut),
                ):
                    done = await self._action(step).run(self._order(step, epoch))
        except Deposed:
            _log.warning("step %s: this brain no longer leads: nothing more was sent", step.id)
            return None
        except Refused as error:
            return result_of_brain(step.id, epoch, Outcome.REFUSED, str(error))
        except Unreachable as error:
            return result_of_brain(step.id, epoch, Outcome.UNREACHABLE, str(error))
        except TimedOut as error:
            return result_of_brain(step.id, epoch, Outcome.UNKNOWN, str(error))
        except TimeoutError:
            why = f"not done within {step.timeout_s:g} s"
            return result_of_brain(step.id, epoch, Outcome.UNKNOWN, why)
        except Unwell as error:
            return result_of_brain(step.id, epoch, Outcome.FAILED, str(error), error.data)
        except (ActionError, OSError) as error:
            return result_of_brain(step.id, epoch, Outcome.FAILED, str(error))
        return result_of_brain(step.id, epoch, Outcome.OK, done.text, done.data)
