"""`python -m tests.web.screenshots` (make screenshots): the pictures of docs/images, from a real `gpuward up` and its drills,
and from the report of a simulated month; `month` alone takes the latter.
"""

import asyncio
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser

from brain.cli.client import Client
from brain.cli.top.app import Top
from brain.console.words import Words
from tests.e2e.up import Up, running
from tests.web.kit import DESK, PHONE, chromium, look, token

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    """Takes them all."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        month(Path(folder) / "month.html", browser)
    if sys.argv[1:] == ["month"]:
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder) / "data", nodes=16) as up,
        chromium() as browser,
    ):
        story(up)
        take(up, browser)
        terminal(up, browser)


def month(file: Path, browser: Browser) -> None:
    """The report of Llama 3's 54 days on 512 nodes, down to its plots."""
    gpuward = Path(sys.executable).parent / "gpuward"
    args = ("llama3-54d", "--nodes", "512", "--seed", "7", "--html", str(file))
    subprocess.run([gpuward, "simulate", *args], check=True, capture_output=True)
    page = browser.new_page(viewport={"width": DESK[0], "height": 1120})
    page.goto(file.as_uri())
    page.screenshot(path=IMAGES / "month.png")
    page.close()


def story(up: Up) -> None:
    """One that healed, one that waits for an approval, one that is left to people, one that is held."""
    up.gpuward("drill", "link-down", "--node", "sim-05", "--wait")
    up.gpuward("drill", "gpu-off-bus", "--node", "sim-11", "--wait")
    up.gpuward("mode", "reset-gpu", "approve", "--nodes", "sim-*")
    up.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")
    up.until(lambda: _needs(up, "approval"), "a step waits for an approval")
    up.gpuward("drill", "gpu-dead", "--node", "sim-14")
    up.until(lambda: _needs(up, "no_remedy"), "a fault is left to people")
    up.gpuward("hold", "node/sim-09", "--why", "cabling until noon", "--for", "4h")


def take(up: Up, browser: Browser) -> None:
    """Each as its name says."""
    url = f"http://127.0.0.1:{up.port}"
    with look(browser, url, PHONE, theme="dark") as one:
        one.log_in(token(up))
        one.open("/")
        one.page.screenshot(path=IMAGES / "now-phone.png")
    with look(browser, url, DESK) as one:
        one.log_in(token(up))
        one.open(f"/incidents/{_needs(up, 'approval')}")
        one.page.screenshot(path=IMAGES / "incident.png")
        one.open("/fleet")
        one.page.wait_for_timeout(
            500
        )  # the map is drawn in the next frames; a picture needs no more than luck
        one.page.screenshot(path=IMAGES / "fleet.png")
    with look(browser, url, DESK, language="zh-CN", theme="dark") as one:
        one.log_in(token(up))
        one.open("/")
        one.page.screenshot(path=IMAGES / "now-zh.png")


def terminal(up: Up, browser: Browser) -> None:
    """`gpuward top` on the step that waits for an approval."""
    page = browser.new_page(viewport={"width": DESK[0], "height": 760})
    with ThreadPoolExecutor(1) as beside:  # Playwright has this thread's event loop
        drawn = beside.submit(asyncio.run, _drawn(up)).result()
    page.set_content(f"<style>body {{ margin: 0 }} svg {{ width: 100% }}</style>{drawn}")
    page.screenshot(path=IMAGES / "top.png")
    page.close()


async def _drawn(up: Up) -> str:
    client = Client(f"http://127.0.0.1:{up.port}")
    app = Top(client, Words("en"), client.get("status"))
    async with app.run_test(size=(120, 34)) as pilot:
        wanted = _needs(up, "approval")
        while (one := app.view.selected) is None or one.key != wanted:
            await pilot.press("down")
            await pilot.pause(0.1)
        while "WHY WE THINK SO" not in "".join(
            line.text for line in app.screen._compositor.render_strips(app.size)
        ):
            await pilot.pause(0.1)
        return app.export_screenshot()


def _needs(up: Up, kind: str) -> str:
    """The id of the first item that needs a person for this reason; empty: none does."""
    found = up.get("/api/v1/needs")["people"]
    return next((one["id"] for one in found if kind in one["kinds"]), "")


if __name__ == "__main__":
    main()
