"""The places where a symptom is spread, kept in order while nodes come and go, are those that are seen anew in the state."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.context import Context
from brain.core.engine import Engine
from brain.core.faults import places, reached
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Mode, ModeSetting, Place, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

NODES = [f"n{number:02}" for number in range(48)]
CACHE = CompiledCache()


def where(draw: Random) -> dict[str, Place]:
    """Trees that cross, some nodes without a place, some in two of a kind."""
    found: dict[str, Place] = {}
    for number, node in enumerate(NODES):
        if draw.random() < 0.1:
            continue
        also = (f"power/q{number % 4}",) if draw.random() < 0.5 else ()
        found[node] = Place(
            leaf=f"l{number // 8}", rack=f"r{number // 6}", row=f"w{number // 16}", pod=f"o{number // 24}",
            storage=f"s{number % 2}", power=f"p{number % 3}", also=also,
        )  # fmt: skip
    return found


def seen(one: reached.Spreads) -> dict[str, Any]:
    """All that the judgement asks of it, as plain values."""
    explained = {scope: places.best(place, one.ranked) for scope, place in one.seen.items()}
    facts = {
        scope: (dict(place.ill), place.of, place.needed(), place.reached, place.rank, place.by_size)
        for scope, place in one.seen.items()
    }
    order = [place.place for place in one.ranked.larger_than(-1)]
    beside = {scope: [other.place for other in one.ranked.beside(place)] for scope, place in one.seen.items()}
    better = {
        scope: [other.place for other in one.ranked.better_than(place)] for scope, place in one.seen.items()
    }
    most = {scope: one.ranked.most_ill(place) for scope, place in one.seen.items()}
    return {
        "facts": facts,
        "explained": explained,
        "order": order,
        "beside": beside,
        "better": better,
        "most": most,
    }


def anew(engine: Engine) -> Context:
    """What a brain sees that starts from the snapshot of this one."""
    return Engine(parse(dump(engine.state)), actions=ACTIONS, compile_pack=CACHE).look()


def move(story: Story, draw: Random, at: float) -> None:
    """Something happens to some nodes."""
    first, count = draw.randrange(len(NODES)), draw.choice((1, 1, 2, 6, 8, 16, 48))
    for node in NODES[first : first + count]:
        match draw.randrange(5):
            case 0 | 1:
                story.event(at, "link.state", "link/eth1", node, up=False)
            case 2:
                story.event(at, "link.state", "link/eth1", node, up=True)
            case 3:
                story.event(
                    at, "job.nccl_error", f"job/{draw.randrange(3)}", node, what="timeout", job="1", file="x"
                )
            case _:
                state, before = draw.choice((("DOWN", "ACTIVE"), ("ACTIVE", "DOWN")))
                story.event(
                    at, "ib.port_state", "port/mlx5_0.1", node, state=state, before=before, phys_state="x"
                )


@pytest.mark.parametrize("seed", range(10))
def test_what_is_kept_equals_what_is_seen_anew(seed: int) -> None:
    """After each of some random changes: nodes that fall ill and recover, that are first heard, forgotten, or moved."""
    draw = Random(seed)
    settings = Settings(modes=(ModeSetting(mode=draw.choice((Mode.AUTO, Mode.OBSERVE))),), ask_jobs=False)
    whole = shipped_pack(settings, where(draw))
    whole = replace(whole, runbooks=tuple(replace(one, every_s=0) for one in whole.runbooks))
    story, at = Story(whole, heals=draw.random() < 0.5), 10.0
    compared = 0
    for _ in range(25):
        at += draw.choice((0.5, 5.0, 60.0, 400.0, 1500.0))
        if draw.random() < 0.1:
            story.say(at, "forget", node=draw.choice(NODES))
        else:
            move(story, draw, at)
        story.run(at)
        ctx, fresh = story.engine.look(), anew(story.engine)
        for of in [of for of, counting in ctx.compiled.spreads.items() if len(counting) > 1]:
            kept = seen(reached.kept(ctx, of))
            compared += len(kept["facts"])
            assert of not in fresh.index.spreads
            assert kept == seen(reached.kept(fresh, of))
    assert compared
