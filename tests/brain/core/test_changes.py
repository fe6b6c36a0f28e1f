"""Which facts would change a verdict: the facts are then sent, and the verdict changes as it was said."""

import re

import pytest

from brain.core.pack.spans import span_text
from brain.core.pack.spec import Place
from brain.core.state import IncidentState
from brain.core.why import changes
from brain.core.why.changes import Change, Turn
from tests.brain.world import GPU, Story, pack
from tests.shipped import shipped_pack

LEAF = {f"n{number}": Place(leaf=f"l{1 + number // 9}") for number in range(1, 41)}


def told(story: Story, cause: str = "") -> list[Change]:
    """What would change the newest incident."""
    ctx = story.engine.look()
    return list(changes.of(ctx, ctx.state.incidents[story.incidents(cause)[-1].id]))


def texts(found: list[Change], turn: Turn) -> list[str]:
    """Those of one turn, in English."""
    return [one.text.en for one in found if one.turn is turn]


def test_it_ends_with_the_fact_that_is_named() -> None:
    """The clearing fact ends it; each text stands in both languages."""
    story = Story()
    story.heals = False
    story.event(1, "link.state", "link/ib0", up=False)
    story.run(4)
    found = told(story)
    assert texts(found, Turn.ENDS) == [
        "it ends when link.state with up true comes from link/n1/ib0, or nothing is told of it for 60 minutes"
    ]
    assert all(re.search("[\u4e00-\u9fff]", one.text.zh) for one in found)
    story.event(5, "link.state", "link/ib0", up=True)
    story.run(60)
    assert story.incidents("link-down")[0].state is IncidentState.CLOSED
    ctx = story.engine.look()
    assert changes.of(ctx, story.incidents("link-down")[0]) == (), "what is over does not change"


def test_what_ends_by_itself() -> None:
    """A symptom that no fact clears ends with its time to live, and one that flaps when it is calm."""
    story = Story()
    story.event(1, "ib.sm_lid")
    story.run(21)  # the log's time is that of its newest input, the hold-off's timer
    assert texts(told(story), Turn.ENDS) == [
        "it ends when nothing renews sm_moved at node/n1 for 50 seconds, or a step of a runbook ends it"
    ]
    story = Story()
    for at in range(1, 8):
        story.event(at, "link.state", "link/ib0", up=at % 2 == 0)
    story.run(20)
    assert texts(told(story, "link-flapping"), Turn.ENDS) == [
        "it ends when link_flaps at link/n1/ib0 does not change again for 52 seconds"
    ]


@pytest.mark.parametrize("already", [1, 2, 3])
def test_a_wider_cause_is_taken_when_so_many_more_show_it(already: int) -> None:
    """Exactly so many as are said, and not one less."""
    story = Story(shipped_pack(places=LEAF))
    for number in range(1, already + 1):
        story.event(number, "gpu.xid", GPU, f"n{number}", code=79, action="RESTART_BM", name="x")
    story.run(already + 5)
    (wide,) = [one for one in told(story, "gpu-lost") if one.scope == "leaf/l1"]
    assert (wide.turn, wide.nodes, wide.cause) == (Turn.WIDER, already, "shared-gpu-off-bus-leaf")
    more = wide.takes - wide.nodes
    verb = "node shows" if more == 1 else "nodes show"
    assert f"taken when {more} more {verb} gpu_off_bus within 15 minutes" in wide.text.en
    for number in range(1, more + 1):
        assert not story.incidents("shared-gpu-off-bus-leaf")
        story.event(
            20 + number, "gpu.xid", GPU, f"n{already + number}", code=79, action="RESTART_BM", name="x"
        )
        story.run(20 + number + 0.5)
    (shared,) = story.incidents("shared-gpu-off-bus-leaf")
    ends = texts(told(story, shared.cause), Turn.ENDS)
    assert len(ends) == 1
    assert ends[0].startswith("it ends when fewer than 2 nodes of leaf/l1 show gpu_off_bus (4 do now)")


def test_what_else_it_would_be() -> None:
    """Another rule that one more symptom would make match: the fact is sent, and its incident stands there."""
    story = Story(shipped_pack())
    story.event(1, "gpu.throttle", GPU, active=True, thermal=True, hardware=False)
    story.run(20)
    found = [one for one in told(story, "gpu-warm") if one.turn is Turn.OTHER and one.cause == "gpu-thermal"]
    assert found, [one.text.en for one in told(story, "gpu-warm")]
    assert (
        "it would be judged as gpu-thermal instead if gpu_thermal began at gpu/n1/0000:3b:00"
        in found[0].text.en
    )
    story.event(21, "gpu.temperature", GPU, active=True)
    story.run(400)
    assert story.incidents("gpu-thermal")


def test_a_fault_that_is_old_news_waits_for_a_fresh_fact() -> None:
    """Then it is none."""
    story = Story()
    story.event(1000, "gpu.xid", GPU, code=79, age_s=500)
    story.run(1001)
    assert len(texts(told(story), Turn.FRESH)) == 1
    story.event(1002, "gpu.xid", GPU, code=79)
    story.run(1003)
    assert not texts(told(story), Turn.FRESH)


def test_what_has_recovered_says_when_it_closes() -> None:
    """Unless it comes again."""
    story = Story(pack())
    story.event(1, "link.state", "link/ib0", up=False)
    story.run(8)
    assert story.incidents("link-down")[0].state is IncidentState.RECOVERED
    (only,) = texts(told(story), Turn.ENDS)
    assert only.startswith("it closes when nothing of it comes again for")


def test_what_has_come_back_says_when_it_really_closes() -> None:
    """A fault that comes and goes stays open longer than its pauses: so long it is said, not the delay of its rule."""
    story = Story(pack())
    story.event(1, "link.state", "link/ib0", up=False)
    story.run(300)
    story.event(400, "link.state", "link/ib0", up=False)
    story.run(500)
    one = story.incidents("link-down")[-1]
    assert (one.state, one.times) == (IncidentState.RECOVERED, 2)
    (only,) = texts(told(story), Turn.ENDS)
    closes_at = story.engine.state.timers[f"incident:{one.id}"]
    assert (
        only
        == f"it closes when nothing of it comes again for {span_text(closes_at - story.engine.state.now).en}"
    )


def test_nothing_is_said_twice() -> None:
    """Two rules of one cause would change it by the same fact: it is one line."""
    story = Story(shipped_pack())
    story.event(
        1, "filesystem.error", "disk/sda", what="unwritable", text="Aborting journal on device sda-8."
    )
    story.run(30)
    found = told(story, "filesystem-unwritable")
    assert found
    lines = [(one.turn, one.text) for one in found]
    assert all(lines.count(one) == 1 for one in lines), lines
