"""Counters as plots on the pages of a node and of a card: drawn, told as figures, and readable by everybody."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from brain.console.words import LANGUAGES
from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
XSS = "<img src=x onerror=document.body.dataset.hit=1>"
STEPS = 121
COUNTERS = "**/api/v1/nodes/*/counters*"


def wave(base: float, n: int) -> list[float | None]:
    """A line with a hole."""
    return [None if 40 <= step < 50 else base + (step * (n + 1) % 17) / 2 for step in range(STEPS)]


def panel(name: str, unit: str, base: float, labels: list[str], more: int = 0) -> dict[str, Any]:
    """One plot."""
    lines = [{"label": label, "values": wave(base + 3 * n, n)} for n, label in enumerate(labels)]
    return {"name": name, "unit": unit, "lines": lines, "more": more}


GPUS = [f"gpu/0000:{n:02x}:00" for n in (0x1B, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB)]
TOLD: dict[str, Any] = {
    "configured": True, "step_s": 720.0, "failed": [],
    "panels": [
        panel("gpu-temperature", "°C", 55, GPUS, more=2),
        panel("gpu-power", "W", 640, GPUS),
        panel("gpu-xid", "", 0, [XSS]),
        panel("node-load", "", 12, [""]),
        {"name": XSS, "unit": XSS, "lines": [{"label": "", "values": [0.0] * STEPS}], "more": 0},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With an incident on the first node."""
    with running(tmp_path_factory.mktemp("counters") / "data") as one:
        one.gpuward("drill", "link-down", "--node", "sim-01", "--wait")
        yield one


def answered(page: Page, up: Up, told: dict[str, Any]) -> list[str]:
    """The brain's answer, with this in it; returns the addresses that were asked."""
    asked: list[str] = []
    real = up.get("/api/v1/nodes/sim-01/counters")

    def change(route: Route) -> None:
        asked.append(route.request.url)
        body = {"since": real["since"], "until": real["until"]} | told
        route.fulfill(content_type="application/json", body=json.dumps(body))

    page.route(COUNTERS, change)
    return asked


def test_plots_of_a_node(up: Up, browser: Browser) -> None:
    """A line for each part with its hole, an incident marked, the figures beneath; another time is asked for by a tap."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        asked = answered(one.page, up, TOLD)
        page = one.open("/nodes/sim-01")
        plots = page.locator(".plots figure")
        expect(plots).to_have_count(5)
        first = plots.first
        assert first.locator("polyline").count() == 2 * len(GPUS), "each line has a hole"
        assert first.locator(".plot-mark").count() == 1
        name = first.locator("svg[role=img]").get_attribute("aria-label") or ""
        assert name == "GPU temperature, the last 24 h: from 55 to 84 °C", name
        first.locator("summary").click()
        assert first.locator("tbody tr").count() == len(GPUS)
        assert "gpu/0000:1b:00" in first.inner_text()
        assert "Lines that are not shown: 2" in first.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        assert page.locator("main img").count() == 0
        assert not page.evaluate("document.body.dataset.hit")
        page.click(".plots .choices button:last-child")
        expect(page.locator(".plots .choices button:last-child")).to_have_attribute("aria-pressed", "true")
        expect(plots).to_have_count(5)
        assert ["hours=24" in asked[0], "hours=168" in asked[1]] == [True, True]


def test_a_page_without_them(up: Up, browser: Browser) -> None:
    """Not configured, nothing known, not answered: each says who must do what, and the page is there all the same."""
    failed = {
        "configured": True,
        "step_s": 720.0,
        "panels": [],
        "failed": [f"Prometheus answered 500: {XSS}"],
    }
    for told, text in (
        (None, "gives it the site's Prometheus"),
        (failed | {"failed": []}, "Prometheus knows nothing of it"),
        (failed, f"Not answered: Prometheus answered 500: {XSS}"),
    ):
        with look(browser, f"http://127.0.0.1:{up.port}") as one:
            if told is not None:
                answered(one.page, up, told)
            page = one.open("/nodes/sim-01")
            expect(page.locator(".plots")).to_contain_text(text)
            expect(page.locator("h1")).to_have_text("sim-01")
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.expected = ("503",)
        one.page.route(
            COUNTERS,
            lambda route: route.fulfill(status=503, json={"detail": "others read the history"}),
        )
        page = one.open("/nodes/sim-01")
        expect(page.locator(".plots")).to_contain_text("Not answered: others read the history")
        one.page.unroute(COUNTERS)
        answered(one.page, up, TOLD)
        page.click(".plots p button")
        expect(page.locator(".plots figure")).to_have_count(5)


CARD: dict[str, Any] = {
    "serial": "1653", "node": "sim-01", "component": "gpu/0000:3b:00", "there": True, "told": {"model": "H100"}, "incidents": [],
    "runs": [], "places": [{"node": "sim-01", "component": "gpu/0000:3b:00", "since": None, "seen": None}],
}  # fmt: skip


def fulfilled(answer: dict[str, Any], route: Route) -> None:
    """The brain's answer is this."""
    route.fulfill(json=answer)


def test_a_card_has_its_own(up: Up, browser: Browser) -> None:
    """Where it is now, and of that GPU alone; one that is elsewhere by now, or is no GPU, has none."""
    for given, plotted in (({}, True), ({"there": False}, False), ({"component": "nic/mlx5_0"}, False)):
        with look(browser, f"http://127.0.0.1:{up.port}") as one:
            one.page.route("**/api/v1/cards/*", partial(fulfilled, CARD | given))
            asked = answered(one.page, up, TOLD)
            page = one.open("/cards/1653")
            expect(page.locator(".plots figure")).to_have_count(5 if plotted else 0)
            assert [url.partition("?")[2] for url in asked] == (
                ["hours=24&component=gpu%2F0000%3A3b%3A00"] if plotted else []
            )


@pytest.mark.parametrize(
    ("theme", "language"),
    covering("each theme and each language stand in a page that CI looks at", ("light", "dark"), LANGUAGES),
)
def test_a_cards_page_with_its_counters_can_be_read(
    up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]
) -> None:
    """What it is, where it was, and its plots with their figures; on a phone and at a desk nothing stands out to the right."""
    for size in (PHONE, DESK):
        with look(browser, f"http://127.0.0.1:{up.port}", size, language=language, theme=theme) as one:
            one.page.route("**/api/v1/cards/*", partial(fulfilled, CARD))
            answered(
                one.page,
                up,
                TOLD | {"panels": [{**TOLD["panels"][0], "lines": TOLD["panels"][0]["lines"][:1]}]},
            )
            one.log_in(token(up))
            page = one.open("/cards/1653")
            plot = page.locator(".plots figure")
            expect(plot).to_have_count(1)
            expect(plot.locator("polyline")).to_have_count(2)
            expect(plot.locator("polyline").first).to_have_css("fill", "none")
            plot.locator("summary").click()
            assert "gpu/0000:1b:00" in plot.inner_text()
            assert "H100" in page.inner_text("#main")
            assert page.locator("header .small").count() == 1, (
                "no word about when it was told where nobody knows"
            )
            assert "sim-01" in page.inner_text("#main")
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert not one.violations()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_plots(
    up: Up, browser: Browser, theme: Literal["light", "dark"]
) -> None:
    size = PHONE if theme == "dark" else DESK
    for language in LANGUAGES:
        with look(browser, f"http://127.0.0.1:{up.port}", size, language=language, theme=theme) as one:
            answered(one.page, up, TOLD)
            one.log_in(token(up))
            page = one.open("/nodes/sim-01")
            expect(page.locator(".plots figure")).to_have_count(5)
            page.locator(".plots summary").first.click()
            assert not one.violations()
