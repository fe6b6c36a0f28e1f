"""The random months themselves: drawn by their seeds, of the sizes that they should have, and a broken law is told and shrunk."""

import pytest

from simulations.month.draw import Month, RackHold
from simulations.month.terms import Terms
from tests.months.__main__ import main, story
from tests.months.drawn import MOST_FAULTS, Chance, chance_of
from tests.months.judge import broken_laws
from tests.months.shrink import MOST_TRIES, shrunk, told
from tests.shipped import shipped_pack
from tests.simulations.month.kit import FAULT_AT_S, case, month


def test_the_same_seed_draws_the_same_month() -> None:
    """Sizes, lengths, profiles and settings differ from seed to seed, within their bounds."""
    drawn = [chance_of(seed) for seed in range(1, 41)]
    assert drawn[:3] == [chance_of(seed) for seed in range(1, 4)]
    sizes = [len(one.month.nodes) for one in drawn]
    assert min(sizes) >= 16
    assert max(sizes) <= 512
    assert len(set(sizes)) > 20
    assert all(2 <= one.month.days <= 10 for one in drawn)
    assert len({one.month.profile.title for one in drawn}) >= 4
    assert len({one.terms.mode for one in drawn}) == 3
    assert all(len(one.month.cases) <= 1.3 * MOST_FAULTS for one in drawn)
    assert sum(bool(one.month.holds) for one in drawn) > 10


def held(*more: RackHold) -> Month:
    """A fault on a held rack, in the middle of others."""
    others = [
        case("users-program-fails", id=f"f{n}", at_s=600.0 * n, nodes=("sim-003",)) for n in range(2, 12)
    ]
    hold = RackHold(at_s=FAULT_AT_S - 60, for_s=3600, rack="rack-0")
    return month(*others, case(), holds=(hold, *more))


def test_a_broken_law_is_told_with_its_seed_and_the_fewest_faults() -> None:
    """Where the gate of holds is open, law 2 is broken: by one fault and one hold."""
    terms = Terms(open_gates=("hold",))
    given = held(RackHold(at_s=10.0, for_s=10.0, rack="rack-1"))
    found = broken_laws(given, shipped_pack(), terms)
    assert any(one.startswith("law 2") for one in found)
    text = story(Chance(seed=77, month=given, terms=terms, says="by hand"), found[0])
    head, *lines = text.splitlines()
    assert head == "seed 77 (by hand):"
    assert [line.split()[1] for line in lines[:2]] == ["a", "gpu-uncontained"]
    assert lines[2].startswith("law 2")
    assert broken_laws(given, shipped_pack()) == []


def test_shrinking_keeps_what_is_wrong_and_ends() -> None:
    """Two faults that are wrong only together are kept, in few tries; without tries nothing is left out."""
    given = month(*(case("users-program-fails", id=f"f{n}", at_s=float(n)) for n in range(64)))
    asked: list[int] = []

    def wrong(one: Month) -> bool:
        asked.append(len(one.cases))
        return {"f3", "f60"} <= {this.id for this in one.cases}

    assert [one.id for one in shrunk(given, wrong).cases] == ["f3", "f60"]
    assert len(asked) <= MOST_TRIES
    assert shrunk(given, wrong, tries=0) == given
    assert len(told(given)) == 64


def test_the_command_plays_months_and_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 0: every law held."""
    assert main(["--months", "2", "--first", "5"]) == 0
    assert "2 months, " in capsys.readouterr().out
