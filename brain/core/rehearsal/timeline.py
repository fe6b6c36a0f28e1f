"""Simulated time: an engine, its timers, and a world that performs its effects. For examples, diagnose, backtest, simulation.

Pure: the inputs carry their times, and the world is a function. Nothing here can reach a real actuator (law 9).
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from brain.core.effects import Effect, Note, SendPage, SetTimer, ShowIncident, ShowRun, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import Delivery, Input, Intent, TimerFired
from brain.core.state import Incident, Run

World = Callable[
    [Effect, float], Iterable[tuple[float, Input]]
]  # (effect, now) -> (time, input) of what follows


class Timeline:
    """Feeds inputs and due timers to an engine in the order of their times, and keeps what the engine shows.

    Intents come back at once. Without a world, pages are delivered at once and other effects lead to nothing.
    """

    def __init__(self, engine: Engine, perform: World | None = None, *, copies: bool = True) -> None:
        """`copies`: of incidents and runs, as they were when they were shown; else they are the engine's own objects, which is
        much faster where only their end is asked for.
        """
        self.engine = engine
        self._copies = copies
        self.notes: list[Note] = []
        self.incidents: dict[
            str, Incident
        ] = {}  # by id, in their newest form; also those that the engine forgot
        self.runs: dict[str, Run] = {}
        self.pages: list[SendPage] = []
        self.now = 0.0
        self._perform = perform
        self._queue: list[tuple[float, int, Input]] = []
        self._count = 0

    def feed(self, given: Input, at: float) -> None:
        """Adds an input that comes at time `at`."""
        self._count += 1
        heapq.heappush(self._queue, (at, self._count, given))

    def next_at(self) -> float | None:
        """When the next input or timer is due; None: there is none."""
        return self._queue[0][0] if self._queue else None

    def run(self, until: float) -> None:
        """Handles all inputs and timers up to and including `until`."""
        while self._queue and self._queue[0][0] <= until:
            at, _, given = heapq.heappop(self._queue)
            self.now = max(self.now, at)
            for effect in self.engine.handle(given, self.now):
                self.take(effect)
        self.now = max(self.now, until)

    def take(self, effect: Effect) -> None:
        """Keeps what the engine shows, and lets the world perform the rest."""
        match effect:
            case Note():
                self.notes.append(effect)
            case SetTimer(name=name, due=due):
                self.feed(TimerFired(id=f"t:{name}:{due}", name=name, due=due), due)
            case ShowIncident(incident=incident):
                self.incidents[incident.id] = _copy(incident) if self._copies else incident
            case ShowRun(run=run):
                self.runs[run.id] = _copy(run) if self._copies else run
            case WriteIntent(step=step):
                epoch = self.engine.state.epoch
                self.feed(
                    Intent(id=f"i:{step.id}:{epoch}", step=step.id, epoch=epoch, brain="timeline"), self.now
                )
            case SendPage(id=page) if self._perform is None:
                self.pages.append(effect)
                self.feed(Delivery(id=f"d:{page}", page=page, ok=True, channel="timeline"), self.now)
            case _:
                if isinstance(effect, SendPage):
                    self.pages.append(effect)
                for at, given in self._perform(effect, self.now) if self._perform else ():
                    self.feed(given, at)


def _copy(shown: Any) -> Any:
    """A copy that the engine no longer changes. What never changes, most of it, is shared with the original: `copy.deepcopy`
    would look through all evidence, and took more than half of a simulated month.
    """
    kind = type(shown)
    if kind is list:
        return [part if _changing(type(part)) is None else _copy(part) for part in shown]
    if kind is dict:
        return {key: part if _changing(type(part)) is None else _copy(part) for key, part in shown.items()}
    copied = object.__new__(kind)
    for name in _changing(kind) or ():
        part = getattr(shown, name)
        setattr(copied, name, part if _changing(type(part)) is None else _copy(part))
    return copied


def _changing(kind: type) -> tuple[str, ...] | None:
    """The fields of what changes (none of lists and dicts); None: it never does, as frozen records, tuples, texts and numbers."""
    if kind not in _KINDS:
        record = is_dataclass(kind) and not getattr(kind, "__dataclass_params__").frozen  # noqa: B009  # it has no type
        _KINDS[kind] = tuple(field.name for field in fields(kind)) if record else None
    return _KINDS[kind]


# Type -> see _changing; filled as they come.
_KINDS: dict[type, tuple[str, ...] | None] = {list: (), dict: ()}
