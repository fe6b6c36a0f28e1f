"""A month by chance: the fleet, how long, which profile and how bad, and what the site has set. The same seed, the same month."""

import random
from dataclasses import dataclass

from brain.core.pack.spec import Mode
from simulations.month import profile
from simulations.month.draw import Month, draw
from simulations.month.terms import Terms

MOST_FAULTS = 400  # so that a month takes seconds
# Setting -> from where to where a site may reasonably have it.
_SETTINGS: dict[str, tuple[float, float]] = {
    "disruptive_runs": (1, 12),
    "disruptive_runs_per_leaf": (1, 4),
    "disruptive_runs_per_runbook": (1, 6),
    "hold_off_s": (0, 120),
    "stale_s": (30, 1200),
    "approval_s": (300, 7200),
    "breaker_runs": (3, 60),
    "same_cause_nodes": (2, 12),
    "same_cause_nodes_per_day": (3, 30),
    "shared_nodes": (3, 20),
    "shared_leaf_nodes": (2, 8),
    "remedies_per_day": (1, 6),
    "harm_nodes": (0, 6),
}
_WHOLE = ("hold_off_s", "stale_s", "approval_s")  # of seconds, which need not be whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What chance has made."""

    seed: int
    month: Month
    terms: Terms
    # in a sentence
    says: str


def chance_of(seed: int) -> Chance:
    """The month of a seed."""
    chance = random.Random(f"gpuward months {seed}")
    name = chance.choice(profile.shipped())
    given = profile.load(name)
    nodes = round(16 * 32 ** chance.random())
    days = round(chance.uniform(2.0, 10.0), 2)
    expected = given.faults_per_1000_node_days + sum(given.noise_per_1000_node_days.values())
    worse = min(chance.choice((1, 3, 10, 30)), MOST_FAULTS * 1000 / (expected * nodes * days))
    changed = given.model_copy(
        update={
            "fleet": given.fleet.model_copy(
                update={
                    "nodes_per_leaf": chance.choice((4, 8, 16, 32)),
                    "nodes_per_rack": chance.choice((1, 2, 4, 8)),
                }
            ),
            "faults_per_1000_node_days": given.faults_per_1000_node_days * worse,
            "noise_per_1000_node_days": {
                kind: rate * worse for kind, rate in given.noise_per_1000_node_days.items()
            },
            "jobs": given.jobs.model_copy(
                update={
                    "checkpoint_minutes": chance.choice((5.0, 30.0, 120.0)),
                    "spare_share": chance.choice((0.0, 0.02, 0.1)),
                }
            ),
            "holds": given.holds.model_copy(update={"per_1000_node_days": chance.choice((0.0, 0.5, 20.0))}),
        }
    )
    settings = {
        key: _value(key, chance.uniform(*_SETTINGS[key]))
        for key in sorted(_SETTINGS)
        if chance.random() < 0.5
    }
    mode = chance.choice((Mode.AUTO, Mode.AUTO, Mode.AUTO, Mode.APPROVE, Mode.OBSERVE))
    set_to = ", ".join(f"{key} {value:g}" for key, value in settings.items())
    return Chance(
        seed=seed,
        month=draw(changed, nodes=nodes, days=days, seed=seed),
        terms=Terms(settings=settings, mode=mode),
        says=f"{name}, {worse:.3g} times as bad: {nodes} nodes, {days:g} days, mode {mode.value}; {set_to or 'no setting'}",
    )


def _value(key: str, value: float) -> float | int:
    return round(value, 1) if key in _WHOLE else round(value)
