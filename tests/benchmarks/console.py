"""The console's map of 10,000 nodes with 1,000 open incidents in Debian's Chromium: first paint, frames, memory.

    python -m tests.benchmarks console
    GPUWARD_CONSOLE_NODES=1000 GPUWARD_CONSOLE_INCIDENTS=100 python -m tests.benchmarks console

A real brain on a real broker (full_brain.py); brain, broker and browser share the machine, and the browser draws without a GPU.
"""

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.benchmarks.figures import Figure, percentile
from tests.benchmarks.full_brain import full
from tests.web.kit import DESK, PHONE, Look, chromium, look

LOADS = 5
MOVED_S = 4.0
PAINT_MS, FRAMES, HEAP_MB = 1500.0, 30.0, 60.0
_DRAWN = "() => performance.getEntriesByName('fleet-drawn').length > 0"
_FRAMES = """() => {
    window.frames_at = []
    const each = (at) => { window.frames_at.push(at); window.counting = requestAnimationFrame(each) }
    window.counting = requestAnimationFrame(each)
}"""


def run() -> list[Figure]:
    """Needs Chromium."""
    nodes = int(os.environ.get("GPUWARD_CONSOLE_NODES", "10000"))
    incidents = int(os.environ.get("GPUWARD_CONSOLE_INCIDENTS", "1000"))
    with (
        tempfile.TemporaryDirectory() as folder,
        full(Path(folder), nodes, incidents) as whole,
        chromium() as browser,
    ):
        token = whole.ann.read_text().strip()
        desk, phone = (paints(browser, whole.url, token, size, _MAP) for size in (DESK, PHONE))
        with look(browser, whole.url, DESK) as one:
            one.log_in(token)
            page = _open(one)
            pan = _frames(
                page, lambda n: page.mouse.move(640 + 200 * _swing(n), 500 + 90 * _swing(n // 2)), hold=True
            )
            zoom = _frames(page, lambda n: page.mouse.wheel(0, -120 if n % 24 < 12 else 120))
            held = heap(one)
    of = f"{nodes:,} nodes, {incidents:,} incidents"
    return [
        Figure(
            what=f"console, fleet of {of}: address entered → map drawn, median of {LOADS}",
            value=f"{percentile(desk, 0.5):,.0f} ms",
            beside=f"{min(desk):,.0f} to {max(desk):,.0f}; a phone's size {percentile(phone, 0.5):,.0f}",
            target=f"≤ {PAINT_MS:,.0f} ms",
            met=max(percentile(desk, 0.5), percentile(phone, 0.5)) <= PAINT_MS,
        ),
        *(
            Figure(
                what=f"the same, frames a second while it is {what}",
                value=f"{len(gaps) / sum(gaps) * 1000:.0f}",
                beside=f"frame p50 {percentile(gaps, 0.5):.0f} ms, p99 {percentile(gaps, 0.99):.0f} ms",
                target=f"≥ {FRAMES:.0f}",
                met=len(gaps) / sum(gaps) * 1000 >= FRAMES,
            )
            for what, gaps in (("moved", pan), ("zoomed", zoom))
        ),
        Figure(
            what="the same, JavaScript heap after that",
            value=f"{held[1]:.0f} MB",
            beside=f"{held[0]:.0f} MB before a collection",
            target=f"≤ {HEAP_MB:.0f} MB",
            met=held[0] <= HEAP_MB,
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A page, and how its script says that it is drawn: JavaScript that waits for it, and that gives the time in ms."""

    path: str
    waits: str
    at: str
    # what runs before the page's own scripts
    before: str = ""


def paints(browser: Browser, url: str, token: str, size: tuple[int, int], drawn: Drawn) -> list[float]:
    """Milliseconds from the address to the first frame of a page, each time in a browser that has been here never before."""
    found = []
    for _ in range(LOADS):
        with look(browser, url, size) as one:
            one.log_in(token)
            page = one.context.new_page()
            if drawn.before:
                page.add_init_script(drawn.before)
            page.goto(url + drawn.path)
            page.wait_for_function(drawn.waits)
            found.append(float(page.evaluate(drawn.at)))
    return found


_MAP = Drawn(path="/fleet", waits=_DRAWN, at="performance.getEntriesByName('fleet-drawn')[0].startTime")


def _open(one: Look) -> Page:
    page = one.open("/fleet")
    page.wait_for_function(_DRAWN)
    return page


def _swing(n: int) -> float:
    """Between -1 and 1, to and fro."""
    return abs((n % 80) - 40) / 20 - 1


def _frames(page: Page, act: Callable[[int], None], *, hold: bool = False) -> list[float]:
    """Milliseconds between the frames while somebody does something to the map."""
    page.mouse.move(640, 500)
    if hold:
        page.mouse.down()
    page.evaluate(_FRAMES)
    began, n = time.monotonic(), 0
    while time.monotonic() - began < MOVED_S:
        act(n)
        n += 1
    found = page.evaluate("cancelAnimationFrame(window.counting), window.frames_at")
    if hold:
        page.mouse.up()
    return [later - earlier for earlier, later in itertools.pairwise(found)]


def heap(one: Look) -> tuple[float, float]:
    """MB before and after a collection."""
    session = one.context.new_cdp_session(one.page)
    before = session.send("Runtime.getHeapUsage")["usedSize"]
    session.send("HeapProfiler.collectGarbage")
    return before / 1e6, session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
