"""What the numbers of brain.toml's [settings] may be."""

from collections.abc import Mapping

from brain.all_wrong import AllWrong
from brain.core.pack.spec import Settings

# Beyond it a safety law would hold for nothing, or the brain would do nothing, silently.
# Not in the type, which also reads what is on the log.
RANGES: Mapping[str, tuple[float, float]] = {
    "disruptive_runs": (0, 1000),
    "disruptive_runs_per_leaf": (0, 1000),
    "disruptive_runs_per_runbook": (0, 1000),
    "disruptive_runs_per_job": (0, 1000),
    "shared_nodes": (1, 1000),
    "shared_share": (0, 1),
    "shared_small_share": (0, 2),
    "shared_leaf_nodes": (1, 1000),
    "shared_within_s": (1, 86_400),
    "shared_at_once_s": (0, 600),
    "hold_off_s": (0, 3600),
    "stale_s": (1, 86_400),
    "approval_s": (60, 7 * 86_400),
    "reopens_s": (0, 86_400),
    "restart_lost_nodes_s": (0, 7 * 86_400),
    "breaker_runs": (1, 10_000),
    "breaker_within_s": (60, 7 * 86_400),
    "same_cause_nodes": (1, 10_000),
    "same_cause_nodes_per_day": (1, 10_000),
    "remedies_per_day": (1, 1000),
    "remedies_per_week": (1, 1000),
    "remedies_per_month": (1, 1000),
    "harm_nodes": (0, 1000),
    "harm_share": (0, 1),
    "page_repeat_s": (10, 7 * 86_400),
    "group_at_least": (0, 10_000),
    "group_within_s": (1, 3600),
}
LEAST_LOST_S = 600.0


def check(settings: Settings) -> None:
    """ValueError: a line with the key for each number that is out of its range."""
    wrong = AllWrong()
    for name, (least, most) in RANGES.items():
        found = getattr(settings, name)
        for value in found if isinstance(found, tuple) else (found,):
            if not least <= value <= most:
                wrong.add(f"settings.{name}: {value:g} is not {least:,g} to {most:,g}")
    if 0 < settings.restart_lost_nodes_s < LEAST_LOST_S:
        wrong.add(
            f"settings.restart_lost_nodes_s: {settings.restart_lost_nodes_s:g} is less than a server may take to boot: "
            f"give at least {LEAST_LOST_S:g}, or 0 for never"
        )
    if not settings.page_repeat_s:
        wrong.add("settings.page_repeat_s: a page must be repeated some time: give at least one pause")
    wrong.end(ValueError)
