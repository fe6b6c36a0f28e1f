"""Spares and idle nodes of a pool: counted, told when they last, and not again for each job that comes and goes. No I/O."""

from dataclasses import replace

import pytest

from agent.contract.errors import ConfigError
from agent.contract.messages import Severity
from brain.actions import slurm_witness
from brain.actions.spares import SparePool, counted
from brain.actions.witness import AGAIN_S, SPARES_S, NodeSaid, Spares, Witness
from brain.core.inputs import Reported
from brain.core.pack import scheduler_kinds

KINDS = {kind.name: kind for kind in scheduler_kinds.KINDS}
NOW_S = 1e9
FEW = Spares(pool="h100", ready=2, wanted=3, of=30)
ENOUGH = replace(FEW, ready=3)
IDLE = NodeSaid(node="n1", idle=True)
BUSY = replace(IDLE, idle=False)


def told(reports: list[Reported]) -> list[tuple[str, str, object]]:
    for one in reports:
        assert set(one.data) == {field.name for field in KINDS[one.kind].fields}
    return [(one.kind, one.node, one.data["active"]) for one in reports]


def test_what_is_a_spare() -> None:
    """Idle nodes of the pool without a fault; drained ones and those of other pools are none; a share of a node is one."""
    said = [NodeSaid(node=f"h100-{n}", idle=n < 4, out=n > 25) for n in range(29)] + [
        NodeSaid(node="a100-1", idle=True)
    ]
    found = counted("h100", SparePool(nodes="h100-*"), said, {"h100-3", "h100-9", "a100-1"})
    assert found == Spares(pool="h100", ready=3, wanted=3, of=29, ill=("h100-3",), out=3)
    assert counted("h100", SparePool(nodes="h100-*", share=0.5), said[:1], ()).wanted == 1
    assert counted("none", SparePool(nodes="b200-*"), said, ()) == Spares(
        pool="none", ready=0, wanted=0, of=0
    )


def test_a_short_supply_is_told_when_it_lasts_and_over_when_that_lasts() -> None:
    """Jobs that end and begin on the border are no news; none left at all is."""
    watch, at = Witness("t"), NOW_S
    for found in (FEW, ENOUGH, FEW, ENOUGH) * 5:
        assert watch.spares(found, at) == []
        at += SPARES_S - 1
    assert watch.spares(FEW, at) == []
    assert told(watch.spares(FEW, at + SPARES_S)) == [("scheduler.spares", "", True)]
    at += SPARES_S
    assert watch.spares(replace(FEW, ready=1), at + 1) == []
    assert told(watch.spares(replace(FEW, ready=0), at + 2)) == [("scheduler.spares", "", True)]
    for found in (ENOUGH, FEW) * 3:
        at += SPARES_S / 2
        assert all(one.data["active"] for one in watch.spares(found, at))
    assert all(one.data["active"] for one in watch.spares(ENOUGH, at + 1))
    assert told(watch.spares(ENOUGH, at + 1 + SPARES_S)) == [("scheduler.spares", "", False)]


def test_two_pools_are_two_facts() -> None:
    """Each begins and ends by itself."""
    watch, other = Witness("t"), replace(FEW, pool="a100")
    for pool in (FEW, other):
        watch.spares(pool, NOW_S)
    reports = watch.spares(FEW, NOW_S + SPARES_S) + watch.spares(other, NOW_S + SPARES_S)
    assert [one.data["pool"] for one in reports] == ["h100", "a100"]
    assert len({one.id for one in reports}) == 2
    (end,) = [*watch.spares(ENOUGH, NOW_S + 700), *watch.spares(ENOUGH, NOW_S + 700 + SPARES_S)]
    assert (end.data["pool"], end.severity) == ("h100", Severity.INFO)


def test_the_next_leader_ends_what_the_first_has_told() -> None:
    """Of spares as of idle nodes: it goes on from the log, and tells nothing twice."""
    first, second = Witness("t", idle_after_s=600), Witness("t", idle_after_s=600)
    first.spares(FEW, NOW_S)
    first.nodes([IDLE], NOW_S)
    reports = first.spares(FEW, NOW_S + 600) + first.nodes([IDLE], NOW_S + 600)
    assert told(reports) == [("scheduler.spares", "", True), ("scheduler.idle", "n1", True)]
    for one in reports:
        second.learn(one, NOW_S + 600)
    assert second.spares(FEW, NOW_S + 610) == second.nodes([IDLE], NOW_S + 610) == []
    assert told(second.nodes([BUSY], NOW_S + 620)) == [("scheduler.idle", "n1", False)]
    assert second.spares(ENOUGH, NOW_S + 620) == []
    assert told(second.spares(ENOUGH, NOW_S + 620 + SPARES_S)) == [("scheduler.spares", "", False)]


def test_a_node_is_idle_when_it_has_been_so_for_a_while() -> None:
    """A job between starts the time anew; it ends with the next job at once; while it lasts it is told each half hour."""
    watch = Witness("t", idle_after_s=600)
    assert (
        watch.nodes([IDLE], NOW_S)
        == watch.nodes([IDLE], NOW_S + 599)
        == watch.nodes([BUSY], NOW_S + 599)
        == []
    )
    assert watch.nodes([IDLE], NOW_S + 601) == watch.nodes([IDLE], NOW_S + 1200) == []
    (first,) = watch.nodes([IDLE], NOW_S + 1201)
    assert (first.data["active"], first.data["idle_s"]) == (True, 600.0)
    assert watch.nodes([IDLE], NOW_S + 1300) == []
    assert told(watch.nodes([IDLE], NOW_S + 1201 + AGAIN_S)) == [("scheduler.idle", "n1", True)]
    assert told(watch.nodes([BUSY], NOW_S + 3100)) == [("scheduler.idle", "n1", False)]
    assert Witness("t").nodes([IDLE], NOW_S) == [], "not where nobody wants it"


def test_each_beginning_and_end_has_an_id_of_its_own() -> None:
    """Idle twice within a minute: the log takes equal ids for one message, and would drop the second end."""
    watch = Witness("t", idle_after_s=5)
    ids = [
        one.id
        for turn in range(3)
        for step, node in enumerate((IDLE, IDLE, BUSY))
        for one in watch.nodes([node], NOW_S + 20 * turn + 6 * step)
    ]
    assert len(ids) == len(set(ids)) == 6


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"spares": {"x": {"nodes": "*"}}}, "spares: needs states_every_s"),
        ({"idle_after_s": 600}, "idle_after_s: needs states_every_s"),
        ({"states_every_s": 30, "spares": {"a:b": {"nodes": "*"}}}, "a pool's name has letters"),
        ({"states_every_s": 30, "spares": {"x": {"nodes": "*", "share": 10}}}, "spares.x.share"),
        ({"states_every_s": 30, "spares": {"x": {"node": "*"}}}, "spares.x"),
    ],
)
def test_what_cannot_be_counted_is_refused(more: dict[str, object], says: str) -> None:
    """With the key, when the brain starts."""
    with pytest.raises(ConfigError, match=says):
        slurm_witness.listeners(
            {"t": {"type": "slurm", **more}},
            put=lambda _: None,
            note=lambda _, __: None,
            leads=lambda: True,
            known=lambda: (),
        )
