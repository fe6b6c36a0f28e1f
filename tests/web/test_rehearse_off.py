"""The page of drills at a brain that takes none. Apart from the others: its brain runs in this process' event loop, where no
browser may be driven.
"""

import asyncio
from pathlib import Path

import pytest

from tests.real.brain_kit import lab
from tests.web.kit import chromium, look

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]


async def test_where_drills_are_off_the_page_says_so(tmp_path: Path) -> None:
    """A brain whose brain.toml has no `drill`: what to write where."""

    def seen(url: str, secret: str) -> str:
        with chromium() as browser, look(browser, url) as one:
            one.log_in(secret)
            text = one.open("/rehearse").inner_text("main")
            assert not one.violations()
            assert all("404" in said for said in one.complaints), "the browser tells of the 404 itself"
            one.complaints.clear()
            return text

    async with lab(tmp_path) as whole:
        assert whole.running is not None
        text = await asyncio.to_thread(seen, whole.running.console_url, whole.ann.read_text().strip())
    assert "drill = true" in text
    assert "gpuward up" in text
