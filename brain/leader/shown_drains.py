"""What a scheduler shows of our drains (`Telling`) is compared with the drains themselves, and set right.

A step shows what it has changed, once: a brain that was stopped in between, or a server that was away, leaves what is no longer
so, and no later step need come. The leading brain looks when it begins to lead and every AGAIN_S; one that got no answer asks
every AWAY_S until it has one. Of a node that was forgotten while we drained it no step comes at all: it looks when there is one
more or less of them.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping

from agent.contract.errors import ActionError
from agent.contract.messages import clip
from brain import fence
from brain.actions.base import Telling
from brain.fence import Deposed
from brain.leader.leadership import Leadership
from brain.leader.notes import BrainNotes
from brain.unreadable import answered_by

LOOK_S = 5.0  # between two looks whether this brain leads
AGAIN_S = 600.0  # a cluster of 10,000 nodes answers with 150 MB
AWAY_S = 60.0
_MOST_TEXT = 300


class ShownDrains:
    """Those of this brain's schedulers."""

    def __init__(
        self,
        schedulers: Mapping[str, object],
        *,
        leadership: Leadership,
        notes: BrainNotes,
        forgotten: Callable[[], Collection[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Of `schedulers` those that show anything. `forgotten`: nodes that were, while we drained them (state.left_behind)."""
        self._schedulers = {name: one for name, one in schedulers.items() if isinstance(one, Telling)}
        self._leadership = leadership
        self._notes = notes
        self._forgotten = forgotten
        self._clock = clock
        self._gone = frozenset[str]()  # those forgotten nodes that were there at the last look
        self._due: dict[str, float] = {}
        self._failed: dict[str, str] = {}  # scheduler -> what it said last, until it answers

    async def serve(self) -> None:
        """Until cancelled."""
        while self._schedulers:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Compares those whose time has come."""
        if not self._leadership.leads():
            self._due.clear()  # whoever led meanwhile may have been stopped in the middle of a step
            return
        if (gone := frozenset(self._forgotten())) != self._gone:
            self._gone = gone
            self._due.clear()
        for name, scheduler in self._schedulers.items():
            if self._clock() >= self._due.get(name, 0.0):
                pause_s = await self._compare(name, scheduler)
                self._due[name] = self._clock() + pause_s

    async def _compare(self, name: str, scheduler: Telling) -> float:
        """Returns after how many seconds it is compared again."""
        try:
            with fence.around(self._leadership.fence()), answered_by():
                nodes = await scheduler.tell_anew(self._gone)
        except Deposed:
            return 0.0
        except ActionError as error:
            says = clip(str(error), _MOST_TEXT)
            if name not in self._failed:
                self._notes.write(
                    "scheduler.not_shown",
                    f"{name}: what it shows of our drains is not known to be right: {says}",
                )
            self._failed[name] = says
            return AWAY_S
        self._failed.pop(name, None)
        if nodes:
            text = (
                f"{name}: what it showed of our drains was set right on {clip(', '.join(nodes), _MOST_TEXT)}"
            )
            self._notes.write("scheduler.shown", text)
        return AGAIN_S
