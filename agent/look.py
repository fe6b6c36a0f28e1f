"""Looking again: every running source takes its samples now, and the collectors tell afresh what lasts.

The facts are in the spool when a look ends: what is put there afterwards, such as the result of agent.look, follows them.
"""

import asyncio
from collections.abc import Callable, Container

from agent.actions.action_setup import LookedAgain
from agent.collectors.samples import Looked, Sample, Tick
from agent.contract.look import RESTATED, TOLD_AFTER_START, concerns
from agent.contract.messages import UnsentEvent
from agent.host import Host
from agent.sources.base import Source
from agent.supervisor import Feeder, Kept, is_present

LIMIT_S = 20.0  # of a source; one that hangs holds up a look for so long
# After the start: the first when a clock that is off has been off for long enough to be told, the second for what was in
# between, or could not be seen.
AFTER_START_S = (150.0, 1800.0)


class Looker:
    """Knows the sources that should run. One look at a time."""

    def __init__(self, host: Host, feeder: Feeder, *, limit_s: float = LIMIT_S) -> None:
        """`limit_s`: for each source."""
        self._host = host
        self._feeder = feeder
        self._limit_s = limit_s
        self._watched: list[tuple[Source, Kept]] = []
        self._turn = asyncio.Lock()

    def watch(self, source: Source, kept: Kept) -> None:
        """A source that should run."""
        self._watched.append((source, kept))

    async def after_start(self) -> None:
        """Tells, after the agent's start, what is well of that which was there before it and may have ended meanwhile."""
        waited_s = 0.0
        for after_s in AFTER_START_S:
            await asyncio.sleep(after_s - waited_s)
            waited_s = after_s
            await self.look(of_kinds=TOLD_AFTER_START)
        await asyncio.Event().wait()

    async def look(self, component: str = "", of_kinds: Container[str] = RESTATED) -> LookedAgain:
        """Lets all sources look, and tells afresh what they saw of the component (empty: of everything)."""
        async with self._turn:
            wanted = concerns(component)
            seen = await asyncio.gather(
                *(self._one(source, kept, wanted, of_kinds) for source, kept in self._watched)
            )
            blind = {
                source.name: why for (source, _), (why, _) in zip(self._watched, seen, strict=True) if why
            }
            present = (
                f"{unsent.kind} {unsent.component}"
                for _, told in seen
                for unsent in told
                if is_present(unsent)
            )
            return LookedAgain(
                looked=len(seen) - len(blind), blind=blind, present=tuple(dict.fromkeys(present))
            )

    async def _one(
        self, source: Source, kept: Kept, wanted: Callable[[str], bool], of_kinds: Container[str]
    ) -> tuple[str, list[UnsentEvent]]:
        """Why the source could not look (empty: it did), and what was told of what it saw.

        Told as soon as it is seen: what changes while others still look is reported after it.
        """
        samples: list[Sample] = []

        def emit(sample: Sample) -> None:
            self._feeder.emit(sample)
            samples.append(sample)

        why = kept.down
        if not why:
            try:
                async with asyncio.timeout(self._limit_s):
                    await source.look(emit)
                why = kept.down
            except TimeoutError:
                why = f"no answer within {self._limit_s:g} s"
            except OSError as error:
                why = str(error)
        now_s = self._host.mono_s()
        # What is judged, or held back, until the next tick.
        self._feeder.emit(Tick(mono_s=now_s))
        if not why:
            samples.append(Looked(source=source.name, mono_s=now_s))
        return why, self._feeder.restate(samples, wanted, of_kinds)
