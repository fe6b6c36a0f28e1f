"""What if: gpuward's month with several values of one setting, over several seeds. Every value meets the same faults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from brain.core.pack.spec import Pack
from simulations.month.draw import draw
from simulations.month.engine_fleet import EngineFleet
from simulations.month.play import through
from simulations.month.report import policy_data
from simulations.month.tally import ActVerdict, Tally
from simulations.month.terms import Setting

# What is compared -> whether it is a share, 0 to 1, and no number.
MEASURES: Mapping[str, bool] = {
    "node_hours_lost": False,
    "share_lost": True,
    "share_without_people": True,
    "harm": False,
    "needless": False,
    "harmful": False,
    "under_hold": False,
    "did_not_help": False,
    "pages": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What came of it."""

    title: str
    nodes: int
    days: float
    seeds: tuple[int, ...]
    settings: tuple[Setting, ...]
    # for each setting: measure -> its value for each seed
    values: tuple[Mapping[str, tuple[float | None, ...]], ...]


def sweep(
    settings: Sequence[Setting],
    pack: Pack,
    seeds: Sequence[int],
    *,
    nodes: int = 0,
    days: float = 0.0,
    progress: Callable[[], None] = lambda: None,
) -> Swept:
    """Plays every value with every seed. LawBrokenError when gpuward breaks a safety law with its gates in force."""
    found = []
    for setting in settings:
        months = []
        for seed in seeds:
            month = draw(setting.profile, nodes=nodes, days=days, seed=seed)
            fleet = EngineFleet(pack, month, terms=setting.terms)
            tally = through(fleet, month, lambda _policy, _days: None)
            months.append(_measured(tally, policy_data(tally, "", month)))
            progress()
        found.append({name: tuple(one[name] for one in months) for name in MEASURES})
    return Swept(
        title=settings[0].profile.title,
        nodes=nodes or settings[0].profile.fleet.nodes,
        days=days or settings[0].profile.fleet.days,
        seeds=tuple(seeds),
        settings=tuple(settings),
        values=tuple(found),
    )


def _measured(tally: Tally, found: Mapping[str, object]) -> dict[str, float | None]:
    """`harm`: actions that were needless, ended a job that would have gone on, or came under a hold, and nodes that were given
    back broken; each once.
    """
    bad = [act for act in tally.acts if act.verdict is ActVerdict.NEEDLESS or act.ended_job or act.hold]
    return {
        "node_hours_lost": _number(found["node_hours_lost"]),
        "share_lost": _number(found["share_lost"]),
        "share_without_people": _number(found["share_without_people"]),
        "harm": float(len(bad) + tally.returned_broken),
        "needless": float(tally.count(ActVerdict.NEEDLESS)),
        "harmful": float(tally.harmful),
        "under_hold": float(sum(bool(act.hold) for act in tally.acts)),
        "did_not_help": float(tally.count(ActVerdict.WRONG)),
        "pages": float(tally.pages),
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
