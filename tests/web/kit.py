"""A real `gpuward up`, and Debian's Chromium to look at its console."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from brain.console.access import local_token
from tests.e2e.up import Up

PHONE = (390, 844)
DESK = (1280, 900)
WITHIN_MS = 60_000  # until something is seen, on a machine under load
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
# What a page may say in the browser's console without being wrong.
_HARMLESS = ("Password forms should have",)


@dataclass
class Look:
    """One person's browser at one console: what it shows, and what it complained of."""

    url: str
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)
    # What a test expects the browser to complain of
    expected: tuple[str, ...] = ()

    def open(self, path: str) -> Page:
        """Loads a page, and waits until it has something to show."""
        self.page.goto(self.url + path)
        self.ready()
        return self.page

    def ready(self) -> None:
        """Until the page shows what it has loaded."""
        self.page.wait_for_selector("#main:not(:has(> [aria-busy]))", timeout=WITHIN_MS)

    def log_in(self, token: str) -> None:
        """With a token, as a person does it."""
        self.open("/sign-in")
        self.page.fill("input[name=token]", token)
        self.page.click("button[type=submit]")
        self.page.wait_for_url(lambda url: "sign-in" not in url, timeout=WITHIN_MS)
        self.ready()

    def language(self, code: Literal["en", "zh"]) -> None:
        """By the menu."""
        self._menu(f".menu button[lang={code}]")

    def theme(self, name: Literal["", "light", "dark"]) -> None:
        """By the menu."""
        self._menu(f".menu [data-theme-choice='{name}']")

    def _menu(self, what: str) -> None:
        self.page.click(".menu-button")
        self.page.click(what)
        self.page.click(".menu-button")

    def violations(self) -> list[str]:
        """What axe-core finds wrong on the page, each with the elements."""
        found: dict[str, Any] = Axe().run(self.page).response
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes']][:5]}"
            for one in found["violations"]
        ]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; the driver is Playwright's."""
    if not CHROMIUM:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        # Tests run as root in containers, where its sandbox cannot.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def look(
    browser: Browser,
    url: str,
    size: tuple[int, int] = DESK,
    *,
    language: str = "en",
    theme: Literal["light", "dark"] = "light",
) -> Iterator[Look]:
    """A browser of its own: its cookies and its memory are nobody else's. At its end it must not have complained."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        locale=language,
        has_touch=size == PHONE,
    )
    page = context.new_page()
    page.set_default_timeout(WITHIN_MS)
    one = Look(url=url, context=context, page=page)
    page.on("pageerror", lambda error: one.complaints.append(f"error: {error}"))
    page.on(
        "console",
        lambda said: (
            one.complaints.append(said.text)
            if said.type in ("error", "warning") and not any(word in said.text for word in _HARMLESS)
            else None
        ),
    )
    try:
        yield one
    finally:
        context.close()
    left = [said for said in one.complaints if not any(word in said for word in one.expected)]
    assert not left, left


def token(up: Up) -> str:
    """Of whoever started it: an administrator."""
    found = local_token.found(up.port)
    assert found, "gpuward up has published its token"
    return found
