"""The table of a comparison, and its place in docs/benchmarks.md."""

import os
from collections.abc import Mapping, Sequence

from tests.benchmarks.figures import machine, percentile
from tests.compare.kit import FAULTS, FAULTS_WITHIN_S, Result

BEGIN, END = "<!-- make compare: begin -->", "<!-- make compare: end -->"
NODE_PROBLEM_DETECTOR = Result(
    name="node-problem-detector",
    missing="it was looked for on 2026-11-30 and is in no package of Debian, PyPI or npm; it is published as Go source and as a"
    " container image alone, and the machine of these figures reaches registries of packages only. A Go compiler is to be had,"
    " its source is not. Nothing here drives it yet. Without Kubernetes it is a source of metrics: the rows of Prometheus are the"
    " way of its alerts",
)


def block(results: Sequence[Result], when: str, load: Sequence[tuple[float, float, float]]) -> str:
    """All that a run says, as Markdown; `load`: the machine's load averages before and after it."""
    before, after = (" ".join(f"{value:.1f}" for value in one) for one in load)
    found = [
        f"{machine()}, {when}; load average before the run {before}, after it {after}:",
        "",
        table(results),
        "",
    ]
    found += [f"- {one.name}: {one.version}" for one in results if one.version]
    found += [f"- {one.name} is left out: {one.missing}" for one in results if one.missing]
    return "\n".join(found)


def table(results: Sequence[Result]) -> str:
    """One row for each system that ran."""
    head = (
        "| system | kernel line → decided, p50 / p99 | kernel line → page, p50 / p99 | events/s |"
        f" {FAULTS} nodes with a failed GPU at once: all paged | memory (PSS), idle → under load |"
    )
    return "\n".join([head, "|---|---|---|---|---|---|", *(_row(one) for one in results if not one.missing)])


def _row(one: Result) -> str:
    events = f"{one.events_per_s:,.0f}" if one.events_per_s else "–"
    return (
        f"| {one.name} | {times(one.decided_s, one.lines)} | {times(one.paged_s, one.lines)} | {events} |"
        f" {_burst(one)} | {_memory(one.idle_mb, one.load_mb)} |"
    )


def times(seconds: Sequence[float], lines: int) -> str:
    """p50 / p99, of how many lines; and how many never came."""
    if not seconds:
        return f"none of {lines} came"
    count = f"of {lines}" if len(seconds) == lines else f"**{len(seconds)} of {lines} came**"
    return f"{span(percentile(seconds, 0.5))} / {span(percentile(seconds, 0.99))} ({count})"


def span(seconds: float) -> str:
    """Milliseconds below a second."""
    return f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _burst(one: Result) -> str:
    if one.burst_paged == FAULTS:
        return span(one.burst_s)
    return f"**{one.burst_paged} after {FAULTS_WITHIN_S:.0f} s**"


def _memory(idle: Mapping[str, float], load: Mapping[str, float]) -> str:
    parts = ", ".join(f"{name} {value:.0f} → {load[name]:.0f}" for name, value in idle.items())
    whole = f"{sum(idle.values()):.0f} → {sum(load.values()):.0f} MB"
    return f"{whole} ({parts})" if len(idle) > 1 else whole


def put(page: str, text: str) -> str:
    """The page with the block between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def load_now() -> tuple[float, float, float]:
    """Of the last 1, 5 and 15 minutes."""
    return os.getloadavg()
