"""Profiles: those that gpuward comes with, and what is wrong in one of a site's own, with file, line and key."""

from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from simulations.month import profile
from simulations.month.draw import draw
from simulations.month.engine_fleet import EngineFleet
from tests.shipped import shipped_pack

GOOD = """\
title: ours
source: our own tickets
fleet: {nodes: 64, days: 30}
faults_per_1000_node_days: 4
causes:
  gpus: {count: 3, kinds: {gpu-off-bus: 1}}
"""


def loaded(tmp_path: Path, text: str) -> profile.Profile:
    (tmp_path / "ours.yaml").write_text(text, encoding="utf-8")
    return profile.load(str(tmp_path / "ours.yaml"))


@pytest.mark.parametrize("name", profile.shipped())
def test_a_shipped_profile_names_its_source_and_can_be_drawn(name: str) -> None:
    """Each quotes a paper, and a day of it has faults of several causes at its own size."""
    given = profile.load(name)
    assert "arXiv" in given.source or "NSDI" in given.source
    month = draw(given, days=5, seed=3)
    assert len({case.cause for case in month.cases}) >= 2


def test_llama_3s_profile_has_the_papers_counts() -> None:
    """Its 18 rows add up to 419 unexpected interruptions, which its rate gives again on 2,048 nodes in 54 days."""
    given = profile.load("llama3-54d")
    assert sum(cause.count for cause in given.causes.values()) == 419
    expected = given.faults_per_1000_node_days * given.fleet.nodes * given.fleet.days / 1000
    assert expected == pytest.approx(419, abs=1)


@pytest.mark.parametrize(("name", "days"), [("acme", 90), ("b200", 40), ("fire-flyer", 8)])
def test_a_small_month_of_a_profile_is_played_under_every_law(name: str, days: float) -> None:
    """gpuward's part of it, as `gpuward simulate` plays it: faults begin, and most of those that last are seen."""
    fleet = EngineFleet(shipped_pack(), draw(profile.load(name), nodes=63, days=days, seed=4))
    fleet.run(days * 86400)
    tally = fleet.world.close()
    begun = [story for story in tally.stories.values() if story.begun and not story.case.kind.benign]
    assert len(begun) >= 2
    assert sum(story.detected_s is not None for story in begun) > len(begun) / 2
    assert tally.returned_broken == 0


def test_a_small_file_is_a_profile(tmp_path: Path) -> None:
    """What it leaves away is gpuward's assumption."""
    given = loaded(tmp_path, GOOD)
    assert given.tail.share_of_faults == 0.5
    assert given.people.shift == (8, 18)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("gpu-off-bus", "gpu-of-bus"),
            r"ours\.yaml:6: causes\.gpus\.kinds\.gpu-of-bus: is no kind of fault",
        ),
        (("nodes: 64", "nodes: none"), r"ours\.yaml:3: fleet\.nodes: .*valid integer"),
        (("days: 30", "dais: 30"), r"ours\.yaml:3: fleet\.dais: Extra inputs are not permitted"),
        (("source: our own tickets\n", ""), r"ours\.yaml:1: source: Field required"),
        (("node_days: 4", "node_days: -4"), r"ours\.yaml:4: faults_per_1000_node_days: .*greater than 0"),
        (("count: 3,", ""), r"ours\.yaml:6: causes\.gpus\.count: Field required"),
        (("title: ours", "title: [ours"), r"ours\.yaml:\d: is not YAML"),
        (
            ("causes:", "noise_per_1000_node_days: {gpu-off-bus: 1}\ncauses:"),
            r"ours\.yaml:5: noise_per_1000_node_days\.gpu-off-bus: is a fault, not noise",
        ),
        (
            ("causes:", "cures: {gpu-off-bus: {pray: 1}}\ncauses:"),
            r"ours\.yaml:5: cures\.gpu-off-bus\.pray: .*should be 'reset_gpu'",
        ),
        (
            ("causes:", "jobs: {mix: [{share: 0.7}, {share: 0.7}]}\ncauses:"),
            r"ours\.yaml:5: jobs\.mix: has shares of more than all nodes",
        ),
        (
            ("causes:", "people: {shift: [18, 8]}\ncauses:"),
            r"ours\.yaml:5: people\.shift: want two hours of a day",
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_key(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    """As `FILE:LINE: KEY: what`."""
    assert change[0] in GOOD
    with pytest.raises(ConfigError, match=says):
        loaded(tmp_path, GOOD.replace(*change))


def test_a_profile_that_is_not_there_names_those_that_are() -> None:
    """By name, and by path."""
    with pytest.raises(ConfigError, match=r"there is no profile 'llama4' \(have: .*llama3-54d"):
        profile.load("llama4")
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read: No such file"):
        profile.load("nowhere.yaml")


def test_a_sites_own_cures_replace_those_of_a_kind(tmp_path: Path) -> None:
    """All of them, in the order from gentle to hard."""
    text = GOOD.replace("causes:", "cures: {gpu-off-bus: {cycle_power: 1, reboot: 0.5}}\ncauses:")
    given = loaded(tmp_path, text)
    cures = given.cures_of(profile.KINDS["gpu-off-bus"])
    assert [(fix.name, share) for fix, share in cures.items()] == [("REBOOT", 0.5), ("CYCLE_POWER", 1.0)]
