"""A report as a file and as a mail: whole, in both languages, and nothing that it names becomes more than a name."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.contract.errors import BugError
from brain import config
from brain.adapters.readmodel import ReadModel
from brain.console import shapes
from brain.console.access.people import Person
from brain.console.needs import items
from brain.console.needs.verbs import Allowed
from brain.console.reports import gather, mail
from brain.console.reports.elements import Html, joined, tag
from brain.console.reports.gather import StandingNow, ToldReport
from brain.console.reports.mail import Envelope
from brain.console.reports.page import ReportPage
from brain.console.reports.schedule import DueReport
from brain.console.words import LANGUAGES, Words
from brain.core.state import Hold
from brain.reports_config import ReportConfig
from tests.brain.world import GPU, Story, history_of

XSS = "<img src=x onerror=alert(1)></style><script>alert(1)</script>\"'&"
ZONE = ZoneInfo("Europe/Berlin")


class Tags(HTMLParser):
    """The tags and attributes of a document, as a browser would have them, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        """Text."""
        self.text += data


@pytest.fixture
def told(tmp_path: Path) -> ToldReport:
    """A shift: a fault that healed and one that waits, a hold, and names that want to be markup."""
    story = Story()
    story.event(1000, "link.state", "link/eth0", "n2", up=False)
    story.run(1100)
    story.event(2000, "gpu.xid", GPU, code=79)
    story.run(5000)
    (one,) = story.incidents("gpu-lost")
    model = history_of(story, tmp_path / "history")
    evil = [replace(one, id=f"inc-{XSS}", cause=XSS, node=XSS, scope=f"gpu/{XSS}/0", opened_at=2500.0)]
    model.write(10_000, (), evil)
    hold = shapes.hold(Hold(id="hold-1", scope=f"node/{XSS}", who=XSS, why=XSS, since=1500.0, until=0.0))
    return gather.told(model, 900.0, 6000.0, lambda: None, StandingNow(needs=[], holds=[hold]))


def page(language: str = "en", url: str = "https://gpu.example.org:8470") -> ReportPage:
    """How it is told."""
    return ReportPage(words=Words(language), zone=ZONE, cell="default", console_url=url)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_incident_has_a_name_in_the_hand_over(told: ToldReport, language: str) -> None:
    """A hold that ends, the breaker: as on the first page, and no word of the API."""
    nobody = Allowed(person=Person(name="", grants=()), state=Story().engine.state, chosen=())
    ends = items.hold(
        Hold(id="hold-1", scope="node/n1", who="ann", why="cables", since=1.0, until=900.0), 2.0, nobody
    )
    assert ends is not None
    assert ends.text == "ann holds node/n1: cables; that ends by itself at 01-01 00:15Z"
    assert told.hand_over is not None
    shift = replace(told.hand_over, needs=[ends, items.breaker(1.0, nobody)], needs_count=2)
    text = Tags(page(language).file(replace(told, hand_over=shift)).decode()).text
    for kind in ("hold_ends", "breaker"):
        assert Words(language)(f"need-{kind}") in text
    assert "hold_ends" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_file_is_whole_and_nothing_in_it_acts(told: ToldReport, language: str) -> None:
    """No script, nothing loaded, no style but its own; markup is text, and links lead to the console alone."""
    text = page(language).file(told, [f"late {XSS}"]).decode()
    found = Tags(text)
    assert not {"script", "link", "img", "iframe", "object", "button", "base", "form"} & set(found.tags)
    assert found.tags.count("style") == 1
    assert not [name for name, _ in found.attributes if name in ("src", "style") or name.startswith("on")]
    links = [value for name, value in found.attributes if name == "href"]
    assert links
    assert all(one and one.startswith("https://gpu.example.org:8470/") and " " not in one for one in links), (
        links
    )
    for word in ("url(", "@import", "<!--"):
        assert word not in text, word
    assert found.text.count(XSS) >= 5
    assert ("link-down" in found.text, "gpu-lost" in found.text) == (True, True)
    assert Words(language)("report-healed") in found.text
    assert f'<html lang="{"zh-Hans" if language == "zh" else "en"}">' in text
    assert "1970-01-01 01:15 – 02:40 CET" in found.text, "by the zone's clocks"
    unknown = told.report.not_known_texts
    assert [(one.zh if language == "zh" else one.en) in found.text for one in unknown] == [True] * len(
        unknown
    )
    assert [(one.en if language == "zh" else one.zh) in found.text for one in unknown] == [False] * len(
        unknown
    )
    plain = Tags(page(language, url="").file(told).decode())
    assert "a" not in plain.tags, "without the console's address names lead nowhere"


def want(**more: Any) -> ReportConfig:
    """A table of brain.toml."""
    table = {"name": "night", "what": "shift", "url_file": "mail.url", "zone": "Europe/Berlin", **more}
    return config.parse({"reports": [table]}, "brain.toml", Path("/etc")).reports[0]


def composed(
    told: ToldReport, *, now: float = 6060.0, missed: Sequence[float] = (), language: str = "en"
) -> EmailMessage:
    """The mail as a mail program reads it."""
    due = DueReport(at=6000.0, since=900.0, missed=tuple(missed))
    envelope = Envelope(sender="ward@example.com", to=("ann@example.com", "bob@example.com"), now=now)
    made = mail.composed(want(), due, page(language), told, envelope)
    read = message_from_bytes(made.as_bytes(policy=policy.SMTP), policy=policy.default)
    assert isinstance(read, EmailMessage)
    return read


def test_a_mail_has_the_report_as_text_as_a_page_and_beside_it(told: ToldReport) -> None:
    """Its table is that of the API, its Message-ID that of what is due."""
    read = composed(told)
    assert read["Subject"] == "gpuward default: Hand-over 1970-01-01 01:15 – 02:40 CET"
    assert read["Message-ID"] == "<report.default.night.6000.gpuward@example.com>"
    assert (read["To"], read["Auto-Submitted"]) == ("ann@example.com, bob@example.com", "auto-generated")
    plain = read.get_body(("plain",))
    html = read.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert "Incidents: 3" in plain.get_content()
    assert "Needs a person: 0" in plain.get_content()
    parts = {part.get_filename(): part for part in read.iter_attachments()}
    assert list(parts) == [
        "gpuward-default-shift-1970-01-01-0240.html",
        "gpuward-default-shift-1970-01-01-0240.csv",
    ]
    file, table = parts.values()
    assert str(file.get_content()).split() == str(html.get_content()).split()
    rows = list(csv.DictReader(io.StringIO(str(table.get_content()))))
    assert {row["cause"] for row in rows} == {"link-down", "gpu-lost", XSS}
    assert "late" not in str(plain.get_content()).lower()


def test_a_late_one_says_so_and_names_what_was_missed(told: ToldReport) -> None:
    """In the text and on the page; with the same Message-ID, whenever it goes."""
    read = composed(told, now=90_000.0, missed=(3600.0,))
    for kind in ("plain", "html"):
        body = read.get_body((kind,))
        assert body is not None
        assert "Sent late: it was due at 1970-01-01 02:40." in str(body.get_content())
        assert "None was mailed at 1970-01-01 02:00." in str(body.get_content())
    assert read["Message-ID"] == composed(told)["Message-ID"]


def test_a_week_stands_beside_the_one_before(tmp_path: Path) -> None:
    story = Story()
    story.event(1000, "link.state", "link/eth0", "n2", up=False)
    story.run(1100)
    model: ReadModel = history_of(story, tmp_path / "history")
    oldest = model.oldest()
    assert oldest is not None
    found = gather.told(model, 2000.0, 4000.0 - oldest, lambda: None, None)
    assert found.before is not None
    assert (found.report.total.incidents, found.before.total.incidents) == (0, 1)
    text = Tags(page().file(found).decode()).text
    assert "before: 1" in text
    assert "No incident opened in this time." in text
    found = gather.told(model, 2000.0, 4001.0 - oldest, lambda: None, None)
    assert found.before is None, "a second of it is not in the history: who knows what was then"
    assert "before:" not in Tags(page().file(found).decode()).text


def test_words_are_those_of_the_pages() -> None:
    """What the catalogue lacks, or wants other values for, is a bug, and no text."""
    assert Words("en").span(3 * 3600 + 120) == "3 h 2 min"
    assert Words("zh").span(90) == "1 分 30 秒"
    assert (Words("en").span(5), Words("en").span(200_000)) == ("5 s", "2 d 7 h")
    for key, values in (("nothing", {}), ("span-s", {}), ("span-s", {"h": 1}), ("card-incidents", {"n": 1})):
        with pytest.raises(BugError):
            Words("en")(key, **values)


def test_whatever_is_no_element_is_text() -> None:
    assert (
        tag("p", "<b>", Html("<i></i>"), None, 5, class_='a"b') == '<p class="a&quot;b">&lt;b&gt;<i></i>5</p>'
    )
    assert joined("a\x1b[2J&") == "a\\x1b[2J&amp;"


def test_a_mail_in_chinese(told: ToldReport) -> None:
    body = composed(told, now=90_000.0, language="zh").get_body(("html",))
    assert body is not None
    assert "迟发：本应于 1970-01-01 02:40 发送。" in str(body.get_content())
