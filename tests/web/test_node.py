"""The pages of a node and of a card, on a real brain: what they are made of, where a card was, what one can say."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser

from tests.benchmarks.full_brain import faults, full, gpus, publish
from tests.e2e.stack import Stack
from tests.web.kit import DESK, PHONE, Look, look

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]

CARD = "16530000001"  # in n0, at 0000:3b:00, where a GPU is lost


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Sixteen nodes; the GPU that n0 loses is found in n9 later."""
    with full(tmp_path_factory.mktemp("full"), 16, 0) as one:
        asyncio.run(publish(one.nats.url, itertools.islice(faults(16, 1), 1)))
        one.wait_for(lambda: one.incidents("gpu-lost"), "the GPU is lost")
        card = next(event for event in gpus(1) if event.data["serial"] == CARD)
        moved = replace(card, id="n9:s:100", node="n9", component="gpu/0000:1b:00")
        asyncio.run(publish(one.nats.url, [moved]))
        one.wait_for(lambda: one.get(f"/api/v1/cards/{CARD}").get("node") == "n9", "the card has moved")
        yield one


@pytest.fixture(scope="module")
def desk(whole: Stack, browser: Browser) -> Iterator[Look]:
    """An administrator at a desk."""
    with look(browser, whole.url, DESK) as one:
        one.log_in(whole.ann.read_text().strip())
        yield one


def test_a_node_tells_what_it_is_and_what_became_of_it(desk: Look) -> None:
    """Place, parts with serial numbers, firmware, its open incident, what was done; the map leads there and back."""
    page = desk.open("/nodes/n0")
    text = page.inner_text("main")
    for wanted in ("r0000", "leaf-000", "gpu-lost", "0000:3b:00", CARD, "G593-SD0", "5.15.0-1053"):
        assert wanted in text, wanted
    assert page.locator(".part-card").count() == 8
    assert page.locator(".part-card[open]").count() == 1, "the one that is lost"
    page.click("a:has-text('leaf-000')")
    page.wait_for_selector(".fleet-head")
    assert page.input_value("select[name=by]") == "leaf"
    assert "leaf:leaf-000" in page.input_value("input[name=q]")


def test_a_card_takes_its_history_along(desk: Look) -> None:
    """From n9, where it is, to n0, where it was lost, and to the incident of that time."""
    page = desk.open("/nodes/n9")
    page.click(f"summary:has-text('{CARD}')")
    page.click(f"a[href='/cards/{CARD}']")
    page.wait_for_selector(f"h1:has-text('{CARD}')")
    assert page.locator(".places a").all_inner_texts() == ["n9", "n0"]
    assert "n9" in page.inner_text(".where")
    assert page.locator(".row:has-text('gpu-lost') a[href='/nodes/n0']").count() == 1
    assert desk.violations() == []
    desk.expected = ("404",)
    desk.open("/cards/none")
    page.wait_for_selector("main:has-text('no card')")


def test_a_hold_from_the_phone(whole: Stack, browser: Browser) -> None:
    """With a question first; it stands on the page and in the brain, and ends from there."""
    with look(browser, whole.url, PHONE, theme="dark") as one:
        one.log_in(whole.ann.read_text().strip())
        page = one.open("/nodes/n5")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.tap(".bar [data-verb=hold]")
        page.fill("dialog input[name=why]", "a look at its fans")
        page.tap("dialog button[type=submit]")
        page.wait_for_selector("li:has-text('a look at its fans') [data-verb=release]")
        whole.wait_for(lambda: whole.get("/api/v1/nodes/n5").get("holds"), "the hold counts")
        page.tap("li:has-text('a look at its fans') [data-verb=release]")
        page.tap("dialog button[type=submit]")
        whole.wait_for(lambda: not whole.get("/api/v1/nodes/n5").get("holds"), "the hold has ended")
        page.wait_for_selector("li:has-text('a look at its fans') [data-verb=release]", state="detached")


def test_what_may_be_started_is_asked_first(desk: Look) -> None:
    """Only runbooks that people may start on a node are offered; nothing is started by looking."""
    page = desk.open("/nodes/n7")
    page.click(".bar [data-verb=start]")
    page.wait_for_selector("dialog[open] select[name=runbook]")
    offered = page.locator("dialog select[name=runbook] option").all_inner_texts()
    assert "inspect-node" in offered
    assert "inspect-fabric" not in offered
    assert "reset-gpu" not in offered
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
