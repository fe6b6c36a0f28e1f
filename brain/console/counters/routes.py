"""Counters of one node. What Prometheus has said is kept for some seconds: many look at the node that is ill."""

import asyncio
import time
from collections.abc import Mapping, Sequence

import aiohttp
from aiohttp import web

from agent.contract import subjects
from agent.contract.errors import ActionError, ConfigError
from brain.console import shapes
from brain.console.access.route import Route
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.counter_shapes import CounterLineShape, CounterPanelShape, CountersQuery, CountersShape
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView, History
from brain.console.counters.panels import PANELS, Panel, PanelKind, selector, step_of
from brain.console.counters.prometheus import PlottedLine, Prometheus
from brain.outgoing import outgoing

KEPT_S = 15.0
_MOST_KEPT = 32
_MOST_LINES = 16
Told = tuple[Sequence[tuple[Panel, list[PlottedLine]]], list[str]]


def routes(brain: BrainView) -> list[Route]:
    """Returns the route. ConfigError: a file that `[console.prometheus]` names cannot be used."""
    config = brain.config.console.prometheus
    prometheus = Prometheus(config, outgoing(brain.config.outgoing)) if config else None
    kept: dict[tuple[str, float], tuple[float, asyncio.Task[Told]]] = {}

    def asked_now(node: str, hours: float, until: float) -> asyncio.Task[Told]:
        """One question for all who ask it within some seconds."""
        now_s = time.monotonic()
        for key in [key for key, (since_s, _) in kept.items() if now_s - since_s > KEPT_S]:
            del kept[key]
        while len(kept) >= _MOST_KEPT:
            kept.pop(next(iter(kept)))
        if (node, hours) not in kept:
            kept[node, hours] = now_s, asyncio.ensure_future(ask(node, hours, until))
        return kept[node, hours][1]

    async def ask(node: str, hours: float, until: float) -> Told:
        assert prometheus is not None  # noqa: S101 - asked where there is one
        assert config is not None  # noqa: S101 - the same
        step_s, labels = (
            step_of(hours),
            {PanelKind.GPU: config.gpu_node_label, PanelKind.NODE: config.node_label},
        )
        async with aiohttp.ClientSession() as session:
            found = await asyncio.gather(
                *(
                    prometheus.lines(
                        session,
                        one.query(selector(labels[one.kind], node), step_s),
                        until - hours * 3600,
                        until,
                        step_s,
                    )
                    for one in PANELS
                ),
                return_exceptions=True,
            )
        failed: dict[str, None] = {}
        panels = []
        for panel, lines in zip(PANELS, found, strict=True):
            if isinstance(lines, ActionError):
                failed[str(lines)] = None
            elif isinstance(lines, BaseException):
                raise lines
            elif lines:
                panels.append((panel, lines))
        return panels, list(failed)

    async def counters(asked: Checked[CountersQuery, Nothing]) -> CountersShape:
        query, step_s = asked.query, step_of(asked.query.hours)
        try:
            node = subjects.token(asked.name, "node")
        except ConfigError as error:
            raise web.HTTPNotFound(text=f"no node {asked.name[:80]!r}") from error
        until = time.time() // KEPT_S * KEPT_S
        panels: Sequence[tuple[Panel, list[PlottedLine]]] = ()
        failed: list[str] = []
        if prometheus is not None:
            names = await brain.look_up(lambda history: _names(history, node))
            panels, failed = await asyncio.shield(asked_now(node, query.hours, until))
            shown = [
                _panel(panel, lines, names, query.component, query.hours, step_s) for panel, lines in panels
            ]
        else:
            shown = []
        return CountersShape(
            configured=prometheus is not None,
            since=shapes.iso(until - query.hours * 3600),
            until=shapes.iso(until),
            step_s=step_s,
            panels=[one for one in shown if one.lines],
            failed=failed,
        )

    return [serve(table.COUNTERS, counters)]


def _names(history: History, node: str) -> Mapping[str, str]:
    """UUID of a GPU, or its PCI address -> its component, as the node told last."""
    found: dict[str, str] = {}
    for one in history.parts_of(node):
        component = str(one["component"])
        if component.startswith("gpu/"):
            found.setdefault(component.partition("/")[2], component)
            if uuid := one["data"].get("uuid"):
                found.setdefault(str(uuid), component)
    return found


def _panel(
    panel: Panel,
    lines: Sequence[PlottedLine],
    names: Mapping[str, str],
    component: str,
    hours: float,
    step_s: float,
) -> CounterPanelShape:
    steps = round(hours * 3600 / step_s) + 1
    told = [(_label(panel, line, names), line) for line in lines if line.values]
    if component:
        told = [one for one in told if one[0] == component]
    first = sorted(told, key=lambda one: (-max(one[1].values.values()), one[0]))[:_MOST_LINES]
    return CounterPanelShape(
        name=panel.name,
        unit=panel.unit,
        lines=[
            CounterLineShape(label=label, values=[line.values.get(step) for step in range(steps)])
            for label, line in sorted(first, key=lambda one: one[0])
        ],
        more=len(told) - len(first),
    )


def _label(panel: Panel, line: PlottedLine, names: Mapping[str, str]) -> str:
    """The part that a line is about: a GPU by its UUID or its PCI address, as we name it; else as the exporter does."""
    if panel.kind is PanelKind.NODE:
        return line.labels.get(panel.by, "") if panel.by else ""
    address = line.labels.get("pci_bus_id", "").lower().removesuffix(".0")
    address = address[4:] if address.startswith("0000") and len(address.partition(":")[0]) == 8 else address
    known = names.get(line.labels.get("UUID", "")) or names.get(address)
    return known or f"gpu {line.labels.get('gpu', '')}".strip()
