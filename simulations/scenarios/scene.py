"""One cell in virtual time with the shipped rules: simulated machines, their scheduler, the brain's absences.

It adds to the simulator what situations need: answers that a scheduler or BMC gives instead of doing the work, the jobs that
a scheduler knows, and times in which no brain leads.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from brain.cli.backtest import rule_sets
from brain.core.effects import AskJobs, AskLook, AskPlan, Effect, Perform, SendPage, Step
from brain.core.engine import Engine
from brain.core.inputs import (
    EventSeen,
    Input,
    Intent,
    JobsAnswer,
    Leader,
    NodeState,
    PackLoaded,
    StepResult,
    TimerFired,
)
from brain.core.jobs_seen import JobSeen
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Mode, ModeSetting, Pack, Place, Settings
from brain.core.rehearsal.timeline import Timeline, World
from simulations.actions.infrastructure import MARK
from simulations.changes import Change, after
from simulations.virtual_time import LATENCY_S, Simulator

CACHE = CompiledCache()


@functools.cache
def shipped() -> Pack:
    """The rules and runbooks that gpuward comes with; nothing is scheduled."""
    return rule_sets.shipped().pack(places={})


def usual_places(nodes: int) -> dict[str, Place]:
    """32 nodes under a leaf, 16 in a rack, 64 in a pod."""
    return {
        f"n{n:03}": Place(leaf=f"leaf-{n // 32}", rack=f"rack-{n // 16}", pod=f"row-{n // 64}")
        for n in range(nodes)
    }


def auto(
    nodes: int,
    *,
    pack: Pack | None = None,
    inspect_s: float = 0.0,
    places: Mapping[str, Place] | None = None,
    **settings: Any,
) -> Pack:
    """Everything in auto mode, on a site whose scheduler is asked for jobs; else the defaults.

    `pack`: the rules; None: gpuward's own. `inspect_s`: nodes are inspected so often; 0: never. `places`: of the nodes; None: the
    usual ones.
    """
    settings = {"ask_jobs": True, "ask_who_is_hit": True, "modes": (ModeSetting(mode=Mode.AUTO),), **settings}
    pack = pack or shipped()
    if inspect_s:
        runbooks = (
            replace(one, every_s=inspect_s if one.name == "inspect-node" else 0.0) for one in pack.runbooks
        )
        pack = replace(pack, runbooks=tuple(runbooks), version=f"{pack.version}-{inspect_s}")
    return replace(
        pack, settings=Settings(**settings), places=usual_places(nodes) if places is None else places
    )


@dataclass(slots=True, kw_only=True)
class FixedAnswer:
    """What an action answers instead of being done."""

    action: str
    outcome: Outcome
    why: str
    # glob
    nodes: str
    # how often; inf: always
    left: float
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step that was performed."""

    at_s: float
    step: Step

    @property
    def disturbs(self) -> bool:
        """Does it disturb anything?"""
        return self.step.disrupts is not Disrupts.NOTHING


class SceneLog(Timeline):
    """While no brain leads, no timer fires and no intent is written: both come when one leads again."""

    def __init__(self, engine: Engine, perform: World) -> None:
        super().__init__(engine, perform)
        self.nobody_until = 0.0

    def feed(self, given: Input, at: float) -> None:
        """Adds an input that comes at time `at`."""
        if isinstance(given, TimerFired | Intent):
            at = max(at, self.nobody_until)
        super().feed(given, at)


class Scene(Simulator):
    """A cell in which a situation is played."""

    def __init__(self, nodes: int, **settings: Any) -> None:
        pack = auto(nodes, **settings)
        engine = Engine(actions=ACTIONS, compile_pack=CACHE)
        super().__init__(engine, pack, list(pack.places))
        self.timeline = self.log = SceneLog(engine, self.perform)
        self.size = nodes
        self.settings = settings
        self.places: Mapping[str, Place] = pack.places
        self.done: list[Done] = []
        self.paged: list[tuple[float, SendPage]] = []
        self.answers: list[FixedAnswer] = []
        self.protected: set[str] = set()
        self.scheduler_silent = False
        self._waiting: list[Effect] = []
        self._epoch = 0
        self.lead()
        self.load(pack)
        for name in pack.places:
            self.log.feed(NodeState(id=f"known-{name}", node=name, alive=True), self.start)

    @property
    def at_s(self) -> float:
        """Now, in seconds since the start."""
        return max(0.0, self.log.now - self.start)

    def lead(self) -> None:
        """Another brain leads from now on."""
        self._epoch += 1
        given = Leader(id=f"lead-{self._epoch}", epoch=self._epoch, brain=f"brain-{self._epoch % 2}")
        self.log.feed(given, max(self.log.now, self.start))

    def load(self, pack: Pack) -> None:
        """Rules or settings are in force from now on."""
        given = PackLoaded(id=f"pack-{pack.version}-{self.log.now}", pack=pack)
        self.log.feed(given, max(self.log.now, self.start))

    def stand(self, places: Mapping[str, Place]) -> None:
        """From now on the topology says of these nodes that they stand there."""
        self.places = {**self.places, **places}
        self.settings = {**self.settings, "places": self.places}
        self.load(auto(self.size, **self.settings))

    def change(self, nodes: Iterable[str], changes: Sequence[Change]) -> None:
        """Machines change now; each change of one machine a tenth of a second after the other."""
        now = self.start + self.at_s
        for node in nodes:
            self.machines[node].apply([after(0.1 * n, change) for n, change in enumerate(changes)], now)
            self.schedule(node, now)

    def tell(self, event: EventSeen) -> None:
        """An event that no machine of the cell made comes now."""
        self.log.feed(event, self.log.now)

    def nobody_leads(self, for_s: float) -> None:
        """No brain leads for so long."""
        self.log.nobody_until = self.log.now + for_s

    def somebody_leads(self) -> None:
        """A brain has read the log and leads: what was to be done meanwhile is done now."""
        waiting, self._waiting = self._waiting, []
        self.lead()
        for effect in waiting:
            for at, given in self.perform(effect, self.log.now):
                self.log.feed(given, at)

    def perform(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, SendPage):
            self.paged.append((now - self.start, effect))
        if now < self.log.nobody_until:
            self._waiting.append(effect)
            return []
        if isinstance(effect, AskJobs):
            return [(now + LATENCY_S, replace(self._jobs(effect.node, now), people=effect.people))]
        if isinstance(effect, AskPlan | AskLook) or not isinstance(effect, Perform):
            return super().perform(effect, now)
        step = effect.step
        self.done.append(Done(at_s=now - self.start, step=step))
        for answer in self.answers:
            if answer.left > 0 and answer.action == step.action and fnmatchcase(step.node, answer.nodes):
                answer.left -= 1
                if answer.took_s == math.inf:
                    return []
                result = StepResult(
                    id=f"r:{step.id}:{now}", step=step.id, outcome=answer.outcome, why=answer.why
                )
                return [(now + answer.took_s + LATENCY_S, result)]
        return super().perform(effect, now)

    def _jobs(self, node: str, now: float) -> JobsAnswer:
        id_ = f"j:{node}:{now}"
        if self.scheduler_silent:
            return JobsAnswer(id=id_, node=node, known=False, why="the scheduler does not answer")
        jobs = tuple(self.machines[node].state.jobs) if node in self.machines else ()
        guarded = next((job for job in jobs if job in self.protected), "")
        drained = self.machines[node].state.drain_reason if node in self.machines else ""
        return JobsAnswer(
            id=id_,
            node=node,
            known=True,
            jobs=jobs,
            seen=tuple(
                JobSeen(id=job, nodes=sum(job in one.state.jobs for one in self.machines.values()))
                for job in jobs
            ),
            protected=guarded,
            why="its account is protected",
            drained=drained,
            ours=drained.startswith(MARK),
        )
