"""Says what this brain's account may not do at a scheduler as soon as it runs, and not when a runbook has begun to need it.

Each brain asks, also one that follows: it needs the rights when it leads. Nothing is changed there. On a site that only
observes nothing needs them: a note says what is missing, and nobody is called before a runbook may do more.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from agent.contract.errors import ActionError, Refused
from brain import fence
from brain.actions.scheduler import Closing
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.notes import BrainNotes
from brain.unreadable import answered_by

SCHEDULER_RIGHTS = "scheduler_rights"
LOOK_S = 5.0  # between two looks at the modes, and before a denial counts: a restarted API server denies for a moment
AGAIN_S = 600.0  # rights are given and taken away while a brain runs
AWAY_S = 60.0  # until one that did not answer is asked again


class SchedulerRights:
    """Asks the schedulers of this brain's configuration."""

    def __init__(
        self,
        schedulers: Mapping[str, Closing],
        *,
        caught_up: Callable[[], Awaitable[object]],
        acts: Callable[[], bool],
        alerts: BrainAlerts,
        notes: BrainNotes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`caught_up` returns when the log has said which modes are in force; `acts`: may any runbook do more than plan?"""
        self._schedulers = schedulers
        self._caught_up = caught_up
        self._acts = acts
        self._alerts = alerts
        self._notes = notes
        self._clock = clock
        self._due: dict[str, float] = {}
        self._suspected: dict[str, str] = {}
        self._lacking: dict[str, str] = {}  # scheduler -> what its account may not do, as seen twice
        self._noted = ""

    async def serve(self) -> None:
        """Until cancelled."""
        await self._caught_up()
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Asks those whose time has come, and tells what is known."""
        for name, scheduler in self._schedulers.items():
            if self._clock() >= self._due.get(name, 0.0):
                self._due[name] = self._clock() + await self._ask(name, scheduler)
        self._tell("; ".join(why for why in self._lacking.values() if why))

    async def _ask(self, name: str, scheduler: Closing) -> float:
        """Returns after how many seconds it is asked again."""
        try:
            with fence.around(fence.CHANGES_NOTHING), answered_by():
                rights = await scheduler.lacking()
            why = f"scheduler {name}: this brain's account may not {', '.join(rights)}" if rights else ""
        except Refused as error:
            why = f"scheduler {name}: {error}"
        except ActionError:
            return AWAY_S  # what was known of it stands; whoever needs it says that it is away
        if why and why not in (self._suspected.get(name), self._lacking.get(name)):
            self._suspected[name] = why
            return LOOK_S
        self._suspected.pop(name, None)
        self._lacking[name] = why
        return AGAIN_S

    def _tell(self, why: str) -> None:
        if why and self._acts():
            self._alerts.open(SCHEDULER_RIGHTS, why)
        else:
            self._alerts.clear(SCHEDULER_RIGHTS)
            if why and why != self._noted:
                text = f"{why}. No step needs it yet: all runbooks are in observe mode"
                self._notes.write("scheduler.rights", text)
        self._noted = why
