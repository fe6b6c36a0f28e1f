"""From the page's link to "healed" on a phone: how many taps each kind of remedy asks of whoever was woken."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.up import Up, running
from tests.web.kit import PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]

APPROVE = ".bar [data-verb=approve]"
GIVE = "dialog button[type=submit]"
OVER = ("resolved", "closed")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Steps wait for approvals."""
    with running(tmp_path_factory.mktemp("taps") / "data") as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        yield one


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("drill", "node", "steps"),
    [
        ("link-down", "sim-01", ["link.bounce"]),
        ("gpu-needs-reset", "sim-02", ["scheduler.drain", "gpu.reset"]),
        ("gpu-off-bus", "sim-04", ["scheduler.drain", "pci.rescan", "node.reboot", "bmc.power_cycle"]),
    ],
)
def test_the_link_and_two_taps_for_each_step_that_disrupts(
    up: Up, browser: Browser, drill: str, node: str, steps: list[str]
) -> None:
    """The link is the first tap, and each step that disrupts is one question: asked, and answered. Nothing else is to be tapped
    until the incident is over, and the page is never loaded anew.
    """
    up.gpuward("drill", drill, "--node", node)

    def asked() -> str:
        found = up.get("/api/v1/needs")["people"]
        return next((one["id"] for one in found if "approval" in one["kinds"] and one["node"] == node), "")

    incident = str(up.until(asked, f"a step on {node} waits for an approval"))
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        page = one.open(f"/incidents/{incident}")
        approved: list[str] = []

        def over() -> bool:
            if page.locator(APPROVE).count() and page.locator(APPROVE).is_visible():
                page.tap(APPROVE)
                approved.append(page.inner_text("dialog"))
                page.tap(GIVE)
                page.wait_for_selector("dialog", state="detached")
            return up.get(f"/api/v1/incidents/{incident}")["state"] in OVER

        up.until(over, f"{drill} is healed", within_s=200)
    assert len(approved) == len(steps), approved
    for step, question in zip(steps, approved, strict=True):
        assert f"{step}(" in question, "the question says exactly what is approved"


def test_the_second_of_two_clicks_that_another_window_asked_for_is_no_answer(
    up: Up, browser: Browser
) -> None:
    """A page elsewhere opens a window over the question, asks for two clicks there, and closes it at the first."""
    up.gpuward("drill", "link-down", "--node", "sim-03")

    def asked() -> str:
        found = up.get("/api/v1/needs")["people"]
        return next(
            (one["id"] for one in found if "approval" in one["kinds"] and one["node"] == "sim-03"), ""
        )

    incident = str(up.until(asked, "a step on sim-03 waits for an approval"))
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.log_in(token(up))
        page = one.open(f"/incidents/{incident}?say=approve")
        page.wait_for_selector(f"{GIVE}:not([disabled])")
        for event in (
            "window.dispatchEvent(new Event('focus'))",
            "document.dispatchEvent(new Event('visibilitychange'))",
        ):
            page.evaluate(f"{event}; document.querySelector('dialog form').requestSubmit()")
            page.wait_for_selector(f"{GIVE}[disabled]")
            page.wait_for_selector(f"{GIVE}:not([disabled])")
    assert up.get(f"/api/v1/incidents/{incident}")["state"] not in OVER
