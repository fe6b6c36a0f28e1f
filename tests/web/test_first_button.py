"""The first button of an incident's page is the one that its state asks for, whoever looks at it."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from brain.console.words import LANGUAGES
from tests.e2e.up import Up, running
from tests.web.kit import DESK, PHONE, look, token

XSS = "<img src=x onerror=document.body.dataset.hit=1>"
pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A step waits for an approval."""
    with running(tmp_path_factory.mktemp("first") / "data") as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        one.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")
        yield one


@pytest.fixture(scope="module")
def incident(up: Up) -> str:
    """Its id."""

    def waiting() -> str:
        return next(
            (one["id"] for one in up.get("/api/v1/needs")["people"] if "approval" in one["kinds"]), ""
        )

    return str(up.until(waiting, "a step waits for an approval"))


def changed(state: str, acked: str, runs: list[str], role: str, route: Route) -> None:
    """The real answer, with this state; its runs in these states."""
    body: dict[str, Any] = route.fetch().json()
    if "incident" in body:
        body["incident"] |= {"state": state}
        body["incident"]["pages"] |= {"sent": 1, "acked_by": acked}
        body["runs"] = [
            body["runs"][0]
            | {"state": one, "approval": body["runs"][0]["approval"] if one == "approval" else None}
            for one in runs
        ]
    elif role and "role" in body:
        body["role"] = role
    route.fulfill(content_type="application/json", body=json.dumps(body))


@pytest.mark.parametrize(
    ("state", "acked", "runs", "role", "verbs"),
    [
        ("healing", "", ["approval"], "", ["approve", "deny", "ack", "hold", "close"]),
        ("healing", "ann", ["approval"], "", ["approve", "deny", "hold", "close"]),
        ("healing", "", ["approval"], "operator", ["ack", "deny", "hold", "close"]),
        ("needs_human", "", ["exhausted"], "", ["ack", "hold", "close"]),
        ("needs_human", "ann", ["exhausted"], "", ["hold", "close"]),
        ("healing", "ann", ["performing"], "", ["hold", "deny", "close"]),
        ("healing", "", ["performing"], "", ["ack", "deny", "hold", "close"]),
        ("recovered", "ann", ["succeeded"], "", ["hold", "close"]),
        ("closed", "", ["succeeded"], "", []),
    ],
)
def test_the_first_button_fits_the_state(
    up: Up,
    browser: Browser,
    incident: str,
    state: str,
    acked: str,
    runs: list[str],
    role: str,
    verbs: list[str],
) -> None:
    """An approval, else that somebody has it, else a hold; it alone stands out, and whoever may not approve has the next one."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        one.page.route("**/api/v1/explain/*", partial(changed, state, acked, runs, role))
        one.page.route("**/api/v1/me", partial(changed, state, acked, runs, role))
        page = one.open(f"/incidents/{incident}")
        buttons = page.locator(".bar button")
        assert [button.get_attribute("data-verb") for button in buttons.all()] == verbs
        main = page.locator(".bar button.main")
        assert [button.get_attribute("data-verb") for button in main.all()] == verbs[:1]
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_axe_finds_nothing_wrong_with_it(up: Up, browser: Browser, incident: str) -> None:
    for size in (PHONE, DESK):
        with look(browser, f"http://127.0.0.1:{up.port}", size, theme="dark") as one:
            one.log_in(token(up))
            one.open(f"/incidents/{incident}")
            assert not one.violations()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_ticket_of_an_incident_stands_on_its_page(
    up: Up, browser: Browser, incident: str, language: str
) -> None:
    """Its key and its channel, in a row of its own under who was told; whatever the system calls it, it is text."""
    tickets = {"jira": "GPU-4711", "other": XSS}

    def with_tickets(route: Route) -> None:
        body: dict[str, Any] = route.fetch().json()
        body["incident"]["pages"]["tickets"] = tickets
        route.fulfill(content_type="application/json", body=json.dumps(body))

    for size in (PHONE, DESK):
        with look(browser, f"http://127.0.0.1:{up.port}", size, language=language) as one:
            one.log_in(token(up))
            page = one.open(f"/incidents/{incident}")
            assert page.locator(".ticket").count() == 0, "it has none"
            page.route("**/api/v1/explain/*", with_tickets)
            one.open(f"/incidents/{incident}")
            rows = page.locator(".ticket")
            said = "工单" if language == "zh" else "Ticket"
            assert rows.all_inner_texts() == [f"{said} {key} ({channel})" for channel, key in tickets.items()]
            assert page.locator("main img").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert not one.violations()
