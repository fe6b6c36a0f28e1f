"""Looks whether our drains still stand where a scheduler may make its record of a node anew, and renews them (decision 112).

The leading brain looks at each node that is drained by us. What is not as the log has it goes on the log, as the answer of the
scheduler that it is; the engine decides (brain/core/healing/lost_drains.py).
"""

import asyncio
import logging
import time
from collections.abc import Callable

from agent.contract.errors import ActionError, Refused
from agent.contract.messages import clip
from agent.shared.tasks import Tasks
from brain import fence
from brain.actions.base import Renewing
from brain.actions.marks import Mark
from brain.actions.telling import told
from brain.core.effects import DrainAgain
from brain.core.healing import lost_drains
from brain.fence import Deposed
from brain.leader.jobs import JobQuestions
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica
from brain.unreadable import answered_by

LOOK_S = 10.0  # pods may start on a node for so long after it has joined anew
AGAIN_S = 60.0  # what stands as it stood is told again
_MOST_TEXT = 300

_log = logging.getLogger(__name__)


class LostDrains:
    """Those of this brain's schedulers."""

    def __init__(
        self,
        *,
        schedulers: Callable[[str], object],
        leadership: Leadership,
        replica: Replica,
        questions: JobQuestions,
        notes: BrainNotes,
        background: Tasks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`schedulers`: node -> the scheduler that has it."""
        self._schedulers = schedulers
        self._leadership = leadership
        self._replica = replica
        self._questions = questions
        self._notes = notes
        self._background = background
        self._clock = clock
        self._told: dict[str, tuple[str, frozenset[str], float]] = {}  # node -> record, marks, when

    async def serve(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Looks once at each node that we have drained."""
        drained = list(self._replica.state.drains)
        self._told = {node: one for node, one in self._told.items() if node in self._replica.state.drains}
        for node in drained:
            scheduler = self._schedulers(node)
            if not isinstance(scheduler, Renewing) or not self._leadership.leads():
                continue
            try:
                with answered_by():
                    found = await scheduler.standing(node)
            except (ActionError, OSError) as error:
                _log.info("whether the drain of %s stands: %s", node, error)
                continue
            marks = frozenset(mark.incident for mark in found.marks)
            owners = self._replica.state.drains.get(node, {}).values()
            if not lost_drains.is_news(owners, found.record, marks):
                continue
            record, before, at_s = self._told.get(node, ("", frozenset(), 0.0))
            if (record, before) != (found.record, marks) or self._clock() - at_s >= AGAIN_S:
                self._told[node] = (found.record, marks, self._clock())
                self._questions.ask(node)

    def again(self, effect: DrainAgain) -> None:
        """Begins to drain a node again; the scheduler's answer becomes an input."""
        self._background.start(self._again(effect), f"drain of {effect.node} again")

    async def _again(self, effect: DrainAgain) -> None:
        node, scheduler = effect.node, self._schedulers(effect.node)
        if not isinstance(scheduler, Renewing):
            return
        marks = [Mark(incident=incident, why=clip(why, 150)) for incident, why in effect.marks.items()]

        async def wanted() -> None:
            if not lost_drains.wanted(self._replica.look(), node, effect.marks):
                raise Refused("it is not wanted any more")

        try:
            with fence.around(self._leadership.fence()), answered_by():
                await scheduler.renew(node, marks, effect.record, wanted)
                shown = await told(scheduler, node, set(effect.marks))
        except Deposed:
            return
        except (ActionError, OSError) as error:
            self._notes.write("drain.not_renewed", f"{node}: {clip(str(error), _MOST_TEXT)}")
            return
        if shown:
            self._notes.write("scheduler.not_shown", f"{node}{shown}")
        self._questions.ask(node)
