"""What is drawn: rates, heavy tails, and the luck of each fault, once for all policies."""

from collections import Counter

import pytest

from simulations.faults import Fix
from simulations.month import profile
from simulations.month.draw import NOISE, draw
from simulations.month.kinds import Cured

LLAMA = profile.load("llama3-54d")


def test_the_same_seed_gives_the_same_month() -> None:
    """And another seed another one."""
    assert draw(LLAMA, nodes=256, seed=7) == draw(LLAMA, nodes=256, seed=7)
    assert draw(LLAMA, nodes=256, seed=8).cases != draw(LLAMA, nodes=256, seed=7).cases


def test_faults_come_as_often_as_the_profile_says() -> None:
    """419 in Llama 3's 54 days on average, and as much noise as is stated; within four standard deviations."""
    months = [draw(LLAMA, seed=seed) for seed in range(10)]
    real = sum(case.cause != NOISE for month in months for case in month.cases)
    assert real == pytest.approx(4191, abs=4 * 4191**0.5)
    noise = 10 * 6 * 2048 * 54 / 1000
    assert sum(case.noise for month in months for case in month.cases) == pytest.approx(
        noise, abs=4 * noise**0.5
    )
    causes = Counter(case.cause for month in months for case in month.cases)
    assert causes["gpu_hbm3"] == pytest.approx(720, abs=4 * 720**0.5)


def test_a_twentieth_of_the_nodes_has_half_of_the_faults() -> None:
    """Over many faults; the tail is that of the profile."""
    busy = LLAMA.model_copy(update={"faults_per_1000_node_days": 4000.0, "noise_per_1000_node_days": {}})
    month = draw(busy, nodes=2000, days=10, seed=5)
    counts = Counter(case.nodes[0] for case in month.cases if not case.kind.reach)
    most = sum(count for _, count in counts.most_common(100))
    assert most / sum(counts.values()) == pytest.approx(0.5, abs=0.06)


def test_what_a_gentle_remedy_ends_a_hard_one_ends_too() -> None:
    """One draw decides all remedies of a fault; each ends as many as its kind says."""
    cases = [
        case for seed in range(30) for case in draw(LLAMA, seed=seed).cases if case.kind.name == "gpu-off-bus"
    ]
    for case in cases:
        if Fix.REBOOT in case.fixes:
            assert Fix.CYCLE_POWER in case.fixes
    cycled = sum(Fix.CYCLE_POWER in case.fixes for case in cases) / len(cases)
    assert cycled == pytest.approx(0.75, abs=0.05)


def test_a_leafs_fault_hits_all_of_its_nodes() -> None:
    """And only those."""
    month = draw(LLAMA, nodes=256, days=300, seed=1)
    wide = [case for case in month.cases if case.kind.reach]
    assert wide
    for case in wide:
        assert {month.places[node].leaf for node in case.nodes} == {month.places[case.nodes[0]].leaf}
        assert len(case.nodes) == 16


def test_whoever_needs_no_hands_is_known() -> None:
    """A fault without a remedy that ends it needs hands, unless it passes, or is its job's."""
    for case in draw(LLAMA, nodes=512, seed=2).cases:
        assert case.remote == (case.kind.cured is not Cured.HANDS or bool(case.fixes))
