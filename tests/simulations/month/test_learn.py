"""A profile that is learnt: a simulated month's log gives back the rates from which it was drawn, and says what it cannot."""

import functools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from brain.adapters.log_file import LogFileWriter, LogName
from brain.adapters.readmodel import ReadModel
from brain.cli.backtest import recorded, rule_sets
from simulations.month import learn, learn_read, learn_write, profile
from simulations.month.draw import Month, draw
from simulations.month.engine_fleet import EngineFleet
from simulations.month.learn import FEWEST, Learnt, SiteHistory
from simulations.month.log import LoggedEngine
from simulations.month.profile import Profile
from simulations.simulate import simulate
from tests.shipped import shipped_pack

LLAMA = profile.load("llama3-54d")
# Faults come so often that a month of a few nodes has enough of each kind.
BUSY = LLAMA.model_copy(update={"faults_per_1000_node_days": 12.0})


@functools.cache
def shapes() -> dict[str, dict[str, float]]:
    return learn.signatures(shipped_pack(), LLAMA)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Month, EngineFleet]:
    """The log of a month that is drawn from a profile thrice as bad as the default, and the fleet that has lived it."""
    file = tmp_path_factory.mktemp("learn") / "month.log.gz"
    month = draw(BUSY, nodes=320, days=40, seed=11)
    with file.open("wb") as sink:
        engine = LoggedEngine(sink.write, seed=11, packed=True)
        fleet = EngineFleet(shipped_pack(), month, engine)
        fleet.run(month.days * 86400)
        engine.finish()
    return file, month, fleet


@pytest.fixture(scope="module")
def learnt(busy: tuple[Path, Month, EngineFleet]) -> Learnt:
    return learn.learn(learn_read.read(busy[0]), shapes(), LLAMA)


def begun(busy: tuple[Path, Month, EngineFleet]) -> Counter[str]:
    """How many faults of each kind began."""
    return Counter(story.case.kind.name for story in busy[2].world.tally.stories.values() if story.begun)


def test_the_log_of_a_month_is_whole_and_replays_to_the_same_incidents(
    busy: tuple[Path, Month, EngineFleet],
) -> None:
    """So backtests can be made of simulated months, too."""
    file, month, fleet = busy
    site = recorded.site_of(file)
    assert site is not None
    assert len(site.places) == len(month.nodes)
    found = recorded.backtest(file, rule_sets.RuleSet(source="its own"), site, observe=False)
    assert found.is_whole()
    told = learn.roots(fleet.timeline.incidents.values(), learn.quiet_of(fleet))
    assert Counter(cause for cause, _ in told) == Counter(
        one.cause for one in found.outcome.incidents if not learn.asked_for(one.cause)
    )


def test_what_was_drawn_is_learnt_within_what_chance_allows(
    busy: tuple[Path, Month, EngineFleet], learnt: Learnt
) -> None:
    """Of groups of kinds that gpuward can tell apart: within three standard deviations and a tenth."""
    there, groups = begun(busy), dict[tuple[str, ...], list[str]]()
    for kind, shape in shapes().items():
        if shape:
            groups.setdefault((max(shape, key=lambda cause: shape[cause]),), []).append(kind)
    checked = 0
    faults = {one.kind: one.faults for one in learnt.kinds}
    for kinds in groups.values():
        drawn = sum(there[kind] for kind in kinds)
        if drawn < 8:
            continue
        checked += 1
        assert sum(faults[kind] for kind in kinds) == pytest.approx(
            drawn, abs=3 * math.sqrt(drawn) + 0.1 * drawn
        ), kinds
    assert checked >= 4
    visible = [kind for kind, shape in shapes().items() if shape]
    assert sum(faults.values()) == pytest.approx(sum(there[kind] for kind in visible), rel=0.15)


def test_the_tail_of_the_nodes_is_learnt(learnt: Learnt) -> None:
    """A twentieth of them has half of the faults; three hundred nodes tell it roughly."""
    assert learnt.tail is not None
    assert 0.3 <= learnt.tail <= 0.65


def test_even_nodes_have_no_tail() -> None:
    """Twenty nodes with ten faults each: a twentieth has a twentieth. Too few faults say nothing."""
    leaf = {f"n{n}": "l" for n in range(200)}
    even = [("gpu-lost", f"n{n % 200}") for n in range(2000)]
    found = learn.learn(SiteHistory(leaf=leaf, rack={}, days=30, incidents=even), shapes(), LLAMA)
    assert found.tail == pytest.approx(0.05, abs=0.02)
    few = learn.learn(SiteHistory(leaf=leaf, rack={}, days=30, incidents=even[:40]), shapes(), LLAMA)
    assert few.tail is None


def test_what_is_too_rare_or_not_seen_is_the_defaults_and_says_so() -> None:
    """Few faults in a short time say nothing; none in a long time say a lot; a strange cause is left out by name."""
    leaf = {f"n{n}": "l" for n in range(100)}
    incidents = [("gpu-lost", "n1")] * 9 + [("disk-failing", "n2")] * 2 + [("lemon-node", "n3")]
    short = learn.learn(SiteHistory(leaf=leaf, rack={}, days=10, incidents=incidents), shapes(), LLAMA)
    kinds = {one.kind: one for one in short.kinds}
    assert kinds["gpu-off-bus"].rate == pytest.approx(9)  # 9 in 1000 node-days
    assert kinds["gpu-off-bus"].why_default == ""
    assert "too rare in 1,000 node-days: 2.0 seen" in kinds["disk-broken"].why_default
    assert kinds["disk-broken"].rate == kinds["disk-broken"].default
    assert "does not see" in kinds["gpu-silent"].why_default
    assert dict(short.strange) == {"lemon-node": 1}
    long = learn.learn(SiteHistory(leaf=leaf, rack={}, days=3650, incidents=incidents), shapes(), LLAMA)
    hung = {one.kind: one for one in long.kinds}["driver-hung"]
    assert hung.why_default == ""
    assert hung.rate == pytest.approx(0, abs=0.001)


def test_kinds_that_look_alike_keep_the_ratio_of_the_default() -> None:
    """A node that is silent tells not why."""
    leaf = {f"n{n}": "l" for n in range(100)}
    seen = SiteHistory(
        leaf=leaf, rack={}, days=100, incidents=[("node-unreachable", f"n{n % 100}") for n in range(120)]
    )
    found = {one.kind: one for one in learn.learn(seen, shapes(), LLAMA).kinds}
    assert found["node-hung"].faults / found["node-restarts"].faults == pytest.approx(
        found["node-hung"].default / found["node-restarts"].default, rel=0.05
    )


def test_the_profile_that_is_printed_can_be_simulated(
    busy: tuple[Path, Month, EngineFleet], tmp_path: Path
) -> None:
    """And has the rates that were learnt; its fleet is the site's."""
    printed = CliRunner().invoke(simulate, ["--learn", str(busy[0])])
    assert printed.exit_code == 0, printed.output
    file = tmp_path / "ours.yaml"
    file.write_text(printed.output, encoding="utf-8")
    given = profile.load(str(file))
    assert given.fleet.nodes == 320
    assert given.fleet.nodes_per_leaf == LLAMA.fleet.nodes_per_leaf
    assert given.fleet.days == pytest.approx(40, abs=0.5)
    rates, shape = learn.rates(given), shapes()
    seen = {kind: rate for kind, rate in learn.rates(BUSY).items() if shape[kind]}
    assert sum(rates[kind] for kind in seen if kind in rates) == pytest.approx(sum(seen.values()), rel=0.25)
    assert "# as in llama3-54d: gpuward does not see it by itself" in printed.output
    assert given.holds.per_1000_node_days == pytest.approx(LLAMA.holds.per_1000_node_days, abs=0.5)
    played = CliRunner().invoke(simulate, [str(file), "--nodes", "16", "--days", "2"])
    assert played.exit_code == 0, played.output
    data: dict[str, Any] = json.loads(
        CliRunner().invoke(simulate, ["--learn", str(busy[0]), "--json"]).output
    )
    assert Profile.model_validate(data["profile"]) == given
    assert data["fewest"] == FEWEST


def test_a_read_model_tells_the_same_rates(
    busy: tuple[Path, Month, EngineFleet], learnt: Learnt, tmp_path: Path
) -> None:
    """But not how many nodes there are."""
    file, fleet = tmp_path / "history.db", busy[2]
    model = ReadModel(file)
    notes = [
        (1, note) for note in fleet.timeline.notes if note.kind in ("incident.closed", "incident.opened")
    ]
    model.write(1, notes, fleet.timeline.incidents.values())
    model.close()
    with pytest.raises(ConfigError, match="add --nodes N"):
        learn_read.read(file)
    seen = learn_read.read(file, nodes=320)
    found = learn.learn(seen, shapes(), LLAMA)
    assert [one.faults for one in found.kinds] == pytest.approx(
        [one.faults for one in learnt.kinds], rel=0.02, abs=0.2
    )
    text = "\n".join(learn_write.yaml_lines(found, LLAMA, source="history.db", name="llama3-54d"))
    assert "holds: {per_1000_node_days: 0.5, hours: 4}  # as in llama3-54d" in text


def test_what_is_no_log_and_what_is_too_short_is_an_error(tmp_path: Path) -> None:
    """With the file's name."""
    text = tmp_path / "text"
    text.write_text("no log\n")
    with pytest.raises(ConfigError, match=r"text: is neither"):
        learn_read.read(text)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        learn_read.read(tmp_path / "none")
    empty = tmp_path / "empty.log"
    with empty.open("wb") as sink:
        LogFileWriter(sink.write, LogName(cell="c", log="l"), 1, packed=False).finish()
    with pytest.raises(ConfigError, match="less than half a day"):
        learn_read.read(empty)
