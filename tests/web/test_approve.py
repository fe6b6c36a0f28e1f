"""At three in the morning: the page's link, and an approval, on a phone."""

import json
from pathlib import Path

import pytest

from tests.e2e.up import running
from tests.web.kit import PHONE, chromium, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]


def test_a_page_s_link_leads_to_an_approval_in_two_taps(tmp_path: Path) -> None:
    """On 390 pixels, while a drill runs: the incident is what the link opens, the button is in reach of a thumb, and what is
    approved stands in the question. The run goes on, and the page shows it without being loaded anew.
    """
    with (
        running(tmp_path / "data") as up,
        chromium() as browser,
        look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one,
    ):
        up.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        one.log_in(token(up))
        up.gpuward("drill", "gpu-needs-reset")

        def waiting() -> str:
            found = [
                item for item in up.get("/api/v1/incidents")["incidents"] if item["node"].startswith("sim")
            ]
            runs = [up.get(f"/api/v1/runs/{run}") for item in found for run in item["runs"]]
            return next((run["incident"] for run in runs if run["state"] == "approval"), "")

        incident = up.until(waiting, "a step waits for an approval")
        page = one.open(f"/incidents/{incident}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], (
            "nothing stands out to the right"
        )
        sure = page.inner_text(".sureness")
        assert "How sure: " in sure
        assert "it ends when" in sure, "which facts would change it"
        one.language("zh")
        assert "把握程度" in page.inner_text(".sureness")
        assert "结束" in page.inner_text(".sureness")
        one.language("en")
        other = one.context.new_page()  # the same person's tablet, where the same question is open
        other.goto(page.url)
        other.tap(".bar [data-verb=approve]")
        page.tap(".bar [data-verb=approve]")
        assert "scheduler.drain" in page.inner_text("dialog"), "the question says exactly what is approved"
        page.tap("dialog button[type=submit]")
        page.wait_for_selector(".rung:has-text('drain').done, .rung:has-text('drain').now")
        said = json.loads(up.gpuward("explain", incident, "--json"))
        assert any("approve" in line["kind"] for run in said["runs"] for line in run["approvals"])
        other.tap("dialog button[type=submit]")
        refused = other.inner_text("dialog [role=alert]")
        assert "seen=" not in refused, refused
        assert other.locator("dialog button[type=submit]").count() == 0, "what is over cannot be said again"
        other.tap("dialog button")
        other.wait_for_selector("dialog", state="detached")
