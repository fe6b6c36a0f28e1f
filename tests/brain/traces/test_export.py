"""What tells traces: a collector that is away, slow, or says no costs the brain nothing and loses nothing that can wait."""

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Unreachable
from brain import config
from brain.adapters.readmodel import ReadModel
from brain.core.pack.spec import Mode
from brain.leader import trace_export
from brain.leader.trace_export import TraceExport, trace_exports
from brain.leader.trace_outputs import TraceFile, outputs
from brain.traces.ids import trace_id
from tests.brain.notify.receivers import Receiver, receiving
from tests.brain.traces.kit import Seen, history, look_over, seen
from tests.brain.world import Story, pack
from tests.real.nats import free_port

WITHIN_S = 60.0


def story(faults: int = 1) -> Story:
    """Links that go down and come back, on as many nodes."""
    it = Story(pack(Mode.OBSERVE, shared_nodes=1000, shared_share=1))  # each a fault of its own
    for number in range(faults):
        it.event(10 + 20 * number, "link.state", "link/ib0", f"n{number}", up=False)
        it.event(15 + 20 * number, "link.state", "link/ib0", f"n{number}", up=True)
    return it.run(10_000)


class Brain:
    """As much of a brain as an export needs."""

    def __init__(self, kept: ReadModel, **traces: Any) -> None:
        self.leads = True
        self.notes: list[tuple[str, str]] = []
        self.kept = kept
        self.config = config.parse({"traces": traces}, "brain.toml", Path("/"))
        self.exports = trace_exports(
            self.config,
            "b1",
            kept,
            leads=lambda: self.leads,
            note=lambda kind, text: self.notes.append((kind, text)),
        )

    @property
    def export(self) -> TraceExport:
        (found,) = self.exports.exports
        return found

    def all_change(self) -> list[str]:
        """As if each incident had been noted just now."""
        found = [one["id"] for one in self.kept.incidents(open_only=False, limit=100_000)]
        for incident in found:
            self.exports.changed(incident)
        return found

    def said(self, kind: str) -> int:
        return [one for one, _ in self.notes].count(kind)


@contextlib.asynccontextmanager
async def telling(kept: ReadModel, **traces: Any) -> AsyncIterator[Brain]:
    """A leader that tells."""
    brain = Brain(kept, **traces)
    work = asyncio.create_task(brain.exports.serve())
    try:
        yield brain
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        await brain.exports.close()


async def until(look: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not look():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


def take(_request: web.Request, _body: Any) -> tuple[int, Any]:
    return 200, {}


def taken(receiver: Receiver) -> list[Seen]:
    return [span for body in receiver.taken for span in seen(json.dumps(body).encode())]


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_export, "GATHER_S", 0.01)
    monkeypatch.setattr(trace_export, "RETRY_S", (0.05,))


async def test_a_trace_comes_whole_and_once(tmp_path: Path) -> None:
    """Also when the same incident is noted again and again."""
    async with (
        receiving(take) as receiver,
        telling(history(tmp_path, story()), otlp_url=f"{receiver.url}/v1/traces") as it,
    ):
        (incident,) = it.all_change()
        await until(lambda: it.export.spans and not it.export.waiting, "told")
        it.all_change()
        await until(lambda: not it.export.waiting, "nothing new")
        found = taken(receiver)
        look_over(found)
        assert {span.trace for span in found} == {trace_id(incident)}
        assert found[0].resource["service.name"] == "gpuward"
        assert found[0].resource["service.instance.id"] == "b1"
        assert it.export.spans == len(found)
        assert it.notes == []


async def test_headers_come_along(tmp_path: Path) -> None:
    """Those of the configuration, and the token from its file."""
    heard: dict[str, str] = {}

    def judge(request: web.Request, _body: Any) -> tuple[int, Any]:
        heard.update(request.headers)
        return 200, {}

    secret = tmp_path / "otlp.headers"
    secret.write_text("Authorization: Bearer s3cret:with colon\n\nX-Two: 2\n")
    secret.chmod(0o600)
    async with (
        receiving(judge) as receiver,
        telling(
            history(tmp_path, story()),
            otlp_url=f"{receiver.url}/v1/traces",
            headers={"X-Scope-OrgID": "gpu"},
            headers_file=str(secret),
        ) as it,
    ):
        it.all_change()
        await until(lambda: it.export.spans, "told")
    assert heard["Authorization"] == "Bearer s3cret:with colon"
    assert (heard["X-Scope-OrgID"], heard["X-Two"], heard["Content-Type"]) == ("gpu", "2", "application/json")


async def test_a_collector_that_is_away_gets_everything_when_it_is_back(tmp_path: Path) -> None:
    """What waits is a list of ids; it is said once that nobody takes them, and once that it works again."""
    port = free_port()
    async with telling(history(tmp_path, story(100)), otlp_url=f"http://127.0.0.1:{port}/v1/traces") as it:
        incidents = it.all_change()
        assert len(incidents) == 100
        await until(lambda: it.said("traces.failing"), "noticed")
        await asyncio.sleep(0.5)  # some more attempts
        assert (it.export.waiting, it.export.spans, it.export.dropped) == (100, 0, 0)
        bodies: list[bytes] = []

        async def collect(request: web.Request) -> web.Response:
            bodies.append(await request.read())
            return web.json_response({})

        app = web.Application()
        app.router.add_post("/v1/traces", collect)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await until(lambda: not it.export.waiting and it.said("traces.works"), "told")
        await runner.cleanup()
        found = [span for body in bodies for span in seen(body)]
        for incident in incidents:
            look_over([span for span in found if span.trace == trace_id(incident)])
        assert [kind for kind, _ in it.notes] == ["traces.failing", "traces.works"]


async def test_a_slow_collector_holds_nothing_up(tmp_path: Path) -> None:
    """Noting goes on at once while a post hangs; the post ends with its timeout, and is tried again under the same ids."""
    async with receiving(take) as receiver:
        receiver.delay_s = 1.0
        async with telling(
            history(tmp_path, story(20)), otlp_url=f"{receiver.url}/v1/traces", timeout_s=0.2
        ) as it:
            it.all_change()
            await until(lambda: receiver.asked, "a post hangs")
            began = time.perf_counter()
            for _ in range(1000):
                it.all_change()
            assert time.perf_counter() - began < 30, "20,000 changes, with what it takes to list them"
            await until(lambda: it.said("traces.failing"), "noticed")
            receiver.delay_s = 0.0
            await until(lambda: not it.export.waiting and it.said("traces.works"), "told")
        spans = taken(receiver)
        by_id = {(span.trace, span.id): span for span in spans}
        assert all(by_id[span.trace, span.id] == span for span in spans), "what came twice is the same"


@pytest.mark.parametrize(
    ("answer", "rejected"),
    [
        ((400, {"message": "not so"}, {}), "all"),
        ((200, {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}, {}), 2),
        ((200, {"partialSuccess": {}}, {}), 0),
    ],
    ids=["refused", "in part", "nothing"],
)
async def test_what_a_collector_does_not_want(tmp_path: Path, answer: Any, rejected: Any) -> None:
    """It is counted, said once, and not sent again: it would be refused again."""
    async with (
        receiving(take) as receiver,
        telling(history(tmp_path, story(3)), otlp_url=f"{receiver.url}/v1/traces") as it,
    ):
        receiver.instead = [answer] * 3
        for incident in it.all_change():
            it.exports.changed(incident)
        await until(lambda: receiver.asked and not it.export.waiting, "told")
        await until(lambda: it.export.spans + it.export.rejected > 0, "counted")
        asked = receiver.asked
        assert (it.export.spans == 0) == (rejected == "all")
        assert rejected == "all" or it.export.rejected == rejected * asked
        assert it.said("traces.rejected") == bool(rejected)
        assert not it.said("traces.failing")
        it.all_change()
        await asyncio.sleep(0.3)
        assert receiver.asked == asked


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
async def test_what_is_not_about_the_spans_is_tried_again(tmp_path: Path, status: int) -> None:
    """A token that has ended, a wrong path, a collector that is full: when it is mended, nothing is missing."""
    async with (
        receiving(take) as receiver,
        telling(history(tmp_path, story(3)), otlp_url=f"{receiver.url}/v1/traces") as it,
    ):
        receiver.instead = [(status, {"message": "no"}, {})] * 3
        incidents = it.all_change()
        await until(lambda: not it.export.waiting and it.export.spans, "told")
        assert (receiver.asked, it.export.rejected) == (4, 0)
        assert [kind for kind, _ in it.notes] == ["traces.failing", "traces.works"]
        assert str(status) in it.notes[0][1]
        for incident in incidents:
            look_over([span for span in taken(receiver) if span.trace == trace_id(incident)])


async def test_a_lease_that_is_lost_for_a_moment(tmp_path: Path) -> None:
    """What was noted meanwhile is told when this brain leads again."""
    async with (
        receiving(take) as receiver,
        telling(history(tmp_path, story(3)), otlp_url=f"{receiver.url}/v1/traces") as it,
    ):
        it.leads = False
        first, *_ = it.all_change()
        assert it.export.waiting == 0
        it.leads = True
        it.exports.changed(first)
        await until(lambda: not it.export.waiting and it.export.spans, "told")
        assert len({span.trace for span in taken(receiver)}) == 3


async def test_the_list_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest incidents go; how many is counted, that it happens is said once."""
    monkeypatch.setattr(trace_export, "MOST_WAITING", 10)
    async with telling(
        history(tmp_path, story(30)), otlp_url=f"http://127.0.0.1:{free_port()}/v1/traces"
    ) as it:
        it.all_change()
        assert (it.export.waiting, it.export.dropped) == (10, 20)
        await until(lambda: it.said("traces.failing"), "noticed")
        assert it.said("traces.dropped") == 1


async def test_a_new_leader_tells_the_same_again_and_nothing_old(tmp_path: Path) -> None:
    """What was noted shortly before the former one died; a brain that does not lead tells nothing."""
    kept = history(tmp_path, story(50))  # 20 s apart: the last fifteen within five minutes
    newest = kept.newest_notes(1)[0]["at"]
    async with receiving(take) as receiver:
        url = f"{receiver.url}/v1/traces"
        async with telling(kept, otlp_url=url) as it:
            it.all_change()
            await until(lambda: not it.export.waiting and it.export.spans, "told")
        first = {(span.trace, span.id): span for span in taken(receiver)}
        receiver.taken.clear()
        async with telling(kept, otlp_url=url) as it:
            it.leads = False
            it.all_change()
            assert it.export.waiting == 0
            it.leads = True
            it.exports.begin()
            await until(lambda: not it.export.waiting and it.export.spans, "told again")
        again = {(span.trace, span.id): span for span in taken(receiver)}
    assert 0 < len({trace for trace, _ in again}) < 50
    assert all(first[key] == span for key, span in again.items())
    ends = [span.end for span in again.values() if not span.parent]
    assert all(end >= newest - trace_export.AGAIN_S for end in ends)


async def test_a_row_that_cannot_be_understood_costs_its_trace_only(tmp_path: Path) -> None:
    """Another version may have written it: the others are told."""
    kept = history(tmp_path, story(3))
    with sqlite3.connect(tmp_path / "history.sqlite") as db:
        (odd,) = db.execute("SELECT id FROM incidents LIMIT 1").fetchone()
        db.execute(
            "UPDATE incidents SET body = json_remove(CAST(body AS TEXT), '$.opened_at') WHERE id = ?", (odd,)
        )
    async with receiving(take) as receiver, telling(kept, otlp_url=f"{receiver.url}/v1/traces") as it:
        incidents = it.all_change()
        await until(lambda: not it.export.waiting and it.export.spans, "told")
        told = {span.trace for span in taken(receiver)}
    assert told == {trace_id(one) for one in incidents if one != odd}
    assert (it.export.dropped, it.said("traces.dropped")) == (1, 1)


async def test_a_file_of_lines(tmp_path: Path) -> None:
    """Each line is a whole request; not everybody may read it; at its bound it makes room for another one."""
    path = tmp_path / "traces.jsonl"
    async with telling(history(tmp_path, story(3)), file=str(path)) as it:
        incidents = it.all_change()
        await until(lambda: not it.export.waiting and it.export.spans, "told")
    found = [span for line in path.read_bytes().splitlines() for span in seen(line)]
    for incident in incidents:
        look_over([span for span in found if span.trace == trace_id(incident)])
    assert path.stat().st_mode & 0o777 == 0o640
    file = TraceFile(path, max_bytes=path.stat().st_size + 10)
    await file.write(b"{}")
    await file.write(b'{"a": "a longer line"}')
    assert path.read_bytes() == b'{"a": "a longer line"}\n'
    assert path.with_name("traces.jsonl.1").read_bytes().endswith(b"\n{}\n")


async def test_a_file_that_cannot_be_written() -> None:
    """A full disk is said like a collector that is away."""
    with pytest.raises(Unreachable, match="/dev/full cannot be written: No space left"):
        await TraceFile(Path("/dev/full"), 10**9).write(b"{}")
    with pytest.raises(Unreachable, match="cannot be written: Not a directory"):
        await TraceFile(Path("/dev/null/x"), 10**9).reach()


WRONG = [
    ({"otlp_url": "collector:4318"}, "traces.otlp_url: want http://host:4318/v1/traces or https://..."),
    ({"otlp_url": "http://collector:4318"}, "traces.otlp_url: the path is missing: collectors take traces at /v1/traces"),
    ({"otlp_url": "ftp://c/v1/traces"}, "traces.otlp_url: want http://"),
    ({"url": "http://c/v1/traces"}, "traces.url: unknown key"),
    ({"timeout_s": 0}, "traces.timeout_s: Input should be greater than 0"),
    ({"file_max_bytes": 10}, "traces.file_max_bytes: Input should be greater than or equal to 1048576"),
    ({"file": "/nowhere/at/all/t.jsonl"}, "traces.file: there is no folder /nowhere/at/all"),
    ({"otlp_url": "http://c/v1/traces", "headers_file": "/nowhere/h"}, "traces.headers_file: /nowhere/h cannot be read"),
    ({"otlp_url": "http://c/v1/traces", "headers": {"a b": "c"}}, "traces.headers: 'a b' is no name of an HTTP header"),
    ({"otlp_url": "http://c/v1/traces", "headers": {"a": "c\n"}}, "traces.headers: the value of a is not printable"),
    ({"otlp_url": "https://c/v1/traces", "ca_file": "/nowhere/ca"}, "traces.ca_file: /nowhere/ca"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "says"), WRONG, ids=[says.partition(":")[0] + str(n) for n, (_, says) in enumerate(WRONG)]
)
def test_what_cannot_be_is_said_with_its_key(keys: dict[str, Any], says: str) -> None:
    """Before the brain starts."""
    with pytest.raises(ConfigError) as caught:
        outputs(config.parse({"traces": keys}, "brain.toml", Path("/")).traces)
    assert says in str(caught.value)


def test_a_headers_file_is_quoted_nowhere(tmp_path: Path) -> None:
    """It holds tokens: an error names its line's number."""
    path = tmp_path / "headers"
    path.write_text("Authorization: x\nBearer s3cret\n")
    with pytest.raises(ConfigError) as caught:
        outputs(
            config.parse(
                {"traces": {"otlp_url": "http://c/v1/traces", "headers_file": str(path)}}, "t", tmp_path
            ).traces
        )
    assert str(caught.value).endswith("headers: line 2: want `Name: value`")
    assert "s3cret" not in str(caught.value)


def test_nothing_is_told_unless_it_is_asked_for() -> None:
    """Off by default."""
    default = config.load(None).traces
    assert not default.on
    assert outputs(default) == []
