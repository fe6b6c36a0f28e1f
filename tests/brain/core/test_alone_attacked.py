"""Where a node must not be restarted without people, although much speaks for it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent.contract.messages import Severity
from brain.core.effects import Effect
from brain.core.inputs import Input, NodeState, PackLoaded, Reported
from brain.core.pack.spec import Mode, ModeSetting, Place, Settings
from tests.brain.core.test_alone import AFTER_S, FALLS_SILENT, RESTART, SHIPPED, Site

DAY_S = 86_400.0


@pytest.mark.parametrize("other", ["", "batch"])
def test_only_the_scheduler_that_has_lost_it_knows_what_runs_there(other: str) -> None:
    """One that never had the node has no job there either; nor is one that is configured no more a witness."""
    site = Site()
    site.answered_by = other
    site.silent()
    site.lost(400)
    site.run(5000)
    assert site.restarts() == []
    assert "it is not train that has answered" in site.wanted()
    site.answered_by = "train"
    site.run(6000)
    assert site.restarts() == ["n1"]


def test_two_schedulers_that_disagree_are_no_two_witnesses() -> None:
    """One hears the node; the other one, which is not asked, goes on saying that it does not."""
    site = Site()
    site.silent()
    site.lost(400)
    site.lost(500, active=False)
    for at in (600, 2400, 4200):
        site.time.feed(
            Reported(
                id=f"scheduler:batch:n1:scheduler.lost:{at}",
                source="scheduler",
                node="n1",
                kind="scheduler.lost",
                component="node",
                severity=Severity.WARNING,
                data={"active": True, "scheduler": "batch", "text": "NOT_RESPONDING"},
            ),
            at,
        )
    site.run(9000)
    assert site.restarts() == []


class SlowlyBooting(Site):
    """Its nodes need most of an hour from a restart until they are heard."""

    BOOTS_S = 2400.0

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        for at, given in super()._answer(effect, now):
            yield (at + self.BOOTS_S if isinstance(given, NodeState) else at), given


def test_a_node_that_boots_slowly_is_not_switched_off_meanwhile() -> None:
    """The site has said for how long a server may be silent by itself: that holds for our own restart, too."""
    site = SlowlyBooting(restart_lost_nodes_s=3600.0)
    site.silent()
    site.lost(400)
    site.run(9000)
    power = [action for _, action in site.actions() if action.startswith("bmc.") and action != "bmc.evidence"]
    assert power == [RESTART]
    assert [one.state for one in site.incidents("node-unreachable")] == ["closed"]


def test_a_shorter_wait_counts_for_what_waits() -> None:
    """A new configuration: nobody waits for days for what the site does not want any more."""
    site = Site(restart_lost_nodes_s=7 * DAY_S)
    site.silent()
    site.lost(400)
    site.run(2000)
    assert "once n1 has been silent for" in site.held()
    settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),), ask_jobs=True, restart_lost_nodes_s=AFTER_S)
    site.time.feed(PackLoaded(id="pack-2", pack=replace(SHIPPED, version="new", settings=settings)), 2001)
    site.run(2001 + 700)
    assert site.restarts() == ["n1"]


def test_the_wish_that_is_taken_back_counts_for_what_waits() -> None:
    """Then people are asked, and not in days."""
    site = Site(restart_lost_nodes_s=7 * DAY_S)
    site.silent()
    site.lost(400)
    settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),), ask_jobs=True)
    site.time.feed(PackLoaded(id="pack-2", pack=replace(SHIPPED, version="new", settings=settings)), 2001)
    site.run(2001 + 700)
    assert "wake-node is in approve mode" in site.wanted()


def test_a_mode_that_people_set_is_named_as_the_reason() -> None:
    """And nothing else, since nothing else would help."""
    site = Site(mode=Mode.APPROVE)
    site.silent()
    site.run(300)
    assert "wake-node is in approve mode (gate mode)" in site.wanted()


def one_after_the_other(site: Site) -> None:
    """Eight of them fall silent within half an hour, to both witnesses."""
    for number in range(8):
        node, at = f"n{number + 1}", FALLS_SILENT + 240 * number
        site.time.feed(NodeState(id=f"{node}-gone", node=node, alive=False, silent_s=15), at)
        site.time.feed(
            Reported(
                id=f"scheduler:train:{node}:scheduler.lost",
                source="scheduler",
                node=node,
                kind="scheduler.lost",
                component="node",
                severity=Severity.WARNING,
                data={"active": True, "scheduler": "train", "text": "NOT_RESPONDING"},
            ),
            at + 300,
        )
    site.run(4 * 3600)


def test_a_leaf_of_the_control_network_that_dies_slowly() -> None:
    """Law 6: they are behind one leaf switch of the topology, so it is the cause, and none of them is restarted."""
    places = {f"n{number + 1}": Place(leaf=f"l{number // 16}") for number in range(200)}
    site = Site(nodes=200, places=places, restart_lost_nodes_s=1800.0)
    one_after_the_other(site)
    assert site.restarts() == []
    assert [page for page in site.time.pages if "leaf/l0" in page.subject.scope]


def test_what_nothing_says_that_they_share_is_restarted_no_faster_than_anything_else() -> None:
    """`same_cause_nodes`: five of them, then a person or an hour's pause."""
    site = Site(nodes=200, restart_lost_nodes_s=1800.0)
    one_after_the_other(site)
    began = [record.at for run in site.time.runs.values() for record in run.steps if record.action == RESTART]
    assert began
    assert all(sum(at <= other < at + 3600 for other in began) <= 5 for at in began)
    assert any("these belong together" in note for note in site.notes())
