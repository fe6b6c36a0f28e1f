"""What holds for all pages: a brain that is gone is told and waited for, two browsers agree, foreign text is text, and axe-core
finds nothing.
"""

import contextlib
import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, WITHIN_MS, Look, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With an incident that waits for an approval."""
    with running(tmp_path_factory.mktemp("frame") / "data") as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        one.gpuward("drill", "gpu-needs-reset")
        one.until(lambda: incident(one), "an incident is there")
        yield one


def incident(up: Up) -> str:
    """The id of the incident of the drill."""
    found = up.get("/api/v1/incidents")["incidents"]
    return next((one["id"] for one in found if one["node"].startswith("sim")), "")


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


def test_two_browsers_agree(up: Up, browser: Browser) -> None:
    """What one person says stands on the other's screen without a reload."""
    with look(browser, url(up), PHONE) as ann, look(browser, url(up), DESK, language="zh-CN") as ben:
        ann.log_in(token(up))
        ann.open(f"/incidents/{incident(up)}")
        ben.open(f"/incidents/{incident(up)}")
        expect(ben.page.locator("html")).to_have_attribute("lang", "zh-Hans")
        ann.page.locator("button[data-verb=note]").tap()
        ann.page.fill("dialog input[name=text]", "<img src=x onerror=alert(1)> the riser is loose")
        ann.page.tap("dialog button[type=submit]")
        line = ben.page.locator(".notes li", has_text="the riser is loose")
        expect(line).to_contain_text("<img src=x", timeout=WITHIN_MS)
        assert ben.page.locator(".notes img").count() == 0, "what people write is text"


ACTS = "\u202e\u2066\u200b\x1b[2J\x07\U000e0041\u061c"  # turns letters round, hides, is not to be seen


def test_what_acts_in_foreign_words_stands_there_as_its_number(up: Up, browser: Browser) -> None:
    """Wherever a page shows them, and in its title; what is handed back to the brain is as it was."""
    about = incident(up)
    note(up, about, f"turned {ACTS} round")
    up.gpuward("hold", "node/sim-02", "--why", f"held {ACTS} back", "--for", "30m")
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        for path, said in (
            (f"/incidents/{about}", "turned"),
            ("/", "held"),
            ("/audit", "turned"),
            ("/reports", "held"),
        ):
            page = one.open(path)
            line = page.get_by_text(re.compile(rf"{said} .u202e")).first
            expect(line).to_be_visible()
            shown = page.inner_text("body") + page.title()
            assert not [char for char in ACTS if char in shown and not char.isprintable()], path
        page = one.open(f"/audit?q={quote(f'turned {ACTS}')}")
        expect(page.locator("main")).to_contain_text("turned")
    up.gpuward("release", "node/sim-02")


@pytest.mark.parametrize("hours", [5, -5])
def test_a_browser_whose_clock_is_wrong_tells_ages_by_the_brains(
    up: Up, browser: Browser, hours: int
) -> None:
    """A fault of a few minutes is not five hours old, nor one that has not begun; and a report goes up to now."""
    opened = datetime.fromisoformat(up.get(f"/api/v1/incidents/{incident(up)}")["opened_at"]).timestamp()
    up.until(lambda: time.time() > opened + 5, "it is some seconds old")
    wrong = f"const right = Date.now; Date.now = () => right() + {hours} * 3600e3"
    with look(browser, url(up), DESK) as one:
        one.context.add_init_script(wrong)
        page = one.open("/")
        ages = page.locator(".row time").all_inner_texts()
        assert ages
        assert not [age for age in ages if re.search(r"\bh\b|^0 s", age)], ages
        with page.expect_response("**/api/v1/reports?*") as answered:
            one.open("/reports")
        until = float(re.findall(r"[?&]to=(\d+)", answered.value.url)[0])
        assert abs(until - time.time()) < 300


def test_who_has_not_logged_in_reads_and_is_offered_no_buttons(up: Up, browser: Browser) -> None:
    """On loopback everybody on the machine reads; the words are for those who have logged in."""
    with look(browser, url(up), PHONE) as one:
        one.expected = ("401",)
        page = one.open(f"/incidents/{incident(up)}")
        assert page.locator("[data-verb]").count() == 0
        page.click(".menu-button")
        page.click(".menu a[href='/sign-in']")
        one.ready()
        page.fill("input[name=token]", "gw_wrong_token")
        page.click("button[type=submit]")
        expect(page.locator(".banner.bad")).to_contain_text("wrong")


def test_the_link_of_the_command_line_logs_in(up: Up, browser: Browser) -> None:
    """Once. Afterwards the link is worth nothing, and the code has left the address."""
    link = up.gpuward("console").splitlines()[0]
    with look(browser, url(up)) as one, look(browser, url(up)) as thief:
        one.page.goto(link)
        one.page.wait_for_url(url(up) + "/")
        one.page.click(".menu-button")
        expect(one.page.locator(".menu")).to_contain_text("administrator")
        thief.expected = ("403",)
        thief.page.goto(link)
        expect(thief.page.locator(".banner.bad")).to_contain_text("used")
        assert "#" not in thief.page.url


def test_brain_and_broker_that_are_gone_are_told_and_waited_for(tmp_path: Path, browser: Browser) -> None:
    """kill -9 of both while a page is open: it says since when, shows what it knew, and goes on by itself."""
    data = tmp_path / "data"
    with running(data) as up, look(browser, url(up)) as one:
        one.expected = ("ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY_RESPONSE")
        page = one.open("/")
        broker = [int(line.split()[0]) for line in up.left() if "nats-server" in line]
        assert broker
        for pid in (*broker, up.pid("brain")):
            os.kill(pid, signal.SIGKILL)
        expect(page.locator(".banner.bad").first).to_be_visible(timeout=WITHIN_MS)
        assert page.locator("main h2").count() >= 1, "what was known still stands there"
        up.process.wait(60)
        with again(data, up.port) as back:
            expect(page.locator(".banner.bad")).to_have_count(0, timeout=WITHIN_MS)
            back.gpuward("drill", "link-down")
            expect(page.locator(".row", has_text="link-down").first).to_be_visible(timeout=WITHIN_MS)


def test_a_brain_that_hangs_is_told(tmp_path: Path, browser: Browser) -> None:
    """SIGSTOP: no connection breaks, and nothing comes. It is said all the same, and over when the brain goes on."""
    with running(tmp_path / "data") as up, look(browser, url(up)) as one:
        one.expected = ("ERR_", "Failed to load")
        page = one.open("/")
        os.kill(up.pid("brain"), signal.SIGSTOP)
        try:
            expect(page.locator(".banner.bad").first).to_be_visible(timeout=2 * WITHIN_MS)
        finally:
            os.kill(up.pid("brain"), signal.SIGCONT)
        expect(page.locator(".banner.bad")).to_have_count(0, timeout=2 * WITHIN_MS)


def test_a_storm_of_notes_does_not_keep_a_page_from_being_read(up: Up, browser: Browser) -> None:
    """Each answer takes longer than the next note: what came is seen all the same, while they still come."""
    with look(browser, url(up)) as one:
        page = one.open("/")

        def slowly(route: Route) -> None:
            time.sleep(0.7)  # a brain that has much to do: that is what is tried
            route.continue_()

        page.route("**/api/v1/needs*", slowly)
        ends = time.monotonic() + 120
        up.gpuward("hold", "node/sim-03", "--why", "a storm", "--for", "30m")
        seen = page.locator(".row", has_text="a storm")
        number = 0
        while not seen.count():
            assert time.monotonic() < ends, "it is never shown"
            number += 1
            note(up, incident(up), f"note {number}")
        up.gpuward("release", "node/sim-03")


def note(up: Up, about: str, text: str) -> None:
    """Somebody writes something down; through the API, as a command would take longer than the notes may be apart."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{up.port}/api/v1/command",
        json.dumps({"verb": "note", "args": {"id": about, "text": text}}).encode(),
        {"Authorization": f"Bearer {token(up)}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - http, above
        assert answer.status == 200


@contextlib.contextmanager
def again(data: Path, port: int) -> Iterator[Up]:
    """The same `gpuward up`, started anew."""
    up = Up(data, port=port)
    try:
        yield up.ready()
    finally:
        up.end()


@pytest.mark.parametrize(
    ("theme", "language"),
    covering(
        "each theme and each language stand in a page that CI looks at", ("light", "dark"), ("en", "zh-CN")
    ),
)
def test_axe_finds_nothing(up: Up, browser: Browser, language: str, theme: str) -> None:
    """On every page, on a phone and at a desk; and nothing stands out to the right."""
    for size in (PHONE, DESK):
        with look(browser, url(up), size, language=language, theme=theme) as one:  # type: ignore[arg-type]
            one.log_in(token(up))
            for path in ("/", "/incidents", f"/incidents/{incident(up)}", "/sign-in"):
                one.open(path)
                assert one.violations() == [], (path, size)
                assert one.page.evaluate("document.documentElement.scrollWidth") <= size[0], (path, size)
            opened(one)


def opened(one: Look) -> None:
    """The menu and a question, too."""
    one.open("/")
    one.page.click(".menu-button")
    assert one.violations() == []
