"""The plots of a month's report, as SVG: by matplotlib, which `gpuward[report]` installs.

Narrow figures, so that a phone shows their letters at reading size; a wide page sets them side by side. Text stays text. The
same month gives the same bytes.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.contract.errors import ConfigError
from simulations.month import gantt
from simulations.month.play import Played
from simulations.month.tally import ActVerdict, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_IN = 4.4
_COLOURS = gantt.COLOURS
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpuward",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def all_of_them(found: dict[str, Any], played: Played) -> list[tuple[str, str]]:
    """(what it shows, SVG) of each plot. ConfigError when matplotlib is not there."""
    policies = found["policies"]
    return [
        ("What is lost", _drawn(lambda axes: _lost(axes, policies), 3.4)),
        ("What is lost, without what the ideal loses too", _drawn(lambda axes: _beyond(axes, policies), 2.6)),
        ("Until a fault is healed", _drawn(lambda axes: _healing(axes, played.tallies), 3.4)),
        ("Actions that disrupt something", _drawn(lambda axes: _actions(axes, played.tallies), 3.2)),
        ("Nodes in service", _drawn(lambda axes: gantt.availability(axes, played), 3.2)),
        ("Runs on the nodes that had most", _drawn(lambda axes: gantt.runs(axes, played), gantt.height_in(played))),
        ("Faults by cause", _drawn(lambda axes: _causes(axes, found["causes"]), 0.8 + 0.27 * len(found["causes"]))),
        ("What gpuward took them for", _drawn(lambda axes: _taken_for(axes, found["causes"]), _height(found))),
    ]  # fmt: skip


def of_sweep(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same of a sweep: each measure that people decide by, over the values."""
    wanted = (
        ("node_hours_lost", "Node-hours lost", "node-hours", 1.0),
        ("share_without_people", "Share without people", "% of those that need no hands", 100.0),
        ("harm", "Actions that did harm", "actions", 1.0),
    )
    height_in = 1.0 + 0.32 * len(found["values"])
    return [
        (title, _drawn(partial(_interval, found=found, name=name, unit=unit, by=by), height_in))
        for name, title, unit, by in wanted
    ]  # fmt: skip


def _interval(axes: "Axes", found: Mapping[str, Any], name: str, unit: str, by: float) -> None:
    """The mean and its interval for each value."""
    names = [one["value"] for one in found["values"]]
    measures = [one["measures"][name] for one in found["values"]]
    for y, one in enumerate(measures):
        if one["mean"] is None:
            continue
        axes.plot([by * one["low"], by * one["high"]], [y, y], color=_COLOURS[0], lw=2)
        axes.plot([by * one["mean"]], [y], "o", color=_COLOURS[0])
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.margins(x=0.1)
    axes.locator_params(axis="x", nbins=5)
    axes.set_ylabel(found["key"])
    axes.set_xlabel(unit)


def _height(found: dict[str, Any]) -> float:
    return 1.9 + 0.27 * sum(bool(row["seen_as"]) for row in found["causes"])


def _drawn(draw: Callable[["Axes"], None], height_in: float) -> str:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ConfigError("--html needs matplotlib: pip install 'gpuward[report]'") from error
    style: Any = _STYLE  # whose keys matplotlib names one by one
    with mpl.rc_context(style):
        figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
        draw(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return out.getvalue()[out.getvalue().index("<svg") :]


def _names(policies: Sequence[dict[str, Any]]) -> list[str]:
    return [policy["policy"] for policy in policies]


def _stacked(
    axes: "Axes", names: Sequence[str], parts: Iterable[tuple[str, Sequence[float]]], label: str
) -> None:
    left = [0.0] * len(names)
    for (part, values), colour in zip(parts, _COLOURS, strict=False):
        axes.barh(names, values, left=left, color=colour, label=part, height=0.7)
        left = [before + value for before, value in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.locator_params(axis="x", nbins=6)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.22), ncols=2)


def _lost(axes: "Axes", policies: Sequence[dict[str, Any]]) -> None:
    def of(part: str, key: str) -> list[float]:
        return [policy[part][key] for policy in policies]

    hands = of("node_hours", "awaiting_hands")
    out = [max(0.0, a - b) for a, b in zip(of("node_hours", "out_of_service"), hands, strict=True)]
    parts = (
        ("out: awaiting hands", hands),
        ("out: else", out),
        ("jobs: since checkpoint", of("job_node_hours", "work_since_checkpoint")),
        ("jobs: not running", of("job_node_hours", "not_running")),
        ("jobs: hanging", of("job_node_hours", "hanging")),
        ("jobs: slower", of("job_node_hours", "slower")),
    )
    _stacked(axes, _names(policies), parts, "node-hours")


def _beyond(axes: "Axes", policies: Sequence[dict[str, Any]]) -> None:
    ideal = policies[-1]["node_hours_lost"]
    values = [max(0.0, policy["node_hours_lost"] - ideal) for policy in policies[:-1]]
    bars = axes.barh(_names(policies[:-1]), values, color=_COLOURS[0], height=0.7)
    axes.bar_label(bars, [f"{value:,.0f}" for value in values], padding=3, fontsize=8.5)
    axes.margins(x=0.18)
    axes.locator_params(axis="x", nbins=5)
    axes.invert_yaxis()
    axes.set_xlabel("node-hours")


def _healing(axes: "Axes", tallies: Sequence[Tally]) -> None:
    """The share of the faults that need no hands which is healed by then."""
    for tally, colour in zip(tallies, _COLOURS, strict=False):
        stories = [
            story
            for story in tally.stories.values()
            if story.begun and story.case.remote and not story.case.kind.benign and not story.case.noise
        ]
        times = sorted(max(1.0, story.healed_s) / 60 for story in stories if story.healed_s is not None)
        shares = [100 * (n + 1) / len(stories) for n in range(len(times))]
        axes.step(times, shares, where="post", color=colour, label=tally.policy)
    axes.set_xscale("log")
    axes.set_xlabel("minutes")
    axes.set_ylabel("% of those that need no hands")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=3)


def _actions(axes: "Axes", tallies: Sequence[Tally]) -> None:
    words = {ActVerdict.RIGHT: "right", ActVerdict.WRONG: "did not help", ActVerdict.NEEDLESS: "needless"}
    parts = [(word, [float(tally.count(verdict)) for tally in tallies]) for verdict, word in words.items()]
    _stacked(axes, [tally.policy for tally in tallies], parts, "actions")
    for n, tally in enumerate(tallies):
        if tally.harmful:
            axes.annotate(
                f"{tally.harmful} harmful", (len(tally.acts), n), xytext=(3, 0), textcoords="offset points",
                va="center", fontsize=8.5,
            )  # fmt: skip
    axes.margins(x=0.2)


def _causes(axes: "Axes", causes: Sequence[dict[str, Any]]) -> None:
    names = [row["cause"].replace("_", " ") for row in causes]
    axes.barh(names, [row["drawn"] for row in causes], color=_COLOURS[5], height=0.7, label="drawn")
    axes.scatter(
        [row["expected"] for row in causes],
        names,
        color="black",
        s=14,
        zorder=3,
        label="expected from the source",
    )
    axes.invert_yaxis()
    axes.set_xlabel("faults")
    axes.legend(loc="lower right")


def _taken_for(axes: "Axes", causes: Sequence[dict[str, Any]]) -> None:
    """Rows: the profile's causes; columns: gpuward's."""
    rows = [row for row in causes if row["seen_as"]]
    columns = list(dict.fromkeys(name for row in rows for name in row["seen_as"]))
    shares = [
        [row["seen_as"].get(name, 0) / sum(row["seen_as"].values()) for name in columns] for row in rows
    ]
    if not rows:
        axes.text(0.5, 0.5, "no fault was seen", ha="center")
        return
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for y, row in enumerate(rows):
        for x, name in enumerate(columns):
            if count := row["seen_as"].get(name):
                dark = shares[y][x] > 0.6
                axes.text(
                    x,
                    y,
                    str(count),
                    ha="center",
                    va="center",
                    fontsize=8.5,
                    color="white" if dark else "black",
                )
    axes.set_yticks(range(len(rows)), [row["cause"].replace("_", " ") for row in rows])
    axes.set_xticks(range(len(columns)), columns, rotation=55, ha="right", fontsize=8.5)
