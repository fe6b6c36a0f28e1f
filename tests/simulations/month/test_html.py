"""The report as one file: whole by itself, the same bytes for the same month, and readable on a phone."""

import functools
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from simulations.month import gantt, html, profile, report
from simulations.month.draw import draw
from simulations.month.play import play
from simulations.simulate import simulate
from tests.shipped import shipped_pack
from tests.web.kit import PHONE, chromium

MONTH = draw(profile.load("llama3-54d"), nodes=64, days=20, seed=4)


@functools.cache
def written() -> str:
    played = play(MONTH, shipped_pack())
    return html.page(report.data(MONTH, played.tallies, played.summaries), played)


class Open(HTMLParser):
    """Which elements are open, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.loads: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "img", "br", "hr"):
            self.stack.append(tag)
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.loads.append(f"{tag} {value}")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_it_is_whole_by_itself() -> None:
    """Nothing is loaded, no script runs, and every element ends; images are within."""
    page = Open()
    page.feed(written())
    assert page.stack == []
    assert page.scripts == 0
    assert [one for one in page.loads if not one.startswith("image data:image/png;base64,")] == []
    assert "url(http" not in written()
    assert "default-src 'none'" in written()[: written().index("<title>")], "whatever a scenario's words are"


def test_it_has_eight_plots_whose_letters_are_text() -> None:
    """And the goals, the table of the policies, and what is left out."""
    page = written()
    assert page.count("<svg") == 8
    for text in (
        "node-hours",
        "drain and reboot",
        "expected from the source",
        "share without people",
        "Left out",
        "Nodes in service",
        "people had to act",
    ):
        assert re.search(rf">[^<]*{text}[^<]*<", page), text


def test_the_same_month_gives_the_same_bytes() -> None:
    """No date, no random id."""
    played = play(MONTH, shipped_pack())
    assert html.page(report.data(MONTH, played.tallies, played.summaries), played) == written()


def test_the_gantt_chart_has_every_run_and_every_hour_out_of_service() -> None:
    """Of the nodes with most runs; a run is over when its node is, and the spans add up to what is counted."""
    played = play(MONTH, shipped_pack())
    for tally in played.tallies:
        end = tally.start + MONTH.days * 86400
        spans = sum(min(until, end) - since for _, since, until in tally.out_spans)
        assert spans == pytest.approx(tally.out_s)
    own = played.tallies[0]
    assert own.runs
    assert all(span.until is None or span.until >= span.since for span in own.runs.values())
    counts = Counter(span.node for span in own.runs.values())
    rows = gantt.rows(played)
    assert [counts[node] for node in rows] == sorted(counts.values(), reverse=True)[: gantt.ROWS]
    assert all(not tally.runs for tally in played.tallies[1:])


def test_the_command_writes_it(tmp_path: Path) -> None:
    """Beside what it prints."""
    file = tmp_path / "report.html"
    args = ["llama3-54d", "--nodes", "16", "--days", "3", "--html", str(file)]
    result = CliRunner().invoke(simulate, args)
    assert result.exit_code == 0, result.output
    assert "16 nodes, 3 days" in result.output
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the command needs none."""
    played = play(draw(profile.load("llama3-54d"), nodes=8, days=1), shipped_pack())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"gpuward\[report\]"):
        html.page(report.data(played.month, played.tallies, played.summaries), played)


@pytest.mark.component("chromium")
def test_on_a_phone_nothing_sticks_out_but_the_tables_scroll(tmp_path: Path) -> None:
    """And the letters of the plots have at least nine pixels."""
    file = tmp_path / "report.html"
    file.write_text(written(), encoding="utf-8")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": PHONE[0], "height": PHONE[1]})
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        heights = page.evaluate(
            "[...document.querySelectorAll('svg text')].map(e => parseFloat(getComputedStyle(e).fontSize)"
            " * e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width)"
        )
        assert len(heights) > 50
        assert min(heights) >= 9
        page.close()
