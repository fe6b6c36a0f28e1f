"""The laws of the machine under random logs: replay, twice, forget, restart; and safety laws 1 and 4 in storms."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.contract.actions.spec import Repeat
from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.core.effects import Effect, Note, Perform, SendPage, SetTimer, WriteIntent
from brain.core.engine import Engine
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    StepResult,
    TimerFired,
)
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Mode
from brain.core.state import State
from tests.brain.world import GPU, pack

STATE = TypeAdapter(State)
CACHE = CompiledCache()
Log = list[tuple[Input, float]]

FACTS: list[tuple[str, str, dict[str, Any]]] = [
    ("gpu.xid", GPU, {"code": 79}),
    ("gpu.xid", GPU, {"code": 999}),
    ("gpu.returned", GPU, {"by": "nvml"}),
    ("job.cuda_error", "node", {"name": "CUDA_ERROR_DEVICE_REMOVED"}),
    ("ib.errors", "port/mlx5_0.1", {"counter": "symbol_error", "delta": 60, "spec_s": 1800.0}),
    ("link.state", "link/eth1", {"up": False}),
    ("link.state", "link/eth1", {"up": True}),
    ("link.state", "link/eth2", {"up": False}),
    ("ib.sm_lid", "port/mlx5_0.1", {"sm_lid": 7}),
    ("gpu.idle", GPU, {"unit": "x.service", "job": ""}),
    ("gpu.busy", GPU, {}),
    ("service.state", "service/x.service", {"active": "failed"}),
    ("service.state", "service/x.service", {"active": "active"}),
]
WORDS: list[tuple[str, dict[str, Any]]] = [
    ("hold", {"scope": "node/n1", "why": "test"}),
    ("hold", {"scope": "all", "why": "test", "for_s": 30}),
    ("release", {"scope": "node/n1"}),
    ("release", {"scope": "all"}),
    ("mode", {"runbook": "*", "mode": "approve"}),
    ("mode", {"runbook": "bounce", "mode": "auto"}),
    ("mode", {"runbook": "*", "mode": "observe", "nodes": "n2"}),
    ("return", {"node": "n0"}),
]
NODES = ("n0", "n1", "n2", "n3")

moves = st.lists(
    st.one_of(
        st.tuples(
            st.just("fact"),
            st.sampled_from(range(len(FACTS))),
            st.sampled_from(NODES),
            st.sampled_from([0.0, 0.0, 5.0, 400.0]),
        ),
        st.tuples(st.just("word"), st.sampled_from(range(len(WORDS)))),
        st.tuples(st.just("approve")),
        st.tuples(st.just("silence"), st.sampled_from(NODES), st.booleans()),
        st.tuples(st.just("garbage"), st.sampled_from(NODES)),
        st.tuples(st.just("leader")),
        st.tuples(st.just("pack"), st.sampled_from([Mode.AUTO, Mode.APPROVE])),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 7.0, 40.0, 700.0])),
    ),
    max_size=40,
)
worlds = st.lists(
    st.sampled_from(["ok", "ok", "failed", "refused", "unreachable", "unknown", "never"]),
    min_size=1,
    max_size=8,
)


class Recorder:
    """Plays moves on an engine in an unreliable world, and records its log."""

    def __init__(self, answers: list[str]) -> None:
        self.engine = Engine(actions=ACTIONS, compile_pack=CACHE)
        self.log: Log = []
        self.notes: list[Note] = []
        self.performed: list[Perform] = []
        self.now = 0.0
        self._answers = answers
        self._pending: list[tuple[float, int, Input]] = []
        self._count = 0
        self._seqs: dict[str, int] = {}
        self._epoch = 0
        self._deliveries = 0
        self.most_claims_per_node = 0

    def put(self, given: Input) -> None:
        """Feeds an input now."""
        self.log.append((given, self.now))
        for effect in self.engine.handle(given, self.now):
            self._take(effect)
        nodes = [run.node for run in self.engine.state.runs.values() if run.claimed and run.node]
        self.most_claims_per_node = max([self.most_claims_per_node, *(nodes.count(node) for node in nodes)])

    def later(self, at: float, given: Input) -> None:
        """Feeds an input at a later time."""
        self._count += 1
        self._pending.append((at, self._count, given))

    def wait(self, seconds: float) -> None:
        """Time passes: inputs and timers that are due are fed."""
        until = self.now + seconds
        while due := sorted(entry for entry in ((at, n) for at, n, _ in self._pending) if entry[0] <= until):
            at, number = due[0]
            given = next(entry for entry in self._pending if entry[1] == number)
            self._pending.remove(given)
            self.now = max(self.now, at)
            self.put(given[2])
        self.now = until

    def _take(self, effect: Effect) -> None:
        if isinstance(effect, Note):
            self.notes.append(effect)
        elif isinstance(effect, SetTimer):
            self.later(
                effect.due, TimerFired(id=f"t:{effect.name}:{effect.due}", name=effect.name, due=effect.due)
            )
        elif isinstance(effect, WriteIntent):
            self.later(
                self.now,
                Intent(
                    id=f"i:{effect.step.id}:{self._epoch}", step=effect.step.id, epoch=self._epoch, brain="b"
                ),
            )
        elif isinstance(effect, Perform):
            self.performed.append(effect)
            answer = self._answers[len(self.performed) % len(self._answers)]
            if answer != "never":
                outcome = Outcome(answer)
                self._count += 1
                self.later(
                    self.now + 1.0,
                    StepResult(
                        id=f"r:{effect.step.id}:{self._count}",
                        step=effect.step.id,
                        outcome=outcome,
                        why=answer,
                    ),
                )
        elif isinstance(effect, SendPage):
            self._count += 1
            self._deliveries += 1
            self.later(
                self.now + 0.1,
                Delivery(
                    id=f"d:{effect.id}:{self._count}",
                    page=effect.id,
                    ok=self._deliveries % 3 > 0,
                    channel="c",
                ),
            )

    def play(self, script: Iterable[tuple[Any, ...]]) -> "Recorder":
        """Plays all moves, each at its time."""
        self.put(PackLoaded(id="pack-0", pack=pack()))
        self._lead()
        for number, move in enumerate(script):
            self._move(number, move)
        return self

    def _lead(self) -> None:
        self._epoch += 1
        self.put(Leader(id=f"leader-{self._epoch}", epoch=self._epoch, brain="b"))

    def _move(self, number: int, move: tuple[Any, ...]) -> None:
        match move:
            case ("fact", index, node, age_s):
                kind, component, data = FACTS[index]
                seq = self._seqs[node] = self._seqs.get(node, 0) + 1
                self.put(
                    EventSeen(
                        event=Event(
                            id=f"{node}:s:{seq}",
                            node=node,
                            kind=kind,
                            component=component,
                            severity=Severity.ERROR,
                            at="",
                            age_s=age_s,
                            boot="b",
                            count=1,
                            data=data,
                            evidence="line",
                        )
                    )
                )
            case ("word", index):
                verb, args = WORDS[index]
                self.put(OperatorCommand(id=f"said-{number}", who="ann", verb=verb, args=args))
            case ("approve",):
                for incident in list(self.engine.state.incidents):
                    self.put(
                        OperatorCommand(
                            id=f"said-{number}-{incident}", who="ann", verb="approve", args={"id": incident}
                        )
                    )
            case ("silence", node, alive):
                self.put(NodeState(id=f"ns-{number}", node=node, alive=alive, silent_s=20.0))
            case ("garbage", node):
                self.put(Malformed(id=f"m-{number}", subject="x", node=node, why="not JSON"))
            case ("leader",):
                self._lead()
            case ("pack", mode):
                self.put(PackLoaded(id=f"pack-{number}", pack=pack(mode, version=f"p{number}")))
            case ("wait", seconds):
                self.wait(seconds)


def replayed(log: Log, state: State | None = None) -> tuple[list[Note], Engine]:
    """The notes that an engine makes of a log, and the engine."""
    engine = Engine(state, actions=ACTIONS, compile_pack=CACHE)
    notes = [effect for given, now in log for effect in engine.handle(given, now) if isinstance(effect, Note)]
    return notes, engine


def saved(state: State) -> bytes:
    """A state as a snapshot writes it."""
    return STATE.dump_json(state)


@settings(max_examples=120, deadline=None)
@given(moves, worlds)
def test_replay(script: list[tuple[Any, ...]], answers: list[str]) -> None:
    """A recorded log gives the same notes and the same state."""
    live = Recorder(answers).play(script)
    notes, engine = replayed(live.log)
    assert notes == live.notes
    assert saved(engine.state) == saved(live.engine.state)


@settings(max_examples=120, deadline=None)
@given(moves, worlds, st.data())
def test_twice(script: list[tuple[Any, ...]], answers: list[str], data: st.DataObject) -> None:
    """An input that is delivered again, at once or later, changes nothing."""
    live = Recorder(answers).play(script)
    again = data.draw(st.lists(st.tuples(st.integers(0, len(live.log) - 1), st.integers(0, 10)), max_size=20))
    log: Log = []
    for index, entry in enumerate(live.log):
        log.append(entry)
        log.extend(
            (live.log[index - back][0], entry[1]) for which, back in again if which == index and back <= index
        )
    notes, engine = replayed(log)
    assert notes == live.notes
    assert saved(engine.state) == saved(live.engine.state)


@settings(max_examples=120, deadline=None)
@given(moves, worlds, st.data())
def test_restart(script: list[tuple[Any, ...]], answers: list[str], data: st.DataObject) -> None:
    """Rebuilt from a snapshot at any point of the log, the engine decides the same."""
    live = Recorder(answers).play(script)
    cut = data.draw(st.integers(0, len(live.log)))
    before, first = replayed(live.log[:cut])
    after, second = replayed(live.log[cut:], STATE.validate_json(saved(first.state)))
    assert before + after == live.notes
    assert saved(second.state) == saved(live.engine.state)


@settings(max_examples=120, deadline=None)
@given(moves, worlds)
def test_forget(script: list[tuple[Any, ...]], answers: list[str]) -> None:
    """When operators have closed everything and time has passed, no trace of a fault is left."""
    live = Recorder(answers).play(script)
    live.wait(10)
    for number in range(200):
        open_now = [incident.id for incident in live.engine.state.incidents.values()]
        for node in NODES:
            live.put(NodeState(id=f"end-{number}-{node}", node=node, alive=True))
        for incident in open_now:
            live.put(
                OperatorCommand(id=f"end-{number}-{incident}", who="ann", verb="close", args={"id": incident})
            )
        for scope in list(live.engine.state.holds):
            live.put(
                OperatorCommand(id=f"end-{number}-{scope}", who="ann", verb="release", args={"scope": scope})
            )
        live.wait(5000)
        if live.engine.state.fault_free():
            break
    state = live.engine.state
    assert state.fault_free(), json.loads(saved(state)) | {"pack": None, "recent": None}


@settings(max_examples=200, deadline=None)
@given(moves, worlds)
def test_never_two_disruptive_runs_on_a_node(script: list[tuple[Any, ...]], answers: list[str]) -> None:
    """Law 1, for any inputs in any order."""
    live = Recorder(answers).play(script)
    live.wait(300)
    assert live.most_claims_per_node <= 1


@settings(max_examples=100, deadline=None)
@given(moves, worlds)
def test_what_must_never_be_repeated_is_not(script: list[tuple[Any, ...]], answers: list[str]) -> None:
    """Law 4: with all actions of class `never`, no rung of a run is performed twice unless it certainly did not begin."""
    specs = {
        name: type(spec)(
            name=spec.name,
            summary=spec.summary,
            disrupts=spec.disrupts,
            repeat=Repeat.NEVER,
            timeout_s=spec.timeout_s,
            params=spec.params,
        )
        for name, spec in ACTIONS.items()
    }
    live = Recorder(answers)
    live.engine = Engine(actions=specs, compile_pack=CACHE)
    live.play(script)
    live.wait(300)
    unsure: set[str] = set()
    answered = {given.step: given.outcome for given, _ in live.log if isinstance(given, StepResult)}
    for perform in live.performed:
        rung = perform.step.id.rpartition(".a")[0]
        assert rung not in unsure, f"{rung} was performed again"
        if answered.get(perform.step.id) not in (Outcome.UNREACHABLE, Outcome.REFUSED):
            unsure.add(rung)
