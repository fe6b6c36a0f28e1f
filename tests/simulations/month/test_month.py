"""A month in CI: what gpuward reaches beside what sites do without it, and the safety laws by the oracles of tests/laws."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simulations.month import profile, report
from simulations.month.draw import draw
from simulations.month.engine_fleet import EngineFleet
from simulations.month.play import play
from tests.months.judge import overheard
from tests.shipped import shipped_pack

LLAMA = profile.load("llama3-54d")
NODES = 256
SEEDS = (1, 2, 3)
GPUWARD = Path(sys.executable).parent / "gpuward"


@functools.cache
def found(seed: int) -> dict[str, Any]:
    played = play(draw(LLAMA, nodes=NODES, seed=seed), shipped_pack())
    return report.data(played.month, played.tallies, played.summaries)


@functools.cache
def policies(seed: int) -> dict[str, dict[str, Any]]:
    return {policy["policy"]: policy for policy in found(seed)["policies"]}


def total(policy: str, *keys: str) -> float:
    """Over all seeds."""
    whole = 0.0
    for seed in SEEDS:
        value: Any = policies(seed)[policy]
        for key in keys:
            value = value[key]
        whole += value
    return whole


def test_gpuward_is_nearly_as_good_as_the_ideal() -> None:
    """Of what the ideal does not lose, it loses at most a fifth of what alerting loses, and half of drain and reboot."""
    ideal = total("the ideal", "node_hours_lost")
    beyond = {name: total(name, "node_hours_lost") - ideal for name in policies(1)}
    assert beyond["gpuward"] <= 0.2 * beyond["alerting only"]
    assert beyond["gpuward"] <= 0.5 * beyond["drain and reboot"]
    assert beyond["alerting only"] < beyond["people alone"]


def test_nothing_needless_is_done_and_no_node_returned_broken() -> None:
    """At most one needless act in a thousand, none under a hold; a script that reboots for everything does otherwise."""
    acts = total("gpuward", "actions", "all")
    assert acts > 200
    assert total("gpuward", "actions", "needless") <= acts / 1000
    assert total("gpuward", "actions", "under_hold") == 0
    assert total("gpuward", "returned_broken") == 0
    assert total("gpuward", "actions", "harmful") == 0
    assert total("drain and reboot", "returned_broken") > 0


def test_people_are_needed_only_where_a_runbook_says_so() -> None:
    """The goal is 99 % of what needs no hands. It is missed, and why is known: the restart of a hung node waits for an
    approval, and the ladders of a GPU's faults end with a reboot where only a power cycle would help.
    """
    known = {"node-hung", "node-dark", "gpu-gsp-timeout", "gpu-engine-hang", "nvlink-down", "driver-hung"}
    for seed in SEEDS:
        month = draw(LLAMA, nodes=NODES, seed=seed)
        fleet = EngineFleet(shipped_pack(), month)
        fleet.run(month.days * 86400)
        stories = [story for story in fleet.world.close().stories.values() if story.people]
        for story in stories:
            others = [
                one for one in stories if one is not story and set(one.case.nodes) & set(story.case.nodes)
            ]
            # Or it comes while people are at work on its node for another one.
            at_work = any(
                0 <= story.case.at_s - one.case.at_s <= one.case.hands_s + 4 * 86400 for one in others
            )
            assert not story.case.remote or story.case.kind.name in known or at_work, story
        needed = found(seed)["people_needed"]
        handled = policies(seed)["gpuward"]["faults"]
        assert sum(row["faults"] for row in needed) == handled["without_hands"] - handled["without_people"]
        assert all(row["why"] for row in needed)
    share = total("gpuward", "faults", "without_people") / total("gpuward", "faults", "without_hands")
    assert share >= 0.85


def test_every_fault_of_a_node_is_seen_and_ends_or_waits_for_hands() -> None:
    """But for silent ones, which nobody sees but their job."""
    month = draw(LLAMA, nodes=NODES, seed=2)
    fleet = EngineFleet(shipped_pack(), month)
    fleet.run(month.days * 86400)
    for story in fleet.world.close().stories.values():
        case = story.case
        if case.kind.benign or case.kind.late or not story.begun:
            continue
        assert story.detected_s is not None, case
        assert story.healed_s is not None or case.at_s > (month.days - 15) * 86400, case


def test_people_give_back_what_is_well() -> None:
    """Three of Delta's nodes have half of its faults: they are kept out of service as lemons, until people say that they are
    well. They look after minutes; so nodes that are well are out of service for one hour in two hundred at most.
    """
    month = draw(profile.load("delta-a100"), seed=1)
    fleet = EngineFleet(shipped_pack(), month)
    fleet.run(month.days * 86400)
    assert any(one.cause == "lemon-node" for one in fleet.timeline.incidents.values())
    assert fleet.world.close().well_out_s <= len(month.nodes) * month.days * 86400 / 200


@pytest.mark.parametrize("name", profile.shipped())
def test_random_months_of_every_profile_break_no_law(name: str) -> None:
    """The watcher stops a month at the first violation. `make months` plays more of them."""
    for seed in (40, 41):
        month = draw(profile.load(name), nodes=96, days=10, seed=seed)
        fleet = EngineFleet(shipped_pack(), month)
        fleet.run(month.days * 86400)
        assert not any(act.hold for act in fleet.world.close().acts)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_oracles_of_the_random_stories_find_nothing(seed: int) -> None:
    """Every law that shows with a moment, through the whole month."""
    month = draw(LLAMA, nodes=NODES, seed=seed)
    engine = overheard(month, shipped_pack())
    EngineFleet(shipped_pack(), month, engine).run(month.days * 86400)
    assert len(engine.cell.runs) > 30
    assert engine.found == []


def printed(*args: str, salt: str) -> bytes:
    env = os.environ | {"PYTHONHASHSEED": salt}
    done = subprocess.run([GPUWARD, "simulate", *args], capture_output=True, check=True, env=env)
    return done.stdout


def test_the_same_seed_gives_the_same_bytes() -> None:
    """In another process, with another order of hashes; and another seed gives others."""
    args = ("llama3-54d", "--nodes", "64", "--days", "20", "--json", "--seed")
    once = printed(*args, "5", salt="1")
    assert once == printed(*args, "5", salt="2")
    assert once != printed(*args, "6", salt="1")
    assert json.loads(once)["seed"] == 5


def test_the_page_fits_a_hundred_columns() -> None:
    """And says what the goals are, and what the model leaves out."""
    lines = list(report.page(found(1), 100))
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    for part in (
        "llama".title(),
        "arXiv 2407.21783",
        "drain",
        "the ideal",
        "MISSED",
        "reached",
        "Left out: ",
    ):
        assert part in text


def test_all_profiles_are_listed_and_an_unknown_one_is_an_error() -> None:
    """Exit status 2, with the names of those that there are."""
    assert b"rsc-1" in printed("--list", salt="0")
    done = subprocess.run([GPUWARD, "simulate", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "llama3-54d" in done.stderr
