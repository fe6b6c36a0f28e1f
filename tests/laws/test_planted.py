"""Do the oracles notice a broken law? A defect is planted in the engine; stories are told until one shows it."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.actions.spec import Disrupts, Repeat
from brain.adapters import snapshot
from brain.core.context import Context
from brain.core.effects import Step
from brain.core.faults import facts, spread
from brain.core.healing import drains, gates, plans, senders, steps
from brain.core.healing.verdicts import Case, Decision, Verdict
from brain.core.inputs import Intent
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Rung
from brain.core.paging import alerts, queue
from brain.core.state import Incident, Run
from tests.laws import oracles, world
from tests.laws.play import Tally, play

CACHE = CompiledCache()
STORIES = 1500  # so many are told before the defect counts as not noticed: other rules make other stories
Patch = pytest.MonkeyPatch


def without(gate: str, patch: Patch) -> None:
    """No run is held for this reason."""
    patch.setattr(gates, "GATES", tuple(one for one in gates.GATES if one.__name__ != gate))


def others_forgotten(patch: Patch) -> None:
    """A node is given back whoever else wants it drained."""
    patch.setattr(drains, "others", lambda _ctx, _run: [])


def pages_sent_once(patch: Patch) -> None:
    """A page that no channel took is not sent again."""
    patch.setattr(queue, "_retry", lambda *_: [])
    patch.setattr(queue, "redeliver", lambda *_: None)


def alerts_lost(patch: Patch) -> None:
    """What explains an incident does not take its alert over."""

    def pass_on(_ctx: Context, _by: Incident, other: Incident) -> None:
        other.pages.resolved = True

    patch.setattr(alerts, "pass_on", pass_on)


def timers_lost(patch: Patch) -> None:
    """A snapshot forgets the timers."""

    def parse(body: bytes) -> Any:
        state = snapshot.parse(body)
        state.timers.clear()
        return state

    patch.setattr(world, "parse", parse)


def nights_forgotten(patch: Patch) -> None:
    """A snapshot forgets how often a node was remedied: hours later it is remedied once more than it may be."""

    def parse(body: bytes) -> Any:
        state = snapshot.parse(body)
        state.remedied.clear()
        return state

    patch.setattr(world, "parse", parse)


def runs_asleep(patch: Patch) -> None:
    """Nothing wakes a run that waits."""

    def set_timer(self: Context, name: str, due: float) -> None:
        if not name.startswith("run:"):
            real(self, name, due)

    real = Context.set_timer
    patch.setattr(Context, "set_timer", set_timer)


def every_step_sent_again(patch: Patch) -> None:
    """Whatever its repeat class says."""
    repeat, step = plans.repeat, plans.step

    def as_it_is(ctx: Context, run: Run, incident: Incident, rung: Rung, *more: str) -> Step:
        return replace(step(ctx, run, incident, rung, *more), repeat=repeat(ctx, rung))

    patch.setattr(plans, "repeat", lambda _ctx, _rung: Repeat.SAFE)
    patch.setattr(plans, "step", as_it_is)


def every_code_known(patch: Patch) -> None:
    """Any XID is taken for each that the rules know."""
    matches = facts.matches
    patch.setattr(facts, "matches", lambda match, event: event.kind == "gpu.xid" or matches(match, event))


def nothing_shared(patch: Patch) -> None:
    """However many nodes show a symptom."""
    patch.setattr(spread, "reached", lambda *_: False)


def way_back_blocked(patch: Patch) -> None:
    """A tripped breaker holds the steps of the way back, too."""
    disrupts = plans.disrupts

    def all_of_them(ctx: Context, rung: Rung, *, returning: bool = False) -> Disrupts:
        return Disrupts.NODE if returning else disrupts(ctx, rung)

    def breaker(case: Case) -> Verdict | None:
        if not case.ctx.state.tripped:
            return None
        return Verdict(answer=Decision.HOLD, gate="breaker", reason="tripped", retry_s=300)

    patch.setattr(plans, "disrupts", all_of_them)
    patch.setattr(gates, "GATES", (breaker, *gates.GATES))


def any_node_believed(patch: Patch) -> None:
    """A node may say how another one's step ended."""
    patch.setattr(senders, "is_foreign", lambda *_: False)
    patch.setattr(senders, "speaks_for_another", lambda *_: False)


def deposed_brains_act(patch: Patch) -> None:
    """An intent of an earlier leader is as good as the present one's. Each is of one here: one that is overtaken by a change of
    the leader is too rare to wait for.
    """
    intended = steps.intended
    patch.setattr(world, "Intent", lambda **given: Intent(**given | {"epoch": given["epoch"] - 1}))
    patch.setattr(steps, "intended", lambda ctx, step, _epoch: intended(ctx, step, ctx.state.epoch))


# law, defect, the first story that is told: some way before the one that shows it, which other rules move. Where a minute goes by
# until then, begin nearer.
DEFECTS: tuple[tuple[int, Callable[[Patch], None], int], ...] = (
    (0, timers_lost, 12),
    (0, nights_forgotten, 12),
    (1, functools.partial(without, "budget"), 1140),
    (2, functools.partial(without, "hold"), 40),
    (2, functools.partial(without, "maintenance"), 55),
    (2, functools.partial(without, "protected"), 4),
    (4, every_step_sent_again, 12),
    (5, every_code_known, 1),
    (6, nothing_shared, 140),
    (7, way_back_blocked, 105),
    (8, others_forgotten, 205),
    (10, pages_sent_once, 8),
    (10, alerts_lost, 1),
    (13, functools.partial(without, "stale"), 12),
    (14, runs_asleep, 65),
    (15, any_node_believed, 1),
    (16, deposed_brains_act, 1),
)


@pytest.mark.parametrize(("law", "plant", "first"), DEFECTS)
def test_a_planted_defect_is_noticed(
    monkeypatch: Patch, law: int, plant: Callable[[Patch], None], first: int
) -> None:
    """By the oracle of its law, and by all of them alike when they look at every moment."""
    plant(monkeypatch)
    found = next((seed for seed in range(first, first + STORIES) if broken(seed).get(law)), None)
    assert found is not None
    asked_when_concerned = broken(found)
    everybody = tuple(range(len(oracles.all_of_them())))
    monkeypatch.setattr(oracles, "concerned", lambda _kinds: everybody)
    assert broken(found) == asked_when_concerned


def test_every_oracle_has_noticed_one() -> None:
    """An oracle that never found anything may be unable to."""
    assert {oracle.law for oracle in oracles.all_of_them()} == {law for law, _, _ in DEFECTS}


@pytest.mark.parametrize("seed", [12, 23, 37, 40, 374, 2903])
def test_the_engine_itself_breaks_no_law(seed: int) -> None:
    """In the stories that show the defects; `make stories` tells thousands."""
    assert broken(seed) == {}


def broken(seed: int) -> dict[int, list[str]]:
    """What one story shows, by law."""
    tally = Tally()
    play(seed, CACHE, tally)
    return dict(tally.violations)
