"""A random log over the rules that gpuward comes with: any facts, any results, any words of people, at any time."""

import heapq
import random
from collections.abc import Mapping
from typing import Any

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.core.effects import AskJobs, AskLook, AskPlan, Effect, Perform, SendPage, SetTimer, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsAnswer,
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    StepPlan,
    StepProgress,
    StepResult,
    TimerFired,
)
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Match, Mode, ModeSetting, Pack, Place, Settings, Window
from tests.shipped import shipped_pack

NODES = {
    f"n{n:02}": Place(leaf=f"l{n % 3}", rack=f"r{n % 4}", pod=f"p{n % 2}", fabric="default")
    for n in range(24)
}
START = 1_700_000_000.0
_COMPONENTS = {
    "gpu": ("gpu/0000:3b:00", "gpu/0000:5e:00"),
    "nvswitch": ("nvswitch/0000:c1:00",),
    "nic": ("nic/mlx5_0", "nic/mlx5_1"),
    "port": ("port/mlx5_0.1", "port/mlx5_1.1"),
    "link": ("link/eth0", "link/eth1"),
    "bond": ("bond/bond0",),
    "service": ("service/slurmd.service", "service/nvidia-fabricmanager.service"),
    "job": ("job/4711",),
    "disk": ("disk/nvme0n1",),
    "mount": ("mount/scratch",),
    "pcie": ("pcie/0000:3a:00",),
    "node": ("node",),
}


def pack(mode: Mode, chance: random.Random) -> Pack:
    """The shipped rules under settings that let much happen."""
    settings = Settings(
        modes=(ModeSetting(mode=mode), ModeSetting(runbook="reset-*", nodes="n0*", mode=Mode.APPROVE)),
        disruptive_runs=6,
        disruptive_runs_per_leaf=2,
        ask_jobs=chance.random() < 0.5,
        breaker_runs=40,
        maintenance=(Window(scope="rack/r1", since=START + 2000, until=START + 4000, why="new cables"),),
    )
    return shipped_pack(settings, NODES)


class Chance:
    """One random story."""

    def __init__(self, seed: int, inputs: int) -> None:
        self.chance = random.Random(seed)
        self.engine = Engine(actions=ACTIONS)
        self.log: list[tuple[Input, float]] = []
        self.now = START
        self._length = inputs
        self._queue: list[tuple[float, int, Input]] = []
        self._count = 0
        self._seqs: dict[str, int] = {}
        self._boots: dict[str, int] = {}
        self._epoch = 0

    def play(self) -> list[tuple[Input, float]]:
        """The log."""
        self._put(PackLoaded(id="pack-0", pack=pack(Mode.AUTO, self.chance)))
        self._lead()
        while len(self.log) < self._length:
            self._move()
            self._pass(self.chance.choice((0.0, 0.01, 0.3, 1.0, 5.0, 20.0, 60.0, 300.0)))
        self.engine.close()
        return self.log

    def _put(self, given: Input) -> None:
        self.log.append((given, self.now))
        for effect in self.engine.handle(given, self.now):
            self._take(effect)

    def _later(self, after_s: float, given: Input) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + after_s, self._count, given))

    def _pass(self, seconds: float) -> None:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until and len(self.log) < self._length:
            at, _, given = heapq.heappop(self._queue)
            self.now = max(self.now, at)
            self._put(given)
        self.now = until

    def _id(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"

    def _take(self, effect: Effect) -> None:
        chance = self.chance
        match effect:
            case SetTimer(name=name, due=due):
                self._later(due - self.now, TimerFired(id=f"t:{name}:{due}", name=name, due=due))
            case WriteIntent(step=step):
                self._later(
                    chance.choice((0.0, 0.01, 2.0)),
                    Intent(id=f"i:{step.id}:{self._epoch}", step=step.id, epoch=self._epoch, brain="b"),
                )
            case Perform(step=step) | AskLook(step=step):
                outcome = chance.choice([*Outcome, Outcome.OK, Outcome.OK, Outcome.OK, None])
                after = chance.uniform(0.1, 90)
                if chance.random() < 0.3:
                    progress = StepProgress(
                        id=self._id("g"), step=step.id, elapsed_s=after / 2, text="at work"
                    )
                    self._later(after / 2, progress)
                if outcome is not None and step.where == "node":
                    data = {"command": step.id, "outcome": outcome.value, "why": f"it is {outcome.value}"}
                    self._later(after, self._event(step.node, "command.result", "node", data))
                elif outcome is not None:
                    self._later(
                        after,
                        StepResult(
                            id=self._id("r"), step=step.id, outcome=outcome, why=f"it is {outcome.value}"
                        ),
                    )
            case SendPage(id=page):
                ok = chance.random() < 0.8
                given = Delivery(id=self._id("d"), page=page, ok=ok, channel="c", why="" if ok else "refused")
                self._later(chance.uniform(0, 5), given)
            case AskPlan(step=step):
                given_plan = StepPlan(
                    id=self._id("w"), step=step.id, ok=chance.random() < 0.8, lines=("would do it",)
                )
                self._later(0.1, given_plan)
            case AskJobs(node=node):
                told = chance.choice(
                    (
                        JobsAnswer(id=self._id("j"), node=node, known=True),
                        JobsAnswer(id=self._id("j"), node=node, known=True, jobs=("4711",)),
                        JobsAnswer(
                            id=self._id("j"), node=node, known=True, jobs=("9",), protected="9 (account prod)"
                        ),
                        JobsAnswer(
                            id=self._id("j"), node=node, known=False, why="the scheduler does not answer"
                        ),
                    )
                )
                self._later(0.2, told)

    def _lead(self) -> None:
        self._epoch += 1
        self._put(Leader(id=f"leader-{self._epoch}", epoch=self._epoch, brain=f"b{self._epoch % 2}"))

    def _event(
        self, node: str, kind: str, component: str, data: Mapping[str, Any], age_s: float = 0.0
    ) -> EventSeen:
        seq = self._seqs[node] = self._seqs.get(node, 0) + 1
        return EventSeen(
            event=Event(
                id=f"{node}:s:{seq}",
                node=node,
                kind=kind,
                component=component,
                severity=Severity.ERROR,
                at="",
                age_s=age_s,
                boot=f"boot-{self._boots.get(node, 0)}",
                count=1,
                data=dict(data),
                evidence=f"{kind} on {component}",
            )
        )

    def _fact(self, node: str, match: Match, scope: str) -> EventSeen:
        data = {name: _fitting(want) for name, want in match.where.items() if name not in _NO_DATA}
        wanted = match.where.get("component_type", scope)
        kind = wanted if isinstance(wanted, str) and wanted in _COMPONENTS else "node"
        component = self.chance.choice(_COMPONENTS[kind])
        return self._event(
            node, match.kind, component, data, self.chance.choice((0.0, 0.0, 0.0, 3.0, 200.0, 5000.0))
        )

    def _move(self) -> None:
        chance, state = self.chance, self.engine.state
        known = state.pack.symptoms if state.pack is not None else ()
        node = chance.choice(list(NODES))
        what = chance.choices(
            ("fact", "storm", "cleared", "silence", "word", "leader", "pack", "garbage", "boot"),
            (60, 2, 12, 6, 18, 1, 1, 2, 3),
        )[0]
        if what in ("fact", "storm", "cleared"):
            symptom = chance.choice([one for one in known if (one.clear if what == "cleared" else one.on)])
            match = chance.choice(symptom.clear if what == "cleared" else symptom.on)
            many = chance.sample(list(NODES), chance.randint(4, 20)) if what == "storm" else [node]
            often = chance.choice((1, 1, 1, 5))
            for one in many * often:
                self._later(chance.uniform(0, 10), self._fact(one, match, symptom.scope))
        elif what == "silence":
            self._put(NodeState(id=self._id("n"), node=node, alive=chance.random() < 0.6, silent_s=20.0))
        elif what == "leader":
            self._lead()
        elif what == "pack":
            self._put(PackLoaded(id=self._id("p"), pack=pack(chance.choice(list(Mode)), chance)))
        elif what == "garbage":
            self._put(Malformed(id=self._id("m"), subject="x", node=node, why="not JSON"))
        elif what == "boot":
            self._boots[node] = self._boots.get(node, 0) + 1
        else:
            self._word(node)

    def _word(self, node: str) -> None:
        chance, state = self.chance, self.engine.state
        ids = [*state.incidents, *state.runs, *state.alert_groups, "inc-nobody"]
        runbooks = [book.name for book in state.pack.runbooks] if state.pack is not None else ["x"]
        verb = chance.choice(
            (
                "hold",
                "release",
                "approve",
                "approve",
                "deny",
                "ack",
                "ack",
                "close",
                "mode",
                "return",
                "start",
                "reset",
                "sing",
            )
        )
        args: dict[str, Any] = {"id": chance.choice(ids)}
        if verb in ("hold", "release"):
            args = {"scope": chance.choice((f"node/{node}", "leaf/l1", "rack/r2", "all", "cell"))}
            args |= {"why": "because"} if verb == "hold" else {}
            args |= {"for_s": chance.choice((30, 600))} if verb == "hold" and chance.random() < 0.7 else {}
        elif verb == "mode":
            args = {
                "runbook": chance.choice([*runbooks, "*"]),
                "mode": chance.choice(("observe", "approve", "auto", "auto", "auto")),
            }
            args |= {"nodes": chance.choice(("*", "n0*", node))} if chance.random() < 0.5 else {}
        elif verb == "return":
            args = {"node": node}
        elif verb == "start":
            args = {"runbook": chance.choice(runbooks), "node": node, "why": "a look"}
        elif verb == "reset":
            args = {}
        self._put(
            OperatorCommand(id=self._id("said"), who=chance.choice(("ann", "bob")), verb=verb, args=args)
        )


_NO_DATA = ("severity", "component", "component_type", "count")


def _fitting(want: Any) -> Any:
    """A value that passes a test of a rule."""
    if isinstance(want, (list, tuple)):
        return want[0]
    if not isinstance(want, Mapping):
        return want
    for name, value in want.items():
        if name in ("gte", "lte", "eq"):
            return value
        if name == "gt":
            return value + 1
        if name == "lt":
            return value - 1
        if name == "in":
            return value[0]
    return "x"
