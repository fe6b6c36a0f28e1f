"""The incident's page by the keyboard alone: what a person says is reached, given and heard, and the keyboard stays."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.up import Up, running
from tests.web.kit import DESK, Look, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]

MOST_STOPS = 150
# What a live region says, and whether a question lies over the page then: nobody hears it
HEARD = """() => {
  window.heard = []
  const seen = new MutationObserver(() => {
    const text = document.querySelector('[role=status]').textContent.trim()
    const covered = Boolean(document.querySelector('dialog[open]'))
    if (text && text !== window.heard.at(-1)?.text) window.heard.push({ text, covered })
  })
  seen.observe(document.body, { childList: true, subtree: true, characterData: true })
}"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """On one node a step waits for an approval, on another a hold keeps a run from going on."""
    with running(tmp_path_factory.mktemp("keys") / "data") as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-01")
        one.gpuward("hold", "node/sim-02", "--why", "cables", "--for", "4h")
        for node in ("sim-01", "sim-02"):
            one.gpuward("drill", "gpu-needs-reset", "--node", node)
        yield one


def incident_of(up: Up, node: str, state: str) -> str:
    """The incident of a node whose run is in this state."""

    def there() -> str:
        found = [one for one in up.get("/api/v1/incidents")["incidents"] if one["node"] == node]
        runs = [up.get(f"/api/v1/runs/{run}") for one in found for run in one["runs"]]
        return next((run["incident"] for run in runs if run["state"] == state), "")

    return str(up.until(there, f"a run on {node} is in {state}"))


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


def come_to(page: Page, name: str) -> None:
    """By the Tab key, from the beginning of the page."""
    page.evaluate("document.activeElement.blur(); document.body.focus()")
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    pytest.fail(f"the keyboard does not come to {name!r}")


def described(one: Look) -> tuple[str, str]:
    """Name and description of the dialog that is open, as a screen reader has them."""
    session = one.context.new_cdp_session(one.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    (dialog,) = [
        node for node in nodes if node.get("role", {}).get("value") == "dialog" and not node.get("ignored")
    ]
    return dialog["name"]["value"], dialog.get("description", {}).get("value", "")


def slowly(one: Look) -> None:
    """The page reads again what it shows over a way that takes its time, and no note comes first."""
    one.expected = ("ERR_FAILED",)
    one.page.route("**/api/v1/watch*", lambda route: route.abort())

    def late(route: Route) -> None:
        answer = route.fetch()
        time.sleep(0.3)  # the way that takes its time
        route.fulfill(response=answer)

    one.page.route("**/api/v1/explain/*", late)


def test_a_note_is_written_down(up: Up, browser: Browser) -> None:
    """Tab, Enter, the words, Enter: it stands on the page, is heard, and the next one is an Enter away."""
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        slowly(one)
        page = one.open(f"/incidents/{incident_of(up, 'sim-01', 'approval')}")
        page.evaluate(HEARD)
        come_to(page, "Add a note")
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open] input[name=text]")).to_be_focused()
        name, told = described(one)
        assert name
        assert page.locator("dialog p").first.inner_text() in told
        expect(page.locator("dialog button[type=submit]")).to_be_enabled()
        page.keyboard.type("the riser is loose")
        page.keyboard.press("Enter")
        expect(page.locator("dialog")).to_have_count(0)
        expect(page.locator(".notes")).to_contain_text("the riser is loose")
        expect(page.locator("[data-verb=note]")).to_be_focused()
        heard = page.evaluate("window.heard")
        assert heard, "nothing was heard"
        assert "the riser is loose" in heard[-1]["text"]
        assert not any(said["covered"] for said in heard)


def test_what_is_approved_is_read_to_who_cannot_see_it(up: Up, browser: Browser) -> None:
    """With the question, not only when somebody goes looking for it."""
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        page = one.open(f"/incidents/{incident_of(up, 'sim-01', 'approval')}")
        come_to(page, "Approve")
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open]")).to_be_visible()
        _, told = described(one)
        for wanted in ("drain", "scheduler.drain", "Disrupts"):
            assert wanted in told, told
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_a_fault_is_taken_over(up: Up, browser: Browser) -> None:
    """Enter alone says no, and the keyboard is on the button again; with a reason it is done. The button is gone then, so the
    keyboard is on the page.
    """
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        slowly(one)
        page = one.open(f"/incidents/{incident_of(up, 'sim-02', 'held')}")
        page.evaluate(HEARD)
        over = page.get_by_role("button", name="Stop it, I take over")
        come_to(page, "Stop it, I take over")
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open] button", has_text="Cancel")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("dialog")).to_have_count(0)
        expect(over).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open] button[type=submit]")).to_be_enabled()
        page.keyboard.press("Shift+Tab")
        expect(page.locator("dialog input[name=why]")).to_be_focused()
        page.keyboard.type("I am at the rack")
        page.keyboard.press("Enter")
        expect(page.locator("dialog")).to_have_count(0)
        expect(over).to_have_count(0)
        expect(page.locator("#main")).to_be_focused()
        expect(page.locator(".notes")).to_contain_text("I am at the rack")
        heard = page.evaluate("window.heard")
        assert "I am at the rack" in heard[-1]["text"]
        assert not any(said["covered"] for said in heard)


def test_a_button_stays_the_one_that_the_keyboard_is_on(up: Up, browser: Browser) -> None:
    """While the page changes under it: whoever is about to press Hold does not press what has come into its place."""
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        incident = incident_of(up, "sim-01", "approval")
        page = one.open(f"/incidents/{incident}")
        page.locator(".bar [data-verb=hold]").focus()
        before = page.locator(".bar button").count()
        up.gpuward("ack", incident)  # somebody else
        expect(page.locator(".bar button")).to_have_count(before - 1)
        assert page.evaluate("document.activeElement.dataset.verb") == "hold"


@pytest.mark.parametrize("path", ["/", "/incidents/{}"])
def test_a_button_in_a_list_stays_that_of_its_line(up: Up, browser: Browser, path: str) -> None:
    """A hold that somebody else ends takes its own button with it, and no other line's."""
    here = incident_of(up, "sim-01", "approval")
    for why in ("the first", "the second"):
        up.gpuward("hold", "node/sim-01", "--why", why, "--for", "4h")
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        page = one.open(path.format(here))
        mine = page.locator(".row, .waits").filter(has_text="the second").locator("[data-verb=release]")
        mine.focus()
        holds = {hold["why"]: hold["id"] for hold in up.get("/api/v1/status")["holds"]}
        up.gpuward("release", holds["the first"])
        expect(page.get_by_text("the first")).to_have_count(0)
        expect(mine).to_be_focused()
        up.gpuward("release", holds["the second"])
