"""Rules and runbooks as the API shows them: the shipped ones, and what the history counts of them."""

from pathlib import Path

import pytest

from agent.contract.actions.spec import Disrupts
from brain.adapters.readmodel import ReadModel
from brain.console import shapes
from brain.console.pack import show
from brain.console.pack.figures import KEPT_S, Counting, Figures, count
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Mode, ModeSetting, Verify
from brain.core.state import IncidentState, ModeOverride
from tests import shipped
from tests.brain.world import GPU, Story, history_of

EMPTY = Figures(rules={}, runbooks={})


@pytest.fixture
def story() -> Story:
    """A link that is healed, a GPU that is not, and what ann says of modes."""
    found = Story()
    found.event(10, "link.state", "link/eth0", up=False)
    found.say(12, "mode", runbook="bounce", mode="approve")
    found.say(14, "mode", runbook="b*", mode="auto", nodes="n1")
    found.run(40)
    found.event(50, "gpu.xid", GPU, code=79)
    found.run(200)
    return found


@pytest.fixture
def model(tmp_path: Path, story: Story) -> ReadModel:
    """Its history."""
    return history_of(story, tmp_path / "history")


def test_figures_are_those_of_the_story(story: Story, model: ReadModel) -> None:
    """How often, how many are open, and how long it took until a verified run had healed it."""
    assert story.engine.state.pack is not None
    found = {one.name: show.rule(one, count(model), {}) for one in story.engine.state.pack.rules}
    (link,) = story.incidents("link-down")
    (run,) = [run for run in story.time.runs.values() if run.incident == link.id]
    assert link.state is IncidentState.CLOSED
    own = found["link-down"]
    assert (own.fired, own.open, own.healed) == (1, 0, 1)
    assert own.healed_in_s == pytest.approx(run.ended_at - link.opened_at)
    assert own.last_at == shapes.iso(link.opened_at)
    assert (found["gpu-lost"].fired, found["gpu-lost"].open, found["gpu-lost"].healed_in_s) == (1, 1, None)
    assert (found["sm-moved"].fired, found["sm-moved"].last_at) == (0, None)
    books = {
        one.name: show.runbook(one, story.engine.state.pack, count(model), {})
        for one in story.engine.state.pack.runbooks
    }
    assert (books["bounce"].runs, books["bounce"].succeeded, books["bounce"].under_way) == (1, 1, 0)
    assert books["bounce"].healed_in_s == pytest.approx(run.ended_at - run.started_at)
    assert (books["gpu-lost"].exhausted, books["gpu-lost"].rules) == (1, ["gpu-lost", "gpu-lost-by-job"])


def test_a_mode_says_who_set_it_and_when(story: Story, model: ReadModel) -> None:
    """The configuration's first; a mode that was set twice has the time of the last."""
    state = story.engine.state
    assert state.pack is not None
    (book,) = [one for one in state.pack.runbooks if one.name == "bounce"]
    site = [ModeSetting(mode=Mode.OBSERVE), ModeSetting(mode=Mode.AUTO, runbook="other")]
    modes: list[ModeSetting | ModeOverride] = [*site, *state.modes]
    found = show.runbook_in_full(book, state.pack, count(model), {}, modes, model.modes_said()).modes
    assert [(one.runbook, one.nodes, one.mode, one.who, one.at) for one in found] == [
        ("*", "*", "observe", "", None),
        ("bounce", "*", "approve", "ann", shapes.iso(12)),
        ("b*", "n1", "auto", "ann", shapes.iso(14)),
    ]


def test_all_shipped_rules_and_runbooks_are_shown() -> None:
    """Each with its text in both languages; each rung says no less than its action about what it disrupts."""
    pack = shipped.shipped_pack()
    worse = list(Disrupts)
    for rule in pack.rules:
        found = show.rule_in_full(rule, pack, EMPTY, {})
        assert all((found.because, found.cause_text.en, found.cause_text.zh, found.todo.en, found.todo.zh)), (
            rule.name
        )
        assert all(one.summary for one in found.symptoms), rule.name
    for book in pack.runbooks:
        shown = show.runbook_in_full(book, pack, EMPTY, {}, (), {})
        assert [one.name for one in shown.rungs] == [one.name for one in book.rungs]
        for rung in (*shown.rungs, *shown.return_to_service):
            if rung.do != "page":
                assert worse.index(Disrupts(rung.disrupts)) >= worse.index(ACTIONS[rung.do].disrupts), rung
                assert rung.means, rung
                assert rung.timeout_s > 0, rung


def test_a_verification_is_a_sentence() -> None:
    """Of what, within which time, and for how long."""
    assert show.verification(None) == ""
    verify = Verify(within_s=10, for_s=3.5, gone=("a", "b"), reset_on_act=("a",))
    assert (
        show.verification(verify)
        == "a, b gone within 10 s, and then for 3.5 s; of these a must be told anew to count"
    )
    everything = show.verification(Verify(within_s=1, for_s=2, reset_on_act=("*",)))
    assert everything.startswith("all symptoms of the incident gone within 1 s")
    assert everything.endswith("of these all must be told anew to count")


def test_whoever_asks_again_within_a_minute_costs_nothing(model: ReadModel) -> None:
    """After that it is counted anew."""
    now_s = 0.0
    counting = Counting(lambda: now_s)
    first = counting.figures(model)
    now_s = KEPT_S - 1
    assert counting.figures(model) is first
    now_s = KEPT_S
    assert counting.figures(model) is not first
