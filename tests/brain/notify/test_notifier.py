"""Who is told, in which order, and what a wrong configuration says."""

from pathlib import Path
from typing import Any, Literal

import pytest

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from brain.core.pack.spec import Priority
from brain.notify.compose import compose
from brain.notify.log import PageLog
from brain.notify.message import PageMessage
from brain.notify.notifier import TYPES, Notifier, build
from tests.brain.notify.pages import incident, page


class Pager:
    """Keeps pages, or fails."""

    def __init__(self, name: str, fails: Exception | None = None) -> None:
        self.name = name
        self.fails = fails
        self.pages: list[PageMessage] = []

    async def send(self, message: PageMessage) -> None:
        if self.fails:
            raise self.fails
        self.pages.append(message)

    async def reach(self) -> str:
        return self.name

    async def close(self) -> None:
        return


async def test_a_receiver_whose_answer_nobody_can_read_leads_to_the_next_channel() -> None:
    """It may have taken the page; the brain goes on."""
    second = Pager("b")
    notifier = Notifier({"a": Pager("a", KeyError("id")), "b": second}, {"oncall": ["a", "b"]})
    sent = await notifier.send(compose(page()))
    assert (sent.delivered, sent.channels) == (True, "b")
    assert sent.why.startswith("a: its answer has a form that nobody here knows (KeyError")


async def test_buttons_say_whose_they_are() -> None:
    """An app of a platform may be that of several cells."""
    pager = Pager("a")
    await Notifier({"a": pager}, {"oncall": ["a"]}, cell="east").send(compose(page()))
    (got,) = pager.pages
    assert got.buttons
    assert {one.cell for one in got.buttons} == {"east"}


@pytest.mark.parametrize("error", [Refused("no"), Unreachable("away"), TimedOut("slow")])
async def test_every_failure_leads_to_the_next_channel(error: Exception) -> None:
    """In the group's order; the answer names who took it and what failed before."""
    first, second, third = Pager("a", error), Pager("b"), Pager("c")
    notifier = Notifier({"c": third, "b": second, "a": first}, {"oncall": ["a", "b", "c"]})
    assert (await notifier.send(compose(page())))[:3] == (True, "b", f"a: {error}")
    assert third.pages == []


async def test_when_all_fail_the_page_is_reported_as_undelivered() -> None:
    """So that the engine tries again; every reason is told."""
    notifier = Notifier(
        {"a": Pager("a", Refused("no")), "b": Pager("b", TimedOut("slow"))}, {"oncall": ["a", "b"]}
    )
    assert (await notifier.send(compose(page())))[:3] == (False, "", "a: no; b: slow")


async def test_an_unknown_group_is_not_silence() -> None:
    """The on-call group is told instead, and the answer says so."""
    pager = Pager("a")
    notifier = Notifier({"a": pager}, {"oncall": ["a"]})
    assert (await notifier.send(compose(page(to="network"))))[:3] == (
        True,
        "a",
        "there is no group 'network', oncall is told",
    )
    assert (await Notifier({}, {}).send(compose(page())))[:3] == (False, "", "group oncall has no channel")


async def send(
    notifier: Notifier, what: Literal["open", "repeat", "ack", "resolve"], *alerted: str
) -> tuple[bool, str, str]:
    """Sends a page of an incident whose alerts these channels took."""
    return (await notifier.send(compose(page(what)), alerted))[:3]


async def test_the_end_goes_to_every_channel_that_has_an_alert() -> None:
    """Not only to the first channel; and it counts as delivered when all of them have it."""
    first, second, third = Pager("a", Unreachable("away")), Pager("b"), Pager("c")
    notifier = Notifier({"a": first, "b": second, "c": third}, {"oncall": ["a", "b", "c"]})
    assert (await notifier.send(compose(page())))[:3] == (True, "b", "a: away")
    first.fails = None
    assert await send(notifier, "repeat", "b") == (True, "a", ""), "the preferred channel is back"
    assert await send(notifier, "ack", "b", "a") == (True, "b, a", "")
    second.fails = Unreachable("away")
    assert await send(notifier, "resolve", "b", "a") == (False, "", "b: away")
    second.fails = None
    assert await send(notifier, "resolve", "b", "a") == (True, "b, a", "")
    assert [message.what for message in first.pages] == ["repeat", "ack", "resolve", "resolve"]
    assert [message.what for message in second.pages] == ["open", "ack", "resolve"]
    assert third.pages == [], "it was never told"


async def test_a_channel_that_may_have_an_alert_hears_of_its_end() -> None:
    """It did not answer in time: the alert may be there. Its failure does not hold up the others."""
    slow, second = Pager("a", TimedOut("slow")), Pager("b")
    notifier = Notifier({"a": slow, "b": second}, {"oncall": ["a", "b"]})
    await notifier.send(compose(page()))
    assert await send(notifier, "ack", "b") == (True, "b", "a: slow")
    slow.fails = None
    assert await send(notifier, "resolve", "b") == (True, "b", "")
    assert [message.what for message in slow.pages] == ["resolve"]


async def test_the_end_of_what_nobody_was_told_finds_a_channel() -> None:
    """All were away while it was open, or the channel is not configured any more."""
    pager = Pager("a")
    notifier = Notifier({"a": pager}, {"oncall": ["a"]})
    assert await send(notifier, "resolve") == (True, "a", "")
    assert await send(notifier, "resolve", "removed") == (True, "a", "")


async def test_the_page_is_what_it_was_when_it_was_sent() -> None:
    """The engine goes on changing its incident while a channel is slow."""
    about = incident()

    class Slow(Pager):
        async def send(self, message: PageMessage) -> None:
            about.severity = Priority.P3
            about.evidence.clear()
            await super().send(message)

    sent, slow = page(about=about), Slow("a")
    await Notifier({"a": slow}, {"oncall": ["a"]}).send(compose(sent))
    assert slow.pages[0].severity == "P1"
    assert compose(sent) == slow.pages[0], "the page itself is what it was, too"


async def test_without_configuration_pages_are_kept_in_a_file(tmp_path: Path) -> None:
    """One channel, `log`, that groups may name."""
    notifier = build({}, {"network": ["log"]}, tmp_path)
    assert (await notifier.send(compose(page(to="network"))))[:3] == (True, "log", "")
    assert (await notifier.send(compose(page("resolve"))))[:3] == (True, "log", "")
    text = (tmp_path / "pages.log").read_text()
    assert text.count("[P1] ") == 2
    assert "RESOLVED" in text


async def test_the_file_is_bounded_and_a_failure_is_reported(tmp_path: Path) -> None:
    """It is renamed when full; a folder that is gone is Unreachable, not a crash."""
    log = PageLog("log", tmp_path / "pages.log", max_bytes=10_000)
    for _ in range(30):
        await log.send(compose(page()))
    assert (tmp_path / "pages.log.1").stat().st_size < 12_000
    assert (tmp_path / "pages.log").stat().st_size < 12_000
    with pytest.raises(Unreachable, match="No such file"):
        await PageLog("log", tmp_path / "gone" / "pages.log").send(compose(page()))


HOOK = {"type": "webhook", "url": "http://pager.example/x"}


@pytest.mark.parametrize(
    ("channels", "groups", "says"),
    [
        (
            {"p": {"type": "pigeon"}},
            {},
            f"channels.p.type: unknown type 'pigeon' (have: {', '.join(sorted(TYPES))})",
        ),
        ({"p": {}}, {}, "channels.p.type: is missing"),
        ({"p": "webhook"}, {}, "channels.p: must be a table"),
        ({"p": {"type": "webhook"}}, {}, "channels.p.url: is missing"),
        (
            {"p": {"type": "webhook", "url": "pager"}},
            {},
            "channels.p.url: want http://host/... or https://host/",
        ),
        ({"p": {"type": "webhook", "url": "http://[::1"}}, {}, "channels.p.url: want http://"),
        ({"p": HOOK | {"uri": "x"}}, {}, "channels.p.uri: is not an option here"),
        ({"p": HOOK | {"timeout_s": 0}}, {}, "channels.p.timeout_s: "),
        ({"p": HOOK | {"timeout_s": "soon"}}, {}, "channels.p.timeout_s: "),
        (
            {"p": HOOK | {"secret_file": "/nowhere/s"}},
            {},
            "channels.p.secret_file: /nowhere/s cannot be read: No such file",
        ),
        ({"p": HOOK | {"secret_file": "/dev/null"}}, {}, "channels.p.secret_file: /dev/null is empty"),
        ({"p": HOOK | {"headers": {"A": "b\nc"}}}, {}, "channels.p.headers.'A': not an HTTP header"),
        ({"p": {"type": "log"}}, {}, "channels.p.path: is missing"),
        ({"p": HOOK}, {"oncall": ["q"]}, "groups.oncall: there is no channel 'q' (have: p)"),
        ({}, {"oncall": ["q"]}, "groups.oncall: there is no channel 'q' (have: log)"),
        ({"p": HOOK}, {"oncall": []}, "groups.oncall: needs at least one channel"),
    ],
)
def test_what_is_wrong_is_named(
    channels: dict[str, Any], groups: dict[str, list[str]], says: str, tmp_path: Path
) -> None:
    """The message names the key, as the operator wrote it."""
    with pytest.raises(ConfigError) as caught:
        build(channels, groups, tmp_path)
    assert says in str(caught.value)
