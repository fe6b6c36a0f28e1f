"""Where a node must not be restarted without people, although much speaks for it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent.contract.messages import Severity
from brain.core.effects import Effect
from brain.core.inputs import Input, NodeState, PackLoaded, Reported
from brain.core.pack.spec import Mode, ModeSetting, Settings
from tests.brain.core.test_alone import AFTER_S, RESTART, SHIPPED, Site

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
