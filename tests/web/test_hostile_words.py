"""Every text that the API gives to a page is somebody else's: of nodes, jobs, users, kernels, people. None of it is markup."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from brain.console.api.fleet_shapes import NodeWord
from brain.core.state import IncidentState, RunState
from tests.e2e.up import Up, running
from tests.web.kit import DESK, PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]

HIT = "document.body.dataset.hit=1"
XSS = (
    f"'\"></li></script></style><img src=x onerror={HIT}><svg onload={HIT}>\u202e\x1b[2J{{{{7*7}}}}${{{HIT}}}"
)
ADDRESS = f"javascript:{HIT}"
# What the pages take for one of a few words, a time or a number: anything else there is an answer of no brain
WORDS = re.compile(
    r"^(state|severity|verb|verbs|kinds?|role|how|mode|modes|at_most|repeat|disrupts|level|known|outcome|lang(uage)?|version|"
    r"columns?|unit|do|way|ways|health|affects|states|who)$"
)
STATES = {one.value for one in (*IncidentState, *RunState, *NodeWord)}
TIME = re.compile(r"^\d{4}-\d\d-\d\d")
ADDRESSES = re.compile(r"^(links?|url|href)$")


def hostile(value: Any, key: str = "") -> Any:
    """The same answer, with words of an enemy in each text."""
    if isinstance(value, dict):
        return {name: hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [hostile(one, key) for one in value]
    if not isinstance(value, str) or WORDS.match(key) or value in STATES or TIME.match(value):
        return value
    return ADDRESS if ADDRESSES.match(key) else f"{value}{XSS}"


# What is wider than the screen, where anything is
WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .sort((one, two) => two.getBoundingClientRect().right - one.getBoundingClientRect().right)
  .map((one) => one.outerHTML.slice(0, 200)).slice(0, 8)"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A step waits for an approval, a hold stands, a fault was healed."""
    with running(tmp_path_factory.mktemp("hostile") / "data") as one:
        one.gpuward("drill", "link-down", "--node", "sim-01", "--wait")
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        one.gpuward("hold", "node/sim-03", "--why", "cables", "--for", "30m")
        one.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")
        one.until(lambda: waiting(one), "a step waits for an approval")
        yield one


def waiting(up: Up) -> str:
    """The incident whose step waits for an approval; empty: none yet."""
    return next((one["id"] for one in up.get("/api/v1/needs")["people"] if "approval" in one["kinds"]), "")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/incidents?all=true",
        "/incidents/WAITING",
        "/fleet",
        "/nodes/sim-02",
        "/rules",
        "/rules/gpu-fatal-xid",
        "/runbooks/reset-gpu",
        "/rehearse",
        "/reports",
        "/audit",
        "/diagnose",
    ],
)
def test_no_text_of_the_api_is_markup(up: Up, browser: Browser, path: str) -> None:
    """Each text of each answer ends in what would run if it were any; on a phone and at a desk nothing runs, no element is made,
    no link leads to a script, and the page is there.
    """
    for size in (PHONE, DESK):
        with look(browser, f"http://127.0.0.1:{up.port}", size) as one:
            one.expected = ("404",)  # it asks for what there is under a name that an enemy has changed
            one.log_in(token(up))
            changed: list[str] = []

            def answer(route: Route) -> None:
                if "/watch" in route.request.url:
                    route.continue_()
                    return
                got = route.fetch(headers={**route.request.headers, "if-none-match": ""})
                body = hostile(got.json())
                changed.append(route.request.url)  # noqa: B023 - of this browser
                route.fulfill(response=got, body=json.dumps(body))

            one.page.route("**/api/v1/**", answer)
            page = one.open(path.replace("WAITING", waiting(up)))
            assert changed
            assert XSS[:20] in page.evaluate("document.body.textContent")
            assert page.evaluate("document.body.dataset.hit") is None
            assert page.locator("img[src=x], svg[onload], main script").count() == 0
            assert page.locator("a[href^='javascript']").count() == 0
            assert page.evaluate(WIDER) == [], "nothing stands out to the right"
            for button in page.locator("main button[data-verb]:not([data-verb=start]):visible").all()[:6]:
                button.click()
                page.wait_for_selector("dialog[open]")
                assert page.locator("dialog img[src=x]").count() == 0
                page.keyboard.press("Escape")
                page.wait_for_selector("dialog", state="detached")
            assert page.evaluate("document.body.dataset.hit") is None
