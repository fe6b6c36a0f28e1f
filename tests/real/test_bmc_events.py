"""BMCs whose events are heard: seen within seconds; floods, hangs and refusals cost what a poll costs. Our Redfish server."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from brain.actions import bmc_streams, bmc_tables
from brain.actions.bmc_base import EventSource
from brain.actions.bmc_poll import BmcPoll
from brain.actions.bmc_streams import BmcStreams
from brain.bmc_poll_config import BmcPollConfig
from brain.core.inputs import Reported
from tests.real.bmc_kit import QUICK, certificate, password_file, server_tls
from tests.real.redfish_events import EVENTS, STREAM
from tests.real.redfish_fake import PASSWORD, USER, RedfishFake
from tests.real.redfish_resources import chassis_of

pytestmark = [pytest.mark.component("openssl"), pytest.mark.timeout(180)]
EVERY_S = 300.0
SOON_S = 30.0  # on a loaded machine; an interval is ten times as long


class Listening:
    """A poller of some nodes at one BMC, whose clock the test sets forward."""

    def __init__(self, table: dict[str, Any], nodes: tuple[str, ...], **want: Any) -> None:
        self.got: list[Reported] = []
        self.notes: list[tuple[str, str]] = []
        self.leads = True
        self.ahead_s = 0.0
        self.known = set(nodes)
        config = {"every_s": EVERY_S, "within_s": 30.0, "event_streams": 100, "nodes": "gpu*"} | want
        self.poll = BmcPoll(
            bmc_tables.build({"racks": table}),
            BmcPollConfig.model_validate(config),
            put=self.got.append,
            note=lambda kind, text: self.notes.append((kind, text)),
            leads=lambda: self.leads,
            known=lambda: self.known,
            clock=lambda: time.time() + self.ahead_s,
            tick_s=0.05,
        )

    def turn(self) -> None:
        """Every BMC has its turn once more."""
        self.ahead_s += EVERY_S

    def kinds(self) -> set[str]:
        return {one.kind for one in self.got if one.data.get("active", True)}


async def until(true: Callable[[], object], why: str) -> None:
    """Waits for it."""
    try:
        async with asyncio.timeout(SOON_S):
            while not true():
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(why)


@pytest.fixture(name="tls", scope="module")
def _tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    cert, key = certificate(tmp_path_factory.mktemp("tls"))
    return cert, server_tls(cert, key)


@pytest.fixture(name="bmc")
async def _bmc(tls: tuple[Path, ssl.SSLContext]) -> AsyncIterator[RedfishFake]:
    async with RedfishFake(tls[1]) as fake:
        fake.extra = chassis_of()
        fake.events.offered = True
        yield fake


@pytest.fixture(name="listening")
def _listening(bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], tmp_path: Path) -> Any:
    """Starts a poller and waits for the end of its first looks."""

    @asynccontextmanager
    async def begin(*nodes: str, **want: Any) -> AsyncIterator[Listening]:
        table = {
            "type": "redfish",
            "address": bmc.url,
            "addresses": None,
            "nodes": "gpu*",
            "user": USER,
            "password_file": str(password_file(tmp_path)),
            "ca_file": str(tls[0]),
            **QUICK,
        }
        listed = tmp_path / "addresses.yaml"
        listed.write_text("".join(f"{node}: {bmc.url}\n" for node in nodes))
        table |= {"addresses": str(listed)}
        del table["address"]
        made = Listening(table, nodes, **want)
        task = asyncio.create_task(made.poll.run())
        try:
            await until(lambda: made.poll._due, "the nodes have their turns")
            made.turn()
            await until(
                lambda: all(one in made.poll._memory and made.poll._memory[one].looked for one in nodes),
                "looks",
            )
            await until(lambda: not made.poll._looks, "and their end")
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert not bmc.open_sessions

    return begin


async def test_what_fails_is_told_within_seconds(bmc: RedfishFake, listening: Any) -> None:
    """A supply fails between two turns: told in the time of one look, by the same code as a poll; and so is its end."""
    async with listening("gpu01") as made:
        await until(lambda: bmc.events.listeners == 1, "its events are heard")
        bmc.extra = chassis_of(ill=True)
        began_s = time.monotonic()
        await bmc.events.say("Critical", ends="\r\n")
        await until(lambda: "bmc.power" in made.kinds(), "the supply")
        assert time.monotonic() - began_s < EVERY_S / 10
        assert {one.node for one in made.got} == {"gpu01"}
        assert "bmc.rising" not in {one.kind for one in made.got}, "an early look is none for trends"
        made.got.clear()
        bmc.extra = chassis_of()
        await bmc.events.say("OK")
        await until(
            lambda: [1 for one in made.got if one.kind == "bmc.power" and not one.data["active"]], "its end"
        )
        assert bmc.asked == [], "nothing was switched"


async def test_what_is_no_news_costs_no_look(bmc: RedfishFake, listening: Any) -> None:
    """Telemetry, and good news of a node that is well: a login is such, and each look logs in."""
    async with listening("gpu01"):
        await until(lambda: bmc.events.listeners == 1, "its events are heard")
        before = bmc.logins
        for _ in range(20):
            await bmc.events.say("OK")
            await bmc.events.say("Critical", kind="MetricReport")
        await bmc.events.say("Warning")
        await until(lambda: bmc.logins > before, "the look that the last one is worth")
        assert bmc.logins == before + 1


async def test_a_bmc_without_a_stream_is_polled_as_ever(bmc: RedfishFake, listening: Any) -> None:
    """None offered, none wanted, or one at another host's address, which is taken for this one's."""
    bmc.events.offered = False
    async with listening("gpu01") as made:
        bmc.extra = chassis_of(ill=True)
        made.turn()
        await until(lambda: "bmc.power" in made.kinds(), "by the poll")
    bmc.events.offered = True
    async with listening("gpu01", event_streams=0):
        assert f"GET {EVENTS}" not in bmc.log
    assert f"GET {STREAM}" not in bmc.log
    bmc.events.stream_url = f"https://bmc.invalid{STREAM}"
    async with listening("gpu01"):
        await until(lambda: bmc.events.listeners == 1, "its path counts")


@pytest.mark.parametrize("does", ["refuses", "leads away", "shows a page", "hangs", "closes"])
async def test_a_stream_that_is_none(bmc: RedfishFake, listening: Any, does: str) -> None:
    """It is polled, is not asked again and again, and a refusal is noted once, however many BMCs have that firmware."""
    bmc.events.does = does
    async with listening("gpu01", "gpu02", "gpu03") as made:
        await until(lambda: bmc.events.begun == 3, "all were tried")
        bmc.extra = chassis_of(ill=True)
        made.turn()
        await until(
            lambda: {one.node for one in made.got if one.kind == "bmc.power"} == made.known, "by the poll"
        )
        assert bmc.events.begun == 3
        assert "GET /elsewhere" not in bmc.log
        noted = [text for kind, text in made.notes if kind == "bmc.streams"]
        assert len(noted) == (0 if does in ("hangs", "closes") else 1), noted


async def test_a_flood_is_ended(bmc: RedfishFake, listening: Any) -> None:
    """Events without end: a look at once, then the stream is closed for an hour and a note says so; others are heard on."""
    bmc.events.does = "floods"
    async with listening("gpu01") as made:
        await until(lambda: made.notes, "the note")
        assert [kind for kind, _ in made.notes] == ["bmc.streams"]
        assert "events without end" in made.notes[0][1]
        await until(lambda: not bmc.events.listeners, "it is not read on")
        before, looks = bmc.events.begun, bmc.logins
        made.turn()
        await until(lambda: bmc.logins > looks, "its turn comes")
        assert bmc.events.begun == before


async def test_a_bmc_that_restarts_is_heard_again(
    bmc: RedfishFake, listening: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream ends with it; the next look, which sees what came to pass meanwhile, opens another one."""
    monkeypatch.setattr(bmc_streams, "FIRST_S", 0.0)
    async with listening("gpu01") as made:
        await until(lambda: bmc.events.listeners == 1, "its events are heard")
        bmc.events.hang_up()
        await until(lambda: made.poll._streams.heard == 0, "the stream has ended")
        made.turn()
        await until(lambda: bmc.events.listeners == 1, "it is heard again")
        bmc.extra = chassis_of(ill=True)
        await bmc.events.say("Warning")
        await until(lambda: "bmc.power" in made.kinds(), "the supply")


async def test_so_many_streams_and_not_more(bmc: RedfishFake, listening: Any) -> None:
    """The others are polled; a node that goes away makes room; a brain that no longer leads hears none."""
    nodes = tuple(f"gpu{n:02}" for n in range(8))
    async with listening(*nodes, event_streams=5) as made:
        await until(lambda: bmc.events.listeners == 5, "five are heard")
        assert [kind for kind, _ in made.notes] == ["bmc.streams"]
        heard = [node for node, one in made.poll._streams._nodes.items() if one.task is not None]
        made.known = set(nodes) - {heard[0]}
        made.turn()
        await until(lambda: made.poll._listed == made.known, "it is gone")
        made.turn()
        await until(
            lambda: bmc.events.listeners == 5 and heard[0] not in made.poll._streams._nodes,
            "another has its place",
        )
        made.leads = False
        await until(lambda: bmc.events.listeners == 0, "it hears nothing")
        bmc.extra = chassis_of(ill=True)
        await bmc.events.say("Critical")
        assert made.poll._streams.heard == 0


@pytest.mark.parametrize("how", ["unknown CA", "another name"])
async def test_its_certificate_is_checked(
    bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], how: str
) -> None:
    """As for the poll: without it neither password nor event passes."""
    context = (
        ssl.create_default_context()
        if how == "unknown CA"
        else ssl.create_default_context(cafile=str(tls[0]))
    )
    url = bmc.url if how == "unknown CA" else bmc.url.replace("127.0.0.1", "localhost")
    notes: list[str] = []
    streams = BmcStreams(
        1, EVERY_S, look=lambda _: None, unwell=lambda _: False, note=lambda _, text: notes.append(text)
    )
    source = EventSource(
        where="redfish", url=url + STREAM, user=USER, word=PASSWORD, tls=context, connect_s=5.0, answer_s=5.0
    )
    streams.offer("gpu01", source)
    await until(lambda: notes, "it is noted")
    assert "certificate" in notes[0].lower()
    assert bmc.events.begun == 0
    assert PASSWORD not in repr(source)
    assert not streams.wants("gpu01")
    await streams.close()
