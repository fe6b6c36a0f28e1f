"""Drills from the console: one is chosen, started, and watched until it is over, on a phone and on a desk."""

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from brain.console.words import LANGUAGES
from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, Look, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
OVER_MS = 120_000  # until a drill has come to its end
XSS = "<img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all: each test breaks another node."""
    with running(tmp_path_factory.mktemp("rehearse") / "data", nodes=6) as one:
        yield one


def begin(one: Look, drill: str, node: str) -> Page:
    """Chooses a drill and a node, answers the question, and waits for what comes of it."""
    page = one.open("/rehearse")
    page.fill("input[type=search]", drill)
    page.check(f".drill:has(code:text-is('{drill}')) input")
    page.select_option(".bar select", node)
    page.click(".bar button[type=submit]")
    assert node in page.inner_text("dialog .exact"), "the question says where"
    page.click("dialog button[type=submit]")
    page.wait_for_selector(".stages")
    return page


def fits(page: Page) -> bool:
    """Does nothing stand out to the right?"""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_drill_is_watched_until_it_is_healed(up: Up, browser: Browser) -> None:
    """On a phone: what it does and how it ends stand in the list, the ladder goes on by itself, the time-line counts from the
    fault, and the address can be opened anew.
    """
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        page = one.open("/rehearse")
        page.check(".drill:has(code:text-is('link-down')) input")
        drills = {drill["name"]: drill for drill in up.get("/api/v1/drill")["drills"]}
        chosen = page.inner_text(".drill.chosen")
        assert drills["link-down"]["summary"] in chosen
        assert drills["link-down"]["ends"] in chosen
        assert page.locator(".drill").count() == len(drills), "all of them are there"
        button = page.locator(".bar button[type=submit]").bounding_box()
        assert button is not None
        assert (button["height"] >= 44, button["y"] > PHONE[1] * 2 / 3) == (True, True), "in reach of a thumb"
        assert fits(page)
        begin(one, "link-down", "sim-01")
        page.wait_for_selector(".verdict.good", timeout=OVER_MS)
        assert page.locator(".stage.done").count() == 5
        assert "done" in page.inner_text(".rung:has(strong:text-is('bounce')) .mark")
        assert "without anybody" in page.inner_text(".verdict")
        times = page.locator(".offsets time").all_inner_texts()
        assert times[-1].startswith("+")
        assert page.locator(".offsets li:has-text('incident.closed')").count() == 1
        assert fits(page)
        page.reload()
        page.wait_for_selector(".verdict.good")


def test_what_needs_a_person_is_said_and_can_be_repaired(up: Up, browser: Browser) -> None:
    """A cable that is cut: bouncing does not help. The simulated technician is a tap away, and the page shows the end."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        page = begin(one, "cable-cut", "sim-02")
        page.wait_for_selector(".verdict.bad:has-text('needs a person')", timeout=OVER_MS)
        page.wait_for_selector(".rung.failed")
        page.click(".bar button:has-text('Repair')")
        assert "sim-02" in page.inner_text("dialog")
        page.click("dialog button[type=submit]")
        page.wait_for_selector(".verdict.good", timeout=OVER_MS)


def test_an_approval_is_one_tap_away(up: Up, browser: Browser) -> None:
    """Where a step waits for one, the incident's page opens from here; what comes of it is seen here again."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        page = begin(one, "job-hung", "sim-03")
        page.click(".bar a.main", timeout=OVER_MS)
        page.click(".bar [data-verb=approve]")
        page.click("dialog button[type=submit]")
        page.wait_for_selector(".rung.done, .rung.now")
        page.go_back()
        page.wait_for_selector(".verdict.good:has-text('with people')", timeout=OVER_MS)


def test_a_drill_on_all_nodes_asks_for_no_node(up: Up, browser: Browser) -> None:
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.log_in(token(up))
        page = one.open("/rehearse")
        page.check(".drill:has(code:text-is('sm-failover')) input")
        expect(page.locator(".bar select")).to_have_count(0)
        page.click(".bar button[type=submit]")
        assert "All simulated nodes" in page.inner_text("dialog")
        page.click("dialog button:has-text('Cancel')")
        page.fill("input[type=search]", "no drill is like this")
        page.wait_for_selector(".drills .nothing")


def test_whoever_has_not_logged_in_starts_nothing(up: Up, browser: Browser) -> None:
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open("/rehearse")
        assert page.locator(".bar button").count() == 0
        assert "Log in" in page.inner_text(".bar")


def test_an_address_is_foreign_text(up: Up, browser: Browser) -> None:
    """Whoever makes a link can write what they like into it: it stays text, and times that are none are none."""
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open(f"/rehearse?drill={XSS}&on={XSS}&at=2026-01-01T00:00:00Z")
        assert page.inner_text("h1") == XSS
        assert page.locator("main img").count() == 0
        assert "taken" not in (page.title(), page.url)
        page = one.open(f"/rehearse?drill=link-down&on=sim-01&at={XSS}")
        page.wait_for_selector(".drill")


@pytest.mark.parametrize(
    ("theme", "language"),
    covering("each theme and each language stand in a page that CI looks at", ("light", "dark"), LANGUAGES),
)
def test_axe_finds_nothing(up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]) -> None:
    """Neither in the list nor in a drill's course."""
    size = PHONE if theme == "dark" else DESK
    with look(browser, f"http://127.0.0.1:{up.port}", size, language=language, theme=theme) as one:
        one.log_in(token(up))
        page = one.open("/rehearse")
        page.check(".drill >> nth=1 >> input")
        assert not one.violations()
        one.open("/rehearse?drill=link-down&on=*&at=2026-01-01T00:00:00Z")
        page.wait_for_selector(".stages")
        assert not one.violations()
        assert fits(page)
