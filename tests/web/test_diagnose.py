"""A kernel log that is pasted, chosen or dropped in the console, and its verdict: the one of `gpuward diagnose`."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, FilePayload, Page

from brain import sentences
from brain.console.words import LANGUAGES
from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, Look, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
XSS = "<img src=x onerror=document.title='taken'>"
BOOT = "[    0.000000] Linux version 6.5.0-generic (buildd@lcy02) #1 SMP\n"
LOST = (
    "[ 5012.500123] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.\n"
    "[ 5012.600123] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
)
QUIET = "[ {at}.000000] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all: what is diagnosed leaves nothing behind."""
    with running(tmp_path_factory.mktemp("diagnose") / "data", nodes=1) as one:
        yield one


def verdict(one: Look, log: str | FilePayload) -> Page:
    """Pastes a log, or chooses a file, and waits for what the page says of it."""
    page = one.open("/diagnose")
    if isinstance(log, str):
        page.fill("textarea", log)
    else:
        page.set_input_files("input[type=file]", log)
    page.click(".bar .main:enabled")
    page.wait_for_selector("#verdict")
    return page


def shown(page: Page) -> list[str]:
    """The lines that are quoted, without what stands around them."""
    return page.locator(".line-text").all_inner_texts()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_is_that_of_the_command(up: Up, browser: Browser, tmp_path: Path, language: str) -> None:
    """What is wrong, how sure, what to do in the reader's language, and the plan; on a phone."""
    file = tmp_path / "log.log"
    file.write_text(BOOT + LOST)
    (told,) = json.loads(up.gpuward("diagnose", "--json", str(file)))["incidents"]
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE, language=language) as one:
        one.log_in(token(up))
        page = verdict(one, BOOT + LOST)
        text = page.inner_text(".verdict-part")
        for part in (
            told["severity"],
            told["cause"],
            told["because_zh" if language == "zh" else "because"],
            sentences.told(told["sure"], language),
            *told["links"],
        ):
            assert part in text
        for knowledge in told["advice"].values():
            assert " ".join(knowledge[language].split()) in " ".join(text.split())
        assert shown(page) == [line.split(": ", 1)[1] for line in told["shown"]]
        assert page.locator(".diagnosed > .would-run > li").count() == sum(
            not line.startswith("back ") for line in told["plan"]
        )
        assert page.get_attribute(".diagnosed h4 a", "href") == f"/runbooks/{told['runbook']}"
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert not up.get("/api/v1/incidents?all=1&cause=gpu-lost")["incidents"], "nothing of it is kept"


def test_a_well_machine_is_said_to_be_well(up: Up, browser: Browser) -> None:
    """Only where the log could be read: what is no kernel log is no all-clear."""
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.log_in(token(up))
        page = verdict(one, BOOT + QUIET.format(at=100))
        assert "Nothing wrong found" in page.inner_text("#verdict")
        page = verdict(one, "dear colleague,\nthe machine is broken again\n")
        assert "No all-clear" in page.inner_text("#verdict")
        assert page.locator(".verdict-part .banner.bad").count() == 1


def test_a_file_is_chosen_or_dropped(up: Up, browser: Browser) -> None:
    """A packed one too."""
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.log_in(token(up))
        for name, body in (
            ("kern.log", (BOOT + LOST).encode()),
            ("kern.log.gz", gzip.compress((BOOT + LOST).encode())),
        ):
            page = verdict(one, {"name": name, "mimeType": "application/octet-stream", "buffer": body})
            assert "1 fault found" in page.inner_text("#verdict"), name
        page = one.open("/diagnose")
        dropped = page.evaluate_handle(
            "(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'dmesg.txt')); return data }",
            BOOT + LOST,
        )
        page.dispatch_event("#diagnose", "drop", {"dataTransfer": dropped})
        page.click(".bar .main:enabled")
        page.wait_for_selector("#verdict:has-text('1 fault found')")
        page.set_input_files(
            "input[type=file]", {"name": "broken.gz", "mimeType": "", "buffer": b"\x1f\x8bnothing packed"}
        )
        page.wait_for_selector(".banner.bad:has-text('broken.gz')")


def test_of_a_log_that_is_too_long_the_end_counts(up: Up, browser: Browser) -> None:
    """It is said how many lines are left out."""
    long = BOOT + "".join(QUIET.format(at=at) for at in range(100, 15_100)) + LOST.replace("5012", "99012")
    assert len(long) > 1024 * 1024
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.log_in(token(up))
        page = verdict(one, {"name": "kern.log", "mimeType": "text/plain", "buffer": long.encode()})
        assert "1 fault found" in page.inner_text("#verdict")
        kept = int(page.inner_text(".verdict-part > p:last-child").split()[0].replace(",", ""))
        assert f"its first {len(long.splitlines()) - kept:,} lines are left out" in page.inner_text(".waits")


def test_whoever_has_not_logged_in_is_asked_to(up: Up, browser: Browser) -> None:
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open("/diagnose")
        page.fill("textarea", LOST)
        assert page.locator(".bar button[type=submit]").count() == 0
        page.click(".bar a.main")
        page.wait_for_url("**/sign-in")


def test_a_kernel_line_is_foreign_text(up: Up, browser: Browser) -> None:
    """A process can be called as it likes, and what a line says stays what it says."""
    log = BOOT + LOST.replace("python3", XSS) + QUIET.format(at=6000).replace("usb 1-1", XSS)
    log += f"[ 6001.000000] NVRM: Xid (PCI:0000:3b:00): 999, pid=1, name={XSS}, {XSS}\n"
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        one.log_in(token(up))
        page = verdict(one, log)
        assert any(XSS in line for line in shown(page)), "it is quoted"
        assert page.locator("main img").count() == 0
        assert "taken" not in page.title()


@pytest.mark.parametrize(
    ("theme", "language"),
    covering("each theme and each language stand in a page that CI looks at", ("light", "dark"), LANGUAGES),
)
def test_axe_finds_nothing(up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]) -> None:
    """Neither before nor after a verdict."""
    size = PHONE if theme == "dark" else DESK
    with look(browser, f"http://127.0.0.1:{up.port}", size, language=language, theme=theme) as one:
        one.log_in(token(up))
        one.open("/diagnose")
        assert not one.violations()
        page = verdict(one, BOOT + LOST)
        page.click(".diagnosed summary")
        assert not one.violations()
