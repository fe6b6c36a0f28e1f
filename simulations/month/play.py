"""Plays a month under gpuward and under each baseline, one after the other."""

from collections.abc import Callable
from dataclasses import dataclass

from brain.core.engine import Engine
from brain.core.pack.spec import Pack
from simulations.month.baselines import BASELINES, BaselineFleet
from simulations.month.draw import Month
from simulations.month.engine_fleet import EngineFleet
from simulations.month.tally import Tally

Progress = Callable[[str, float], None]  # (policy, days that are over)
SUMMARY = "the real engine with these rules, runbooks and gates; every runbook automatic as far as it may be"
_STEP_DAYS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a month: gpuward's account first, then the baselines'."""

    month: Month
    tallies: tuple[Tally, ...]
    summaries: tuple[str, ...]


def play(
    month: Month,
    pack: Pack,
    progress: Progress = lambda _policy, _days: None,
    engine: Engine | None = None,
) -> Played:
    """Plays it. LawBrokenError when gpuward breaks a safety law. `engine`: a new one; None: one is made."""
    tallies, summaries = [through(EngineFleet(pack, month, engine), month, progress)], [SUMMARY]
    for policy in BASELINES:
        tallies.append(through(policy(month), month, progress))
        summaries.append(policy.summary)
    return Played(month=month, tallies=tuple(tallies), summaries=tuple(summaries))


def through(fleet: EngineFleet | BaselineFleet, month: Month, progress: Progress) -> Tally:
    """Plays a fleet to the end of its month. LawBrokenError when gpuward breaks a safety law."""
    days = 0.0
    while days < month.days:
        days = min(month.days, days + _STEP_DAYS)
        fleet.run(days * 86400)
        progress(fleet.world.tally.policy, days)
    return fleet.world.close()
