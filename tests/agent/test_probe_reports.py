"""Probes between agents: what is reported of the rounds, of paths that lose packets, are silent or have become slow."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agent.collectors.base import CollectorSetup
from agent.collectors.probes import ProbeCollector
from agent.collectors.samples_node import PeerProbes, ProbeRound
from agent.contract.messages import UnsentEvent


def rounds(
    collector: ProbeCollector,
    number: int,
    *,
    start: int = 0,
    **answered: Callable[[int], Iterable[float]] | None,
) -> list[UnsentEvent]:
    """So many rounds, ten seconds apart. Peers that begin with `f` are far."""
    found: list[UnsentEvent] = []
    for place in range(start, start + number):
        peers = tuple(
            PeerProbes(peer=peer, near=peer[0] != "f", sent=5, times_us=tuple(times(place)) if times else ())
            for peer, times in answered.items()
        )
        sample = ProbeRound(link="eth2", address="10.0.0.1", peers=peers, mono_s=10.0 * place)
        found += collector.feed(sample, 10.0 * place)
    return found


def fresh(**options: float) -> ProbeCollector:
    return ProbeCollector.of(CollectorSetup(values=options))


def well(_: int) -> list[float]:
    return [20.0, 21.0, 22.0, 25.0, 30.0]


def loses(every: int) -> Callable[[int], list[float]]:
    """One packet of each so many rounds."""
    return lambda place: well(place)[: 4 if place % every == 0 else 5]


def slow(_: int) -> list[float]:
    return [2000.0] * 5


def said(events: Iterable[UnsentEvent]) -> list[tuple[Any, ...]]:
    return [
        (one.kind, one.data["active"], one.data["near_ill"], one.data["far_ill"], one.data.get("silent"))
        for one in events
    ]


def test_a_path_that_loses_packets_is_told_with_its_figures_and_its_end() -> None:
    """A packet of five each other round is ten percent; below a quarter of the limit it is over."""
    collector = fresh()
    found = rounds(collector, 40, n2=well, n3=loses(2), f4=well)
    assert said(found) == [("probe.loss", True, "n3", "", "")]
    assert found[0].component == "link/eth2"
    assert found[0].data["lost_percent"] == pytest.approx(10.0, abs=1)
    assert (found[0].data["near"], found[0].data["far"]) == (2, 1)
    assert "n3: 10.7 % lost" in found[0].evidence
    assert said(rounds(collector, 40, start=40, n2=well, n3=well, f4=well)) == [
        ("probe.loss", False, "", "", "")
    ]


@pytest.mark.parametrize(
    "times",
    [
        well,
        loses(5),
        lambda place: [] if place in (20, 21) else well(place),
        lambda place: well(place)[: 1 if place == 25 else 5],
    ],
    ids=["nothing lost", "four percent", "a restart of the peer", "one burst"],
)
def test_what_passes_is_not_told(times: Callable[[int], list[float]]) -> None:
    """As in every fleet on every day."""
    assert rounds(fresh(), 120, n2=well, n3=times) == []


def test_a_path_without_any_answer_for_a_minute_is_silent() -> None:
    """From the first round on, or later; one answer does not end it."""
    collector = fresh()
    found = rounds(collector, 30, n2=well, f3=None)
    assert said(found) == [("probe.loss", True, "", "f3", "f3")]
    assert found[0].data["lost_percent"] == 100.0
    assert rounds(collector, 1, start=30, n2=well, f3=well) == []
    assert rounds(collector, 10, start=31, n2=well, f3=None) == []
    assert said(rounds(collector, 10, start=41, n2=well, f3=well)) == [("probe.loss", False, "", "", "")]


def test_a_path_that_has_become_slow_is_told_beside_what_was_usual() -> None:
    """Twenty microseconds that became two milliseconds; back it is over."""
    collector = fresh()
    assert rounds(collector, 60, n2=well, f3=well) == []
    found = rounds(collector, 40, start=60, n2=well, f3=slow)
    assert said(found) == [("probe.slow", True, "", "f3", None)]
    assert found[0].data["usual_us"] == pytest.approx(22.0, rel=0.05)
    assert found[0].data["median_us"] == 2000.0
    assert said(rounds(collector, 40, start=100, n2=well, f3=well)) == [("probe.slow", False, "", "", None)]


@pytest.mark.parametrize("times_us", [60.0, 400.0, 1000.0])
def test_queues_are_no_fault(times_us: float) -> None:
    """Fifty times what an idle path takes, and less than a millisecond more."""
    collector = fresh()
    rounds(collector, 60, n2=well)
    assert rounds(collector, 60, start=60, n2=lambda _: [times_us] * 5) == []


def test_what_lasts_is_told_every_ten_minutes_and_when_others_join() -> None:
    """Each time with the whole view."""
    collector = fresh()
    found = rounds(collector, 30, n2=well, n3=loses(2))
    found += rounds(collector, 120, start=30, n2=loses(2), n3=loses(2))
    assert said(found) == [
        ("probe.loss", True, "n3", "", ""), *[("probe.loss", True, "n2, n3", "", "")] * 2,
    ]  # fmt: skip


def test_a_peer_that_leaves_the_file_is_over() -> None:
    """What is not probed any more is not ill any more."""
    collector = fresh()
    rounds(collector, 30, n2=well, n3=None)
    assert said(rounds(collector, 1, start=30, n2=well)) == [("probe.loss", False, "", "", "")]


@pytest.mark.parametrize("seed", range(40))
def test_random_loss_is_told_when_it_is_twice_the_limit_and_not_when_it_is_a_tenth(seed: int) -> None:
    """Packets are dropped one by one by chance, over an hour."""
    chance = random.Random(seed)

    def dropping(share: float) -> Callable[[int], list[float]]:
        return lambda place: [one for one in well(place) if chance.random() >= share]

    assert rounds(fresh(), 360, n2=dropping(0.005), n3=well) == []
    share = chance.uniform(0.10, 0.95)
    found = rounds(fresh(), 60, n2=dropping(share), n3=well)
    assert found, share
    assert said(found)[0][:4] == ("probe.loss", True, "n2", "")
