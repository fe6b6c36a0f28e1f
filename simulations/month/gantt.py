"""The plots of a month's report that have time on their axis: the nodes in service, and a Gantt chart of gpuward's runs."""

from collections import Counter
from typing import TYPE_CHECKING

from simulations.month.play import Played
from simulations.month.tally import RunSpan, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DAY_S = 86400.0
# Colours that people with colour blindness tell apart (Okabe and Ito).
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#777777")
ROWS = 24
_OUT = "#CCCCCC"
_SHOWN = ("gpuward", "alerting only", "drain and reboot")
_LEAST = 0.006  # of the axis: a run of minutes in a month is seen, too


def availability(axes: "Axes", played: Played) -> None:
    """The share of the nodes that is in service: gpuward, and what most sites have."""
    days, nodes = played.month.days, len(played.month.nodes)
    for tally, colour in reversed(list(zip(played.tallies, COLOURS, strict=False))):
        if tally.policy in _SHOWN:
            at, counts, out = [0.0], [100.0], 0
            for when, step in tally.out_steps:
                out += step
                at.append((when - tally.start) / DAY_S)
                counts.append(100 * (1 - out / nodes))
            axes.step(
                [*at, days], [*counts, counts[-1]], where="post", color=colour, lw=0.9, label=tally.policy
            )
    axes.set_xlim(0, days)
    axes.set_xlabel("days")
    axes.set_ylabel("% of the nodes")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=3)


def rows(played: Played) -> list[str]:
    """The nodes that had most runs, the worst one first."""
    counts = Counter(span.node for span in played.tallies[0].runs.values())
    return [node for node, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:ROWS]]


def height_in(played: Played) -> float:
    """A line for each node, and what stands below."""
    return 1.3 + 0.2 * max(1, len(rows(played)))


def runs(axes: "Axes", played: Played) -> None:
    """Grey: out of service; on it the runs, by how they ended."""
    own, days, nodes = played.tallies[0], played.month.days, rows(played)
    if not nodes:
        axes.text(0.5, 0.5, "there was no run", ha="center")
        return
    line = {node: y for y, node in enumerate(nodes)}
    for node, since, until in own.out_spans:
        if node in line:
            begin, end = _day(own, since), min(days, _day(own, until))
            axes.barh(line[node], max(end - begin, _LEAST * days), left=begin, color=_OUT, height=0.86)
    looks = {"healed": COLOURS[2], "people had to act": COLOURS[3], "not over": COLOURS[1]}
    for span in own.runs.values():
        if span.node in line:
            begin = _day(own, span.since)
            end = days if span.until is None else _day(own, span.until)
            axes.barh(
                line[span.node],
                max(end - begin, _LEAST * days),
                left=begin,
                color=looks[_ended(span)],
                height=0.5,
            )
    for label, colour in (("out of service", _OUT), *looks.items()):
        axes.barh(0, 0, color=colour, label=label)
    axes.set_yticks(range(len(nodes)), nodes, fontsize=8.5)
    axes.set_ylim(len(nodes) - 0.5, -0.5)
    axes.set_xlim(0, days)
    axes.set_xlabel("days")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.6 / height_in(played)), ncols=2)


def _day(tally: Tally, at: float) -> float:
    return (at - tally.start) / DAY_S


def _ended(span: RunSpan) -> str:
    if span.until is None:
        return "not over"
    return "people had to act" if span.gave_up else "healed"
