"""A situation: its timeline, what is expected of it, and how it is judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from simulations.scenarios.ending import SceneEnd
from simulations.scenarios.moves import Moves
from simulations.scenarios.scene import Scene
from tests.situations.checks import Check


class Verdict(StrEnum):
    """How far what happens is what is expected."""

    AS_EXPECTED = "as expected"
    MOSTLY = "mostly"  # what must not happen does not; people get more or other words than they should
    NOT = "not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One row of docs/safety.md."""

    # unique; a sentence without its full stop
    what: str
    # what a senior operator expects
    expected: str
    moves: Moves
    # how long it is played, seconds
    until_s: float
    checks: tuple[Check, ...]
    # of the cell
    nodes: int = 64
    settings: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict = Verdict.AS_EXPECTED
    # why it is not as expected; empty: it is
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A situation that was played."""

    verdict: Verdict
    # the expectations that were not met
    unmet: tuple[str, ...]
    # what happened and why
    line: str


def play(situation: Situation) -> SceneEnd:
    """Plays a situation to its end."""
    scene = Scene(situation.nodes, **situation.settings)
    for move in sorted(situation.moves, key=lambda move: move.at_s):
        scene.run(move.at_s)
        move.do(scene)
    scene.run(situation.until_s)
    return SceneEnd(scene=scene)


def judge(situation: Situation) -> Judged:
    """Plays a situation and compares its end with what is expected."""
    outcome = play(situation)
    unmet = [(check, text) for check in situation.checks if (text := check.fails(outcome))]
    verdict = Verdict.AS_EXPECTED
    if unmet:
        verdict = Verdict.NOT if any(check.must for check, _ in unmet) else Verdict.MOSTLY
    return Judged(verdict=verdict, unmet=tuple(text for _, text in unmet), line=outcome.line())
