"""Evidence bundles open in the page: what a hostile node has packed is read there, and does nothing."""

import asyncio
import io
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser

from tests.bundles import store
from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, WITHIN_MS, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
NODE, COMMAND = "gpu-01", "inc-1.r1.s1.a1"
XSS = '<img src=x onerror="document.body.dataset.hit=1">'
LONG = "x" * 5000
FILES = {
    "var/log/kern.log": f"NVRM: Xid (PCI:0000:3b:00): 79\n{XSS}\n\x1b[31mred \u202ereversed\n{LONG}\n".encode(),
    f"{XSS}.html": b"<script>document.body.dataset.hit = 1</script>",
    "../../../etc/cron.d/own": b"* * * * * root own",
    "nvidia-bug-report.log": b"line of a long report\n" * 40_000,
    "core": b"\x7fELF\0\0\0",
    "日志/系统.txt": "温度过高\n".encode(),
}


def bundle() -> bytes:
    """A .tar.gz of these files, and a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1_780_000_000
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("shadow")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
        archive.addfile(link)
    return out.getvalue()


BUNDLE = bundle()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With the bundle in its store, as a brain has taken it in."""
    with running(tmp_path_factory.mktemp("evidence") / "data", nodes=1) as one:
        config = tomllib.loads((one.data / "config" / "brain.toml").read_text())
        to = config["nats"]
        asyncio.run(store(to["url"], to["seed_file"], config["cell"], NODE, COMMAND, BUNDLE))
        yield one


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


def test_a_bundle_is_read_file_by_file(up: Up, browser: Browser, tmp_path: Path) -> None:
    """On a phone: the list, the text of one file with its markup as text, a download of it, and of the whole. Nothing acts."""
    with look(browser, url(up), PHONE) as one:
        one.log_in(token(up))
        page = one.open(f"/evidence/{NODE}/{COMMAND}")
        listed = page.locator(".bundle-files bdi").all_inner_texts()
        assert listed == list(FILES)
        assert page.locator(".head", has_text="1 member is a link").count() == 1
        page.get_by_text("var/log/kern.log").click()
        page.wait_for_selector("pre.bundle-text")
        text = page.inner_text("pre.bundle-text")
        assert "Xid (PCI:0000:3b:00): 79" in text
        assert XSS in text
        assert "\\u001b[31mred \\u202ereversed" in text
        assert "file=0" in page.url
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], "long lines are wrapped"
        with page.expect_download(timeout=WITHIN_MS) as got:
            page.click("#file a[download]")
        assert (Path(got.value.path()).read_bytes(), got.value.suggested_filename) == (
            FILES["var/log/kern.log"],
            "kern.log",
        )
        page.get_by_text("nvidia-bug-report.log").click()
        page.wait_for_selector("#file:has-text('The first 256 KiB')")
        assert len(page.inner_text("pre.bundle-text")) <= 262_144
        page.get_by_text("core", exact=True).click()
        page.wait_for_selector("#file:has-text('This is no text')")
        page.get_by_text(f"{XSS}.html").click()
        page.wait_for_selector("pre.bundle-text:has-text('<script>')")
        assert page.evaluate("document.body.dataset.hit") is None
        assert page.locator("#main img, #main script").count() == 0
        with page.expect_download(timeout=WITHIN_MS) as got:
            page.click(".head a[download]")
        assert Path(got.value.path()).read_bytes() == BUNDLE
        # A link to one file, and names that only look like others
        page = one.open(f"/evidence/{NODE}/{quote(COMMAND)}?file=5")
        assert "温度过高" in page.inner_text("pre.bundle-text")


def test_what_is_not_there_is_said(up: Up, browser: Browser) -> None:
    """In the brain's words: why, and where it may be still."""
    with look(browser, url(up)) as one:
        one.log_in(token(up))
        page = one.open(f"/evidence/{NODE}/none")
        assert "is not in the object store" in page.inner_text("main")
        one.complaints.clear()  # the browser says that it was a 404


@pytest.mark.parametrize(
    ("language", "theme"),
    covering(
        "each theme and each language stand in a page that CI looks at", ("en", "zh-CN"), ("light", "dark")
    ),
)
def test_everybody_can_read_it(
    up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]
) -> None:
    """axe-core finds nothing, with and without a file."""
    with look(browser, url(up), DESK, language=language, theme=theme) as one:
        one.log_in(token(up))
        one.open(f"/evidence/{NODE}/{COMMAND}")
        assert not one.violations()
        one.open(f"/evidence/{NODE}/{COMMAND}?file=0")
        assert not one.violations()
