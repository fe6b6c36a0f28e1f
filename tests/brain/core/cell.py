"""A cell at peace, and what can be the matter in it: the words in which the tables of the safety core are written.

The run in question is about to reset a GPU of n1, and no gate objects. Each neighbour of n1 shares one thing with it:
n2 the leaf switch, n3 the rack, n4 the pod, n5 nothing but the fabric; n6 shares leaf switch and pod. A `Given` (givens.py)
changes that: `Cell(held("rack/r1"), approved()).asks(gates.hold)`.
"""

from collections.abc import Callable

import pytest

from brain.core.context import Context
from brain.core.effects import Effect
from brain.core.healing import gates, runs
from brain.core.healing.verdicts import Case, Decision, Gate, Verdict
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.pack.spec import (
    Match,
    Mode,
    ModeSetting,
    Pack,
    Paging,
    Place,
    Priority,
    Rule,
    Runbook,
    Rung,
    Settings,
    Symptom,
)
from brain.core.state import (
    Incident,
    IncidentState,
    Node,
    Run,
    RunState,
    State,
    SymptomState,
)

NOW = 100_000.0
GPU = "gpu/n1/0000:3b:00"
PLACES = {
    "n1": Place(leaf="l1", rack="r1", pod="p1"),
    "n2": Place(leaf="l1", rack="r2", pod="p2"),
    "n3": Place(leaf="l3", rack="r1", pod="p3"),
    "n4": Place(leaf="l4", rack="r4", pod="p1"),
    "n5": Place(leaf="l5", rack="r5", pod="p5"),
    "n6": Place(leaf="l1", rack="r6", pod="p1"),
    "n7": Place(leaf="l7", rack="r7", pod="p7", chassis="c7"),
    "n8": Place(leaf="l8", rack="r7", pod="p7", chassis="c7"),
}
SYMPTOMS = (
    Symptom(name="off_bus", scope="gpu", summary="a GPU is off the bus", on=(Match(kind="gpu.off_bus"),)),
    Symptom(name="hot", scope="gpu", summary="a GPU is hot", on=(Match(kind="gpu.hot"),)),
    Symptom(name="off_bus_leaf", scope="leaf", summary="on many nodes", detect="spread", of="off_bus", at_least=4),
    Symptom(name="off_bus_cell", scope="cell", summary="on many nodes", detect="spread", of="off_bus", at_least=8),
    Symptom(name="leaf_hot", scope="leaf", summary="a switch is hot", on=(Match(kind="switch.hot"),)),
)  # fmt: skip
LADDER = Runbook(
    name="reset-gpu",
    summary="reset it, then reboot",
    rungs=(
        Rung(name="reset", do="gpu.reset", params={"gpu": "$component"}),
        Rung(name="reboot", do="node.reboot"),
    ),
    tries=2,
    tries_within_s=3600,
)


class Cell:
    """Everything that a gate looks at."""

    def __init__(self, *givens: "Given") -> None:
        self.settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),), disruptive_runs=99)
        self.observe_all = False
        self.runbooks: tuple[Runbook, ...] = (LADDER,)
        self.rules: tuple[Rule, ...] = ()
        self.state = State(now=NOW)
        self.incident = Incident(
            id="inc-1", cause="gpu-lost", state=IncidentState.HEALING, severity=Priority.P1, scope=GPU,
            node="n1", rule="gpu-lost",
            because="it is off the bus", runbook=LADDER.name, pack="p", opened_at=NOW - 600, hold_off_until=NOW - 600,
            resolve_delay_s=60, page=Paging.OPEN, symptoms=[f"off_bus@{GPU}"], matching_rules={f"gpu-lost@{GPU}": "gpu-lost"},
        )  # fmt: skip
        self.run = Run(
            id="inc-1.r1", incident="inc-1", runbook=LADDER, pack="p", scope=GPU, node="n1", params={},
            state=RunState.HELD, started_at=NOW - 600,
        )  # fmt: skip
        self.state.incidents["inc-1"], self.state.runs["inc-1.r1"] = self.incident, self.run
        self.falls_ill(GPU)
        for given in givens:
            given(self)

    def boots(self, at: float) -> None:
        """n1 was first heard in its present boot then."""
        self.state.nodes["n1"] = Node(name="n1", booted_at=at)

    def falls_ill(self, scope: str, symptom: str = "off_bus", nodes: int = 0) -> None:
        """A symptom is active at a scope, on so many nodes of it."""
        members = {f"m{number}": NOW for number in range(nodes)}
        self.state.symptoms[f"{symptom}@{scope}"] = SymptomState(
            name=symptom, scope=scope, active=True, since=NOW - 600, members=members
        )

    def ctx(self) -> Context:
        """As it is now."""
        pack = Pack(
            version="p",
            symptoms=SYMPTOMS,
            rules=self.rules,
            runbooks=self.runbooks,
            settings=self.settings,
            places=PLACES,
        )
        index = Index(self.state)
        return Context(self.state, Compiled(pack), index, ACTIONS, "input-1", observe_all=self.observe_all)

    def asks(self, gate: Gate) -> Verdict | None:
        """What one gate says to the run's present rung."""
        rung = self.run.runbook.rungs[self.run.rung]
        return gate(Case(ctx=self.ctx(), run=self.run, incident=self.incident, rung=rung))

    def proceeds(self) -> list[Effect]:
        """What the run asks for when it goes on."""
        ctx = self.ctx()
        runs.proceed(ctx, self.run)
        return ctx.finish()

    def asks_all(self) -> Verdict:
        """What all of them say."""
        return gates.check(self.ctx(), self.run, self.incident, self.run.runbook.rungs[self.run.rung])


Given = Callable[[Cell], None]
Row = tuple[str, list[Given], Verdict | None]


def wait(gate: str, reason: str, retry_s: float = 15) -> Verdict:
    """Not now; it is asked again after so long."""
    return Verdict(answer=Decision.HOLD, gate=gate, reason=reason, retry_s=retry_s)


def ask_a_person(gate: str, reason: str, retry_s: float = 15) -> Verdict:
    """Only with an approval; it is asked again after so long."""
    return Verdict(answer=Decision.APPROVAL, gate=gate, reason=reason, retry_s=retry_s)


def never(gate: str, reason: str) -> Verdict:
    """A person must take over."""
    return Verdict(answer=Decision.STOP, gate=gate, reason=reason)


def table(*rows: Row) -> pytest.MarkDecorator:
    """The test's table: what is the case, in words and as givens, and the gate's answer (None: it does not object)."""
    return pytest.mark.parametrize(
        ("givens", "answer"), [row[1:] for row in rows], ids=[row[0] for row in rows]
    )
