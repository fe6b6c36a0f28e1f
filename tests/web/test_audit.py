"""The audit in a browser: filters in the address, new notes on top, and the file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, WITHIN_MS, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
XSS = '<img src=x onerror="document.body.dataset.hit=1">'


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With enough notes for two pages, and what people said among them."""
    with running(tmp_path_factory.mktemp("audit") / "data", nodes=2) as one:
        for number in range(55):
            one.gpuward("hold", "all", "--why", f"{number} {XSS}", "--for", "1h")
            one.gpuward("release", f"{newest(one)}")
        yield one


def newest(up: Up) -> str:
    """The id of the only hold."""
    (hold,) = up.get("/api/v1/status")["holds"]
    return str(hold["id"])


def top(of: Locator) -> float:
    """Where it is in the window, in pixels."""
    box = of.bounding_box()
    assert box is not None
    return box["y"]


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


def test_who_did_what_is_found_followed_and_exported(up: Up, browser: Browser) -> None:
    """By the filters, which stand in the address; older pages; a file of the same; names and reasons are text."""
    with look(browser, url(up)) as one:
        one.log_in(token(up))
        page = one.open("/audit")
        page.select_option("select[name=kind]", "operator.*")
        page.wait_for_url("**/audit?kind=operator.*")
        expect(page.locator(".audit li")).to_have_count(100)
        who = page.locator(".audit .audit-who").first.inner_text()
        page.locator(".audit .audit-who button").first.click()
        page.wait_for_url(lambda now: f"who={who}" in now)
        page.fill("input[name=who]", "nobody-*")
        page.press("input[name=who]", "Enter")
        expect(page.locator("#main .nothing")).to_be_visible()
        one.open(f"/audit?kind=operator.hold&who={who}")
        expect(page.locator(".audit li")).to_have_count(55)
        assert XSS in page.locator(".audit li").first.inner_text()
        assert page.evaluate("document.body.dataset.hit") is None
        assert page.locator("#main img").count() == 0
        with page.expect_download(timeout=WITHIN_MS) as got:
            page.click("a[download]")
        lines = [json.loads(line) for line in Path(got.value.path()).read_text().splitlines()]
        assert lines == up.get(f"/api/v1/notes?kind=operator.hold&who={who}")["notes"]
        assert got.value.suggested_filename.endswith("-audit.ndjson")
        one.open("/audit?kind=operator.*")
        first = page.locator(".audit li").first.inner_text()
        page.click("text=Older")
        page.wait_for_url("**cursor=**")
        expect(page.locator(".audit li").first).not_to_have_text(first)
        page.click("text=Newest")
        page.wait_for_url(lambda now: "cursor" not in now)


def test_new_notes_come_on_top_and_never_move_what_is_read(up: Up, browser: Browser) -> None:
    """At the top they appear; further down they are counted, and what one reads stays where it is."""
    with look(browser, url(up), PHONE) as one:
        one.log_in(token(up))
        page = one.open("/audit?kind=operator.*")
        up.gpuward("hold", "all", "--why", "seen at once", "--for", "1h")
        page.wait_for_selector(".audit li:first-child:has-text('seen at once')")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.evaluate("scrollTo(0, 2000)")
        at = page.locator(".audit li").nth(20)
        text, before = at.inner_text(), top(at)
        up.gpuward("release", newest(up))
        page.wait_for_selector(".fresh button:has-text('1 new note')")
        assert at.inner_text() == text
        assert abs(top(at) - before) < 1, "less than a pixel"
        page.click(".fresh button")
        page.wait_for_selector(".audit li:first-child:has-text('releases')")
        assert page.evaluate("scrollY") == 0
        # What does not fit the filter changes nothing
        page = one.open("/audit?kind=page.*")
        before = page.locator(".audit li").count()
        up.gpuward("hold", "all", "--why", "not here", "--for", "1h")
        up.gpuward("release", newest(up))
        up.gpuward("drill", "gpu-off-bus")  # which is paged
        expect(page.locator(".audit li")).not_to_have_count(before)
        assert "not here" not in page.inner_text("#main")


@pytest.mark.parametrize(
    ("language", "theme"),
    covering(
        "each theme and each language stand in a page that CI looks at", ("en", "zh-CN"), ("light", "dark")
    ),
)
def test_everybody_can_read_it(
    up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]
) -> None:
    """axe-core finds nothing."""
    with look(browser, url(up), DESK, language=language, theme=theme) as one:
        one.log_in(token(up))
        one.open("/audit")
        assert not one.violations()
