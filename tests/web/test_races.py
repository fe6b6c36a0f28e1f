"""Two people, a way that breaks, a browser's own buttons: a word counts once, for what was seen, and no question is left."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.up import Up, running
from tests.web.kit import DESK, PHONE, WITHIN_MS, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Steps wait for approvals."""
    with running(tmp_path_factory.mktemp("races") / "data") as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        yield one


def asks(up: Up, node: str, drill: str = "gpu-needs-reset") -> str:
    """A new incident of a node whose step waits for an approval."""
    up.gpuward("drill", drill, "--node", node)

    def waiting() -> str:
        found = up.get("/api/v1/needs")["people"]
        return next((one["id"] for one in found if "approval" in one["kinds"] and one["node"] == node), "")

    return str(up.until(waiting, f"a step on {node} waits for an approval"))


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


def approvals(up: Up, incident: str) -> int:
    """How often a step of it was approved."""
    return sum(len(run["approvals"]) for run in up.get(f"/api/v1/explain/{incident}")["runs"])


def test_an_approval_after_a_no_is_none(up: Up, browser: Browser) -> None:
    """Whose question was open before is told why, cannot give it again, and looks again at what is."""
    incident = asks(up, "sim-01")
    with look(browser, url(up), PHONE) as one, look(browser, url(up), DESK) as two:
        one.expected = ("409",)
        for browser_ in (one, two):
            browser_.log_in(token(up))
            browser_.open(f"/incidents/{incident}")
        one.page.tap(".bar [data-verb=approve]")
        two.page.click(".bar [data-verb=deny]")
        two.page.fill("dialog input[name=why]", "a job is there")
        two.page.click("dialog button[type=submit]")
        expect(two.page.locator("dialog")).to_have_count(0)
        one.page.tap("dialog button[type=submit]")
        expect(one.page.locator("dialog [role=alert]")).not_to_be_empty()
        expect(one.page.locator("dialog button[type=submit]")).to_have_count(0)
        one.page.tap("dialog button")
        expect(one.page.locator("[data-verb=approve]")).to_have_count(0)
    assert approvals(up, incident) == 0


def test_two_taps_at_once_are_one_word(up: Up, browser: Browser) -> None:
    """A second tap while the first one is under way does nothing; back from where it was given, no question is open."""
    incident = asks(up, "sim-02")
    with look(browser, url(up), PHONE) as one:
        one.log_in(token(up))
        sent: list[str] = []
        one.page.on(
            "request", lambda asked: sent.append(asked.url) if asked.url.endswith("/command") else None
        )
        page = one.open("/")
        page.locator(f".row:has(a[href='/incidents/{incident}']) [data-verb=approve]").tap()
        yes = page.locator("dialog button[type=submit]")
        expect(yes).to_be_enabled()
        yes.evaluate("button => { button.click(); button.click() }")
        expect(page.locator("dialog")).to_have_count(0)
        assert len(sent) == 1
        assert approvals(up, incident) == 1
        one.open(f"/incidents/{incident}")
        page.locator("[data-verb=hold]").first.tap()
        expect(page.locator("dialog[open]")).to_be_visible()
        page.go_back()
        expect(page.locator("dialog")).to_have_count(0)
        expect(page.locator("#needs")).to_be_visible()
        page.go_forward()
        expect(page.locator(".incident")).to_be_visible()
        expect(page.locator("dialog")).to_have_count(0)
        assert len(sent) == 1, "neither way says anything again"


def again(data: Path, port: int) -> Iterator[Up]:
    """Started anew on the same address."""
    up = Up(data, port=port)
    try:
        yield up.ready()
    finally:
        up.end()


def test_a_word_that_does_not_get_through_waits_for_its_person(up: Up, browser: Browser) -> None:
    """Without a network the question stays, and says why; it is given, once, when there is one again."""
    incident = asks(
        up, "sim-03", "gpu-off-bus"
    )  # a third node with the cause of the others would wait for its own reason
    with look(browser, url(up), PHONE) as one:
        one.expected = ("ERR_",)
        one.log_in(token(up))
        page = one.open(f"/incidents/{incident}")
        page.tap(".bar [data-verb=approve]")
        yes = page.locator("dialog button[type=submit]")
        one.context.set_offline(True)
        yes.tap()
        expect(page.locator("dialog [role=alert]")).not_to_be_empty()
        expect(page.locator(".banner.bad").first).to_be_visible()
        assert approvals(up, incident) == 0
        one.context.set_offline(False)
        yes.tap()
        expect(page.locator("dialog")).to_have_count(0, timeout=WITHIN_MS)
        up.until(lambda: approvals(up, incident) == 1, "it is approved, once")


def test_a_page_that_is_opened_while_the_brain_is_down(tmp_path: Path, browser: Browser) -> None:
    """It says that nobody answers, and shows what there is as soon as somebody does; a press is not needed."""
    data = tmp_path / "data"
    with contextlib.ExitStack() as both:
        with running(data) as first:
            one = both.enter_context(look(browser, url(first), PHONE))
            one.expected = ("ERR_", "503")
            one.log_in(token(first))
            page = one.open("/incidents")
        page.locator(".ways a[href='/audit']").tap()
        expect(page.locator("h1")).to_contain_text("cannot be shown", timeout=WITHIN_MS)
        both.enter_context(contextlib.contextmanager(again)(data, first.port))
        expect(page.locator("h1")).to_contain_text("Audit", timeout=WITHIN_MS)
        expect(page.locator(".banner.bad")).to_have_count(0, timeout=WITHIN_MS)
