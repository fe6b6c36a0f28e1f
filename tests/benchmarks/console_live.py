"""The console while things happen: how soon Now is drawn, how soon a note is on the screen, what a page holds after a storm.

    python -m tests.benchmarks console_live
    GPUWARD_CONSOLE_NODES=1000 GPUWARD_CONSOLE_INCIDENTS=100 GPUWARD_CONSOLE_STORM=2000 python -m tests.benchmarks console_live

The same brain, broker and browser as `console`. The storm is what an hour of five faults and five ends a second sends, in less
time.
"""

import asyncio
import os
import random
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Page

from agent.contract.messages import Event
from brain.cli.client import Client
from tests.benchmarks.console import LOADS, Drawn, heap, paints
from tests.benchmarks.figures import Figure, percentile
from tests.benchmarks.full_brain import event, full, publish
from tests.e2e.stack import Stack
from tests.web.kit import DESK, PHONE, chromium, look

NOTES = 30
STORM = 36_000
PAINT_MS, SEEN_MS, HEAP_MB = 1000.0, 100.0, 60.0
# When the page first shows what it has loaded: `#main` is there, and nothing in it is on its way.
_WATCH_PAINT = """() => {
    const look = () => {
        const main = document.getElementById('main')
        if (main === null || main.children.length === 0 || main.querySelector(':scope > [aria-busy]') !== null) return
        requestAnimationFrame(() => { window.drawn_at ??= performance.now() })
    }
    new MutationObserver(look).observe(document, {childList: true, subtree: true, attributes: true})
}"""
_NOW = Drawn(path="/", waits="() => window.drawn_at", at="window.drawn_at", before=f"({_WATCH_PAINT})()")
# When a text first stands on the page, by the machine's clock.
_WATCH_TEXT = """(token) => {
    window.seen_at = 0
    const look = () => {
        if (document.body.textContent.includes(token)) requestAnimationFrame(() => { window.seen_at ||= Date.now() })
    }
    window.watcher?.disconnect()
    window.watcher = new MutationObserver(look)
    window.watcher.observe(document.body, {childList: true, subtree: true, characterData: true})
}"""


def run() -> list[Figure]:
    """Needs Chromium."""
    nodes = int(os.environ.get("GPUWARD_CONSOLE_NODES", "10000"))
    incidents = int(os.environ.get("GPUWARD_CONSOLE_INCIDENTS", "1000"))
    storm = int(os.environ.get("GPUWARD_CONSOLE_STORM", str(STORM)))
    with (
        tempfile.TemporaryDirectory() as folder,
        full(Path(folder), nodes, incidents) as whole,
        chromium() as browser,
    ):
        token = whole.ann.read_text().strip()
        desk, phone = (paints(browser, whole.url, token, size, _NOW) for size in (DESK, PHONE))
        with look(browser, whole.url, DESK) as one:
            one.log_in(token)
            seen = _seen(one.page, whole)
            one.open("/")
            with ThreadPoolExecutor(1) as beside:  # this thread has the loop of Playwright
                beside.submit(asyncio.run, publish(whole.nats.url, _storm(nodes, storm))).result()
            whole.wait_for(
                lambda: whole.get("/api/v1/status").get("inputs", 0) >= nodes + incidents + storm,
                "the storm is judged",
                within_s=300,
            )
            one.page.wait_for_timeout(2000)  # what is on its way to the page
            held = heap(one)
    of = f"{nodes:,} nodes, {incidents:,} incidents"
    return [
        Figure(
            what=f"console, Now of {of}: address entered → what needs a person is drawn, median of {LOADS}",
            value=f"{percentile(desk, 0.5):,.0f} ms",
            beside=f"{min(desk):,.0f} to {max(desk):,.0f}; a phone's size {percentile(phone, 0.5):,.0f}",
            target=f"≤ {PAINT_MS:,.0f} ms",
            met=max(percentile(desk, 0.5), percentile(phone, 0.5)) <= PAINT_MS,
        ),
        Figure(
            what=f"the same, a note on the log → on the screen of its incident, p50 of {len(seen)}",
            value=f"{percentile(seen, 0.5):,.0f} ms",
            beside=f"p90 {percentile(seen, 0.9):,.0f} ms, worst {max(seen):,.0f} ms",
            target=f"≤ {SEEN_MS:,.0f} ms",
            met=percentile(seen, 0.5) <= SEEN_MS,
        ),
        Figure(
            what=f"the same, JavaScript heap of Now after a storm of {storm:,} events",
            value=f"{held[1]:.0f} MB",
            beside=f"{held[0]:.0f} MB before a collection",
            target=f"≤ {HEAP_MB:.0f} MB",
            met=held[0] <= HEAP_MB,
        ),
    ]


def _seen(page: Page, whole: Stack) -> list[float]:
    """Milliseconds from the time of a note, by the log, to the frame that shows it."""
    incident = whole.get("/api/v1/incidents")["incidents"][0]["id"]
    page.goto(f"{whole.url}/incidents/{incident}")
    page.wait_for_selector("#main:not(:has(> [aria-busy]))")
    people, found = Client(whole.url, whole.ann), []
    for _ in range(NOTES):
        page.wait_for_timeout(1000)  # notes that come together are one reading of the page
        token = uuid.uuid4().hex
        page.evaluate(_WATCH_TEXT, token)
        people.submit("note", id=incident, text=token)
        page.wait_for_function("() => window.seen_at > 0")
        notes = whole.get(f"/api/v1/explain/{incident}")["notes"]
        (at,) = [one["at"] for one in notes if token in one["text"]]
        written_ms = datetime.fromisoformat(at).timestamp() * 1000
        found.append(float(page.evaluate("window.seen_at")) - written_ms)
    return found


def _storm(nodes: int, count: int) -> Iterator[Event]:
    """Links of nodes anywhere in the fleet that go and come."""
    draw = random.Random(1)
    down: dict[int, bool] = {}
    for number in range(count):
        node = draw.randrange(nodes)
        down[node] = not down.get(node, False)
        yield event(node, 1000 + number, ("link.state", "link/eth1", {"up": not down[node]}))
