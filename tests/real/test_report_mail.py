"""Reports by schedule, with a real NATS, a real mail server and a real history: once, late, again, and told."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nats
import pytest

from brain import config
from brain.adapters import sent_reports
from brain.adapters.sent_reports import SentReport
from brain.console.reports import gather
from brain.leader import report_mail
from brain.leader.report_mail import scheduled_reports
from tests.brain.world import Story, history_of
from tests.mail_server import mail_server
from tests.real.brain_kit import Lab
from tests.real.nats import free_port, nats_server
from tests.real.report_mail_kit import AT_8, DAY_S, SHIFT, Brains, OneBrain, looked, plain, until

pytestmark = pytest.mark.component("nats-server")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_mail, "CHECK_S", 0.02)
    monkeypatch.setattr(report_mail, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(report_mail, "MAX_PAUSE_S", 0.3)


@pytest.fixture
async def brains(tmp_path: Path) -> AsyncIterator[Brains]:
    """With a history in which a fault healed."""
    story = Story()
    story.event(AT_8 - 7200, "link.state", "link/eth0", "n2", up=False)
    story.run(AT_8 - 7000)
    with nats_server(tmp_path / "nats") as server:
        model = history_of(story, tmp_path / "history")
        yield Brains(tmp_path, server.url, model)


async def test_each_is_mailed_once_by_whoever_leads(brains: Brains) -> None:
    """A new one begins with its next time. Another brain that comes to lead, and one that restarts, send nothing again."""
    with mail_server() as server:
        one, two = brains.brain("b1", server.url()), brains.brain("b2", server.url())
        brains.leader = "b1"
        async with one.running(), two.running():
            await until(one.sent, "it begins")
            assert server.mails == []
            brains.now = AT_8
            await until(lambda: server.mails, "it is mailed")
            await until(lambda: _has(one, AT_8), "and that stands in NATS")
            brains.leader = "b2"
            await looked()
            brains.now = AT_8 + 12 * 3600
            await until(lambda: len(server.mails) == 2, "the other one mails the next one")
            await until(lambda: _has(one, brains.now), "and that stands in NATS")
        async with one.running():
            brains.leader = "b1"
            await looked()
        assert len(server.mails) == 2
        (to, message), _ = server.mails
        assert to == ["ann@example.com", "bob@example.com"]
        assert message["Message-ID"] == f"<report.default.shift.{AT_8:.0f}.gpuward@example.com>"
        assert len(set(server.ids)) == 2
        assert "Incidents: 1" in plain(message)
        assert "late" not in plain(message)
        assert brains.alert == ""
        assert [line.partition(":")[0] for line in brains.noted] == ["b1 report.sent", "b2 report.sent"]


async def _has(one: OneBrain, mailed: float) -> bool:
    found = await one.sent()
    return found is not None and found.mailed == mailed


async def _begun(one: OneBrain, begun: float) -> bool:
    found = await one.sent()
    return found is not None and found.begun == begun


async def test_what_was_due_while_no_brain_ran_is_mailed_late_and_says_so(brains: Brains) -> None:
    """One mail for all that was missed."""
    with mail_server() as server:
        one = brains.brain("b1", server.url())
        brains.leader = "b1"
        async with one.running():
            await until(one.sent, "it begins")
        brains.now = AT_8 + DAY_S + 3600
        async with one.running():
            await until(lambda: server.mails, "it is mailed")
            await looked()
        ((_, message),) = server.mails
        assert "Sent late: it was due at 2024-10-05 08:00." in plain(message)
        assert "None was mailed at 2024-10-04 08:00, 2024-10-04 20:00." in plain(message)
        assert "late: it was due at 2024-10-05 08:00" in brains.noted[-1]


async def test_a_mail_server_that_is_away_is_tried_again_and_then_told(
    brains: Brains, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is there; then people hear that it is over, and get one mail."""
    port = free_port()
    monkeypatch.setattr(report_mail, "TOLD_AFTER_S", 0.5)
    one = brains.brain(
        "b1", f"mailto://127.0.0.1:{port}/?from=ward@example.com&to=ann@example.com&mode=insecure"
    )
    brains.leader = "b1"
    async with one.running():
        await until(one.sent, "it begins")
        brains.now = AT_8
        await until(lambda: brains.noted, "a note at once")
        assert "report.unsent: report shift could not be mailed: 127.0.0.1" in brains.noted[0]
        await until(lambda: "report shift could not be mailed" in brains.alert, "a page when it lasts")
        with mail_server(port) as server:
            await until(lambda: server.mails, "it is mailed")
            await until(lambda: not brains.alert, "and people hear that it is over")
            await looked()
            assert len(server.mails) == 1
    assert [line.split()[1] for line in brains.noted] == ["report.unsent:", "report.sent:"]


async def test_who_has_got_it_does_not_get_it_again(brains: Brains) -> None:
    """One address is refused: people are told at once, and only it is tried again, also by another brain."""
    with mail_server() as server:
        one, two = brains.brain("b1", server.url()), brains.brain("b2", server.url())
        brains.leader = "b1"
        server.refuses = {"bob@example.com": "550 no such user"}
        async with one.running(), two.running():
            await until(one.sent, "it begins")
            brains.now = AT_8
            await until(lambda: "bob@example.com (550 no such user)" in brains.alert, "a page at once")
            brains.leader = "b2"
            await until(lambda: "bob@example.com (550 no such user)" in brains.alert, "by the next one, too")
            server.refuses = {}
            await until(lambda: len(server.mails) == 2, "bob gets it")
            await until(lambda: not brains.alert, "it is over")
            await looked()
        assert [to for to, _ in server.mails] == [["ann@example.com"], ["bob@example.com"]]
        assert len(set(server.ids)) == 1


async def test_an_address_that_stays_refused_costs_the_others_nothing(brains: Brains) -> None:
    """Their next report begins where their last one ended, and claims none that was missed; also after a restart."""
    with mail_server() as server:
        one = brains.brain("b1", server.url())
        brains.leader = "b1"
        server.refuses = {"bob@example.com": "550 no such user"}
        async with one.running():
            await until(one.sent, "it begins")
            brains.now = AT_8
            await until(lambda: "bob@example.com" in brains.alert, "a page at once")
            brains.now = AT_8 + 12 * 3600
            await until(lambda: len(server.mails) == 2, "ann gets the next one")
            await until(lambda: _begun(one, brains.now), "and that stands in NATS")
        brains.now = AT_8 + DAY_S
        async with one.running():
            await until(lambda: len(server.mails) == 3, "and the one after it")
            assert "bob@example.com" in brains.alert
        assert [to for to, _ in server.mails] == [["ann@example.com"]] * 3
        for since, (_, message) in zip(("10-04 08:00", "10-04 20:00"), server.mails[1:], strict=True):
            assert f"2024-{since} – " in str(message["Subject"]), message["Subject"]
            assert "None was mailed" not in plain(message)


async def test_a_note_of_it_that_is_lost_costs_a_mail_that_is_known_again(
    brains: Brains, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NATS does not take it: this brain remembers, and mails nothing twice; only where it dies is the mail sent again, under the
    same Message-ID.
    """
    kept = sent_reports.write
    with mail_server() as server:
        one = brains.brain("b1", server.url())
        brains.leader = "b1"
        async with one.running():
            await until(one.sent, "it begins")

            async def refused(*_: Any) -> None:
                raise nats.errors.TimeoutError

            monkeypatch.setattr(sent_reports, "write", refused)
            brains.now = AT_8
            await until(lambda: server.mails, "it is mailed")
            await looked()
            assert len(server.mails) == 1
        async with one.running():
            await until(lambda: len(server.mails) == 2, "it dies, and does not know")
            monkeypatch.setattr(sent_reports, "write", kept)
            await until(lambda: _has(one, AT_8), "it is kept at last")
            await looked()
        assert len(server.mails) == 2
        assert len(set(server.ids)) == 1


async def test_nothing_that_is_wrong_with_one_report_ends_anything(
    brains: Brains, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history that cannot be read or is behind, and a bug, are as a mail server that is away; the other report goes out."""
    week = {"name": "week", "what": "week", "at": ["08:00"], "days": ["fri"], "to": ["cat@example.com"]}
    told, errors = (
        gather.told,
        [sqlite3.OperationalError("disk I/O error"), KeyError("no such key")],
    )

    def first_fails(history: Any, *args: Any) -> Any:
        if errors and args[-1] is not None:  # the shift's
            raise errors.pop()
        return told(history, *args)

    monkeypatch.setattr(report_mail, "gather", SimpleNamespace(**{**vars(gather), "told": first_fails}))
    with mail_server() as server:
        one = brains.brain("b1", server.url(), SHIFT, week)
        brains.leader = "b1"
        async with one.running():
            await until(lambda: one.sent("week"), "both begin")
            brains.now, brains.behind = AT_8, True
            await until(
                lambda: any("the history is behind" in line for line in brains.noted),
                "it waits for the history",
            )
            brains.behind = False
            await until(lambda: len(server.mails) == 2, "both are mailed")
            await until(lambda: _has(one, AT_8), "and that stands in NATS")
        assert not errors


async def test_reports_of_a_server_that_cannot_be_are_refused_at_the_start(brains: Brains) -> None:
    from agent.contract.errors import ConfigError

    one = brains.brain("b1", "json://127.0.0.1/")
    with pytest.raises(ConfigError, match=r"reports\.0\.url_file"):
        scheduled_reports(one.config)


def test_the_channels_server_is_used(tmp_path: Path) -> None:
    """And a report's own zone before the site's."""
    (tmp_path / "mail.url").write_text(
        "mailto://127.0.0.1:25/?from=ward@example.com&to=oncall@example.com&mode=insecure\n"
    )
    given = {
        "channels": {"mail": {"type": "apprise", "url_file": "mail.url"}},
        "settings": {"zone": "Asia/Shanghai"},
        "reports": [
            {"name": "a", "what": "week", "channel": "mail"},
            {"name": "b", "what": "week", "channel": "mail", "zone": "UTC", "to": ["x@example.com"]},
        ],
    }
    one, two = scheduled_reports(config.parse(given, "test", tmp_path))
    assert (one.to, str(one.zone)) == (("oncall@example.com",), "Asia/Shanghai")
    assert (two.to, str(two.zone)) == (("x@example.com",), "UTC")


async def test_two_whole_brains_mail_one_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was due three days ago goes out when the first one leads; the second one, which leads then, sends it not again."""
    monkeypatch.setattr(report_mail, "CHECK_S", 0.2)
    url_file = tmp_path / "mail.url"
    with nats_server(tmp_path / "nats", nodes=["n1"]) as nats_there, mail_server() as server:
        url_file.write_text(server.url() + "\n")
        client = await nats.connect(nats_there.url)
        await sent_reports.write(client, "default", "night", SentReport(mailed=time.time() - 3 * DAY_S))
        table = {
            "name": "night",
            "what": "shift",
            "at": [
                time.strftime("%H:%M", time.gmtime(time.time() - 6 * 3600))
            ],  # whenever this runs: it is late
            "url_file": str(url_file),
            "language": "zh",
        }
        more: dict[str, Any] = {"nats": {"url": nats_there.url}, "reports": [table]}
        first = Lab(tmp_path / "b1", more | {"brain": "b1"})
        await first.start()
        second = Lab(
            tmp_path / "b2", more | {"brain": "b2", "signing_key_file": str(first.config.signing_key)}
        )
        await second.start(leads=False)
        try:
            await until(lambda: server.mails, "it is mailed")
            notes = await first.until(
                lambda found: found["notes"], "a note", "/api/v1/notes?kind=report.sent"
            )
            assert "report night was mailed to oncall@example.com, late" in notes["notes"][0]["text"]
            await first.stop()
            await second.until(lambda status: status["leads"] and status["caught_up"], "the other leads")
            await asyncio.sleep(2)
        finally:
            await second.stop()
        found = await sent_reports.read(client, "default", "night")
        await client.close()
    assert found is not None
    assert time.time() - found.mailed < DAY_S + 60
    ((to, message),) = server.mails
    assert to == ["oncall@example.com"]
    assert "交接班报告" in str(message["Subject"])
    assert "迟发" in plain(message)
