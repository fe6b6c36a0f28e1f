"""The report of a sweep: data with stable keys, the page for a terminal, and one HTML file. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import inf
from typing import Any

from agent.shared.words import later, t
from brain.cli.terminal import hanging, padded
from simulations.month import html, plots
from simulations.month.intervals import Estimate, difference, estimate
from simulations.month.sweep import MEASURES, Swept

_LABELS: Mapping[str, str] = {
    "node_hours_lost": later("node-hours lost"),
    "share_lost": later("lost of all node-hours"),
    "share_without_people": later("share without people"),
    "harm": later("actions that did harm"),
    "needless": later("  needless"),
    "harmful": later("  harmful"),
    "under_hold": later("  under a hold"),
    "did_not_help": later("actions that did not help"),
    "pages": later("pages"),
}
_LABEL, _LEAST = 28, 24  # columns


def data(swept: Swept) -> dict[str, Any]:
    """All of it. Differences are to the first value, seed by seed."""
    first = swept.values[0]
    return {
        "title": swept.title,
        "nodes": swept.nodes,
        "days": swept.days,
        "seeds": list(swept.seeds),
        "key": swept.settings[0].key,
        "confidence": 0.95,
        "values": [
            {
                "value": setting.value,
                "measures": {
                    name: {
                        **_within(_numbers(estimate(values[name]), share=share), share=share),
                        "to_first": _numbers(difference(values[name], first[name]), share=share),
                        "each": [_rounded(one, share=share) for one in values[name]],
                    }
                    for name, share in MEASURES.items()
                },
            }
            for setting, values in zip(swept.settings, swept.values, strict=True)
        ],
        "price": _price(swept),
    }


def _price(swept: Swept) -> list[dict[str, Any]]:
    """Of the gates: what they cost beside what goes on without them, in node-hours, and the harm that they prevent."""
    if swept.settings[0].key != "gates":
        return []
    names = [setting.value for setting in swept.settings]
    if "on" not in names:
        return []
    with_them = swept.values[names.index("on")]
    found = []
    for name, without in zip(names, swept.values, strict=True):
        if name != "on":
            cost = difference(with_them["node_hours_lost"], without["node_hours_lost"])
            harm = difference(without["harm"], with_them["harm"])
            found.append(
                {
                    "without": name,
                    "node_hours": _numbers(cost, share=False),
                    "harm_prevented": _numbers(harm, share=False),
                }
            )
    return found


def _numbers(found: Estimate | None, *, share: bool) -> dict[str, float | None]:
    if found is None:
        return {"mean": None, "low": None, "high": None}
    low, high = found.low, found.high
    return {
        name: _rounded(value, share=share)
        for name, value in (("mean", found.mean), ("low", low), ("high", high))
    }


def _within(numbers: dict[str, float | None], *, share: bool) -> dict[str, float | None]:
    """What is counted is never less than none, a share never more than all: there an interval ends."""
    most = 1.0 if share else inf
    return {name: None if value is None else min(most, max(0.0, value)) for name, value in numbers.items()}


def _rounded(value: float | None, *, share: bool) -> float | None:
    return None if value is None else round(value, 4 if share else 1) + 0.0  # not -0.0


# --- for people ---


def page(found: Mapping[str, Any], width: int) -> Iterator[str]:
    """The report for a terminal: a column for each value, as many beside each other as fit."""
    yield _head(found)
    yield from hanging("", _how(found), width)
    values, at_once = found["values"], max(1, (width - _LABEL) // _LEAST)
    for begin in range(0, len(values), at_once):
        part = values[begin : begin + at_once]
        yield ""
        yield padded(found["key"], _LABEL) + "".join(f"{one['value']:>{_LEAST}}" for one in part)
        for label, *cells in rows(part):
            yield padded(label, _LABEL) + "".join(f"{cell:>{_LEAST}}" for cell in cells)
        change = [_change(one) for one in part]
        yield padded(t("node-hours, beside {value}", value=values[0]["value"]), _LABEL) + "".join(
            f"{cell:>{_LEAST}}" for cell in change
        )
    for price in found["price"]:
        yield from ("", *hanging("", price_text(price), width))


def _head(found: Mapping[str, Any]) -> str:
    return t(
        "{title}: {nodes} nodes, {days} days, {seeds} seeds: what if {key} were ...",
        title=found["title"],
        nodes=found["nodes"],
        days=f"{found['days']:g}",
        seeds=len(found["seeds"]),
        key=found["key"],
    )


def _how(found: Mapping[str, Any]) -> str:
    return t(
        "Means over the seeds from {first} on, with 95 % intervals. Every value meets the same faults with the same luck; "
        "differences are taken seed by seed.",
        first=found["seeds"][0],
    )


def rows(values: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A label, and a cell for each value."""
    return [
        (t(_LABELS[name]), *(_cell(one["measures"][name], share=share) for one in values))
        for name, share in MEASURES.items()
    ]


def _cell(found: Mapping[str, Any], *, share: bool) -> str:
    if found["mean"] is None:
        return "-"
    mean, low, high = (_said(found[key], share=share) for key in ("mean", "low", "high"))
    return mean if low == high else f"{mean} ({low}..{high})"


def _said(value: float, *, share: bool) -> str:
    if share:
        return f"{100 * value:.1f}%"
    return f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def _change(one: Mapping[str, Any]) -> str:
    found = one["measures"]["node_hours_lost"]["to_first"]
    if found["mean"] is None or found["mean"] == found["low"] == found["high"] == 0:
        return "="
    return f"{found['mean']:+,.0f} ({found['low']:+,.0f}..{found['high']:+,.0f})"


def price_text(price: Mapping[str, Any]) -> str:
    """What the gates cost and prevent, as a sentence."""
    cost, harm = price["node_hours"], price["harm_prevented"]
    return t(
        "The gates beside {without}: {cost} node-hours ({cost_low} to {cost_high}), and {harm} ({harm_low} to {harm_high}) "
        "actions that would have done harm are prevented.",
        without=price["without"],
        cost=f"{cost['mean']:+,.0f}",
        cost_low=f"{cost['low']:+,.0f}",
        cost_high=f"{cost['high']:+,.0f}",
        harm=f"{harm['mean']:,.1f}",
        harm_low=f"{harm['low']:,.1f}",
        harm_high=f"{harm['high']:,.1f}",
    )


def html_page(found: Mapping[str, Any]) -> str:
    """The same as one file with plots."""
    values = found["values"]
    change = [(t("node-hours, beside {value}", value=values[0]["value"]), *map(_change, values))]
    table = html.table([*rows(values), *change], [found["key"], *(one["value"] for one in values)])
    figures = html.figures(plots.of_sweep(found))
    price = "".join(f"<p>{escape(price_text(one))}</p>" for one in found["price"])
    body = f"""<p>Simulated by gpuward. {escape(_how(found))}</p>
<div class="plots">{figures}</div>
<div class="wide">{table}</div>
{price}
<p>A simulation shows what follows from what is known; it is no measurement.</p>"""
    return html.whole(_head(found), body)
