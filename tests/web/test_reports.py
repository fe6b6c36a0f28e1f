"""Reports in a browser: a shift's hand-over, a week, CSV, and one file for mail in which nothing acts."""

import csv
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, WITHIN_MS, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
XSS = '<img src=x onerror="document.body.dataset.hit=1"></style><script>document.body.dataset.hit=1</script>'
CAUSE = "gpu-needs-reset"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With a fault that was healed, and a hold whose reason is markup."""
    with running(tmp_path_factory.mktemp("reports") / "data") as one:
        one.gpuward("drill", "gpu-needs-reset")
        one.until(lambda: one.get("/api/v1/needs?hours=8")["healed"], "a drill is healed", within_s=300.0)
        one.gpuward("hold", "node/sim-02", "--why", XSS, "--for", "3h")
        yield one


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


class Elements(HTMLParser):
    """The tags and attributes of a document, as a browser would have them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def file_of(page: Page, folder: Path) -> str:
    """The file for mail."""
    with page.expect_download(timeout=WITHIN_MS) as got:
        page.click("[data-file]")
    assert re.fullmatch(r"gpuward-[\w-]+-\d{4}-\d\d-\d\d\.html", got.value.suggested_filename)
    got.value.save_as(folder / "report.html")
    return (folder / "report.html").read_text()


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_a_hand_over_as_page_and_as_one_file(up: Up, browser: Browser, language: str, tmp_path: Path) -> None:
    """What needs a person, what holds, what was healed and who did what, with the figures; the file has the same, and opens
    alone: no script, nothing loaded, markup as text, links to the console.
    """
    healed = up.get("/api/v1/needs?hours=8")["healed"][0]
    with look(browser, url(up), PHONE, language=language) as one:
        one.log_in(token(up))
        page = one.open("/reports")
        shown = page.inner_text("#main")
        assert (XSS in shown, healed["cause"] in shown, "sim-02" in shown) == (True, True, True)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        for unknown in up.get("/api/v1/reports")["not_known_texts"]:
            assert unknown["zh" if language == "zh-CN" else "en"] in shown
        total = up.get("/api/v1/reports")["total"]
        first = page.locator(".tile strong").first.inner_text()
        assert (first, total["incidents"] > 0) == (str(total["incidents"]), True)
        text = file_of(page, tmp_path)
        assert page.evaluate("document.body.dataset.hit") is None
    found = Elements()
    found.feed(text)
    assert found.tags.count("style") == 1
    assert not {"script", "link", "img", "iframe", "object", "button", "base", "form"} & set(found.tags)
    assert not {one for one in found.attributes if one in ("src", "style") or one.startswith("on")}
    for word in ("url(", "@import", "<!--"):
        assert word not in text, word
    assert f'<html lang="{"zh-Hans" if language == "zh-CN" else "en"}">' in text
    with look(browser, url(up), DESK) as alone:
        asked: list[str] = []
        alone.page.on("request", lambda request: asked.append(request.url))
        at = (tmp_path / "report.html").as_uri()
        alone.page.goto(at)
        assert asked == [at]
        read = alone.page.inner_text("body")
        assert (XSS in read, healed["cause"] in read) == (True, True)
        assert ("交接" in read or "需要人工" in read) == (language == "zh-CN")
        link = alone.page.locator(f"a[href$='/incidents/{healed['id']}']").first
        assert link.get_attribute("href") == f"{url(up)}/incidents/{healed['id']}"
        assert alone.page.evaluate("document.body.dataset.hit") is None
        assert not alone.violations()


def test_a_week_is_compared_and_downloaded(up: Up, browser: Browser) -> None:
    """By cause and node with bars, beside the week before; the CSV has each incident; another time stands in the address."""
    with look(browser, url(up)) as one:
        one.log_in(token(up))
        page = one.open("/reports")
        page.click(".report-spans button:nth-child(3)")
        page.wait_for_url("**/reports?span=week")
        expect(page.locator(".tile").first).to_be_visible()
        assert page.locator(".tile .small", has_text="before:").count() == 0, (
            "nobody knows what was before this site"
        )
        assert page.locator("#report-causes + .wide svg rect").count() > 0
        assert page.locator("#report-nodes + .wide tbody tr").count() > 0
        with page.expect_download(timeout=WITHIN_MS) as got:
            page.click("a[download]:not([data-file])")
        rows = list(csv.DictReader(io.StringIO(Path(got.value.path()).read_text())))
        assert rows
        assert {row["id"] for row in rows} <= {
            one["id"] for one in up.get("/api/v1/incidents?all=1&limit=1000")["incidents"]
        }
        page.click(".report-range summary")
        page.fill("input[name=from]", "2020-01-01T00:00")
        page.fill("input[name=to]", "2020-02-01T00:00")
        page.click(".report-range button")
        page.wait_for_url("**from=**")
        expect(page.locator("#main .good")).to_contain_text("No incident opened")


ENERGY: dict[str, Any] = {
    "configured": True, "since": "2026-01-01T00:00:00.000Z", "until": "2026-01-01T08:00:00.000Z", "step_s": 600.0, "kwh": 1234.5,
    "use": 0.61, "gpus": 128, "measured": 0.973, "split": 2, "more": 3, "failed": [f"Prometheus answered 500: {XSS}"],
    "tenants": [
        {"tenant": "alice", "kwh": 800.0, "share": 0.648, "use": 0.9, "values": [20.0, None] * 24},
        {"tenant": XSS, "kwh": 400.0, "share": 0.324, "use": 0.4, "values": [8.0] * 48},
        {"tenant": "", "kwh": 34.5, "share": 0.028, "use": None, "values": [None] * 24 + [1.5] * 24},
    ],
    "not_known_texts": [{"en": f"Whose 2 GPUs are {XSS}", "zh": f"2 块 GPU 属于谁 {XSS}"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("theme", "language"),
    covering(
        "each theme and each language stand in a page that CI looks at", ("light", "dark"), ("en", "zh-CN")
    ),
)
def test_energy_by_tenant(up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]) -> None:
    """A plot of the power, a line for each tenant and for nobody, how much is known, what was not answered, and a table to take
    along; a tenant's name is a name.
    """
    size = PHONE if theme == "dark" else DESK
    with look(browser, url(up), size, language=language, theme=theme) as one:
        one.page.route("**/api/v1/reports/energy*", lambda route: route.fulfill(json=ENERGY))
        one.log_in(token(up))
        page = one.open("/reports")
        card = page.locator(".energy")
        expect(card.locator("figure svg[role=img]")).to_have_count(1)
        expect(card.locator(".wide tbody tr").last).to_be_attached()
        text = card.inner_text()
        zh = language == "zh-CN"
        for part in (
            "1.23 MWh",
            "800.0 kWh",
            "65 %",
            "90 %",
            XSS,
            "未注明" if zh else "Nobody is named",
            "97 %",
            "128",
            "–",
        ):
            assert part in text, part
        assert ("未答复" if zh else "Not answered:") in text
        unknown = f"2 块 GPU 属于谁 {XSS}" if zh else f"Whose 2 GPUs are {XSS}"
        assert unknown in page.inner_text("#main")
        link = card.locator("a[download]").get_attribute("href") or ""
        assert (link.startswith("/api/v1/reports/energy?"), link.endswith("format=csv")) == (True, True)
        assert page.locator("main img").count() == 0
        assert page.evaluate("document.body.dataset.hit") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert not one.violations()


def test_where_no_prometheus_is_the_report_says_so(up: Up, browser: Browser) -> None:
    """No section, and a sentence of what nobody knows; one that is not answered takes nothing else from the page."""
    with look(browser, url(up)) as one:
        page = one.open("/reports")
        expect(page.locator("#main")).to_contain_text("no Prometheus is configured")
        assert page.locator(".energy").count() == 0
    with look(browser, url(up)) as one:
        one.expected = ("503",)
        one.page.route(
            "**/api/v1/reports/energy*",
            lambda route: route.fulfill(status=503, json={"detail": "others read"}),
        )
        page = one.open("/reports")
        expect(page.locator(".energy")).to_contain_text("Not answered: others read")
        assert page.locator(".tile").count() > 0


@pytest.mark.parametrize(
    ("language", "theme"),
    covering(
        "each theme and each language stand in a page that CI looks at", ("en", "zh-CN"), ("light", "dark")
    ),
)
def test_everybody_can_read_it(
    up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]
) -> None:
    """axe-core finds nothing, in a hand-over and in a week."""
    with look(browser, url(up), DESK, language=language, theme=theme) as one:
        one.log_in(token(up))
        for path in ("/reports", "/reports?span=week"):
            one.open(path)
            assert not one.violations()
