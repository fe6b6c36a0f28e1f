"""The supervisor: what breaks in one part is reported, tried again, and ends nothing else."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import pytest

from agent import __version__, supervisor
from agent.collectors.base import Collector
from agent.collectors.samples import Line, Overrun, Sample, Tick
from agent.contract.messages import Severity, UnsentEvent
from agent.host import Host
from agent.supervisor import Feeder, Kept, keep_going
from tests.agent.uplink_kit import Clock, FakeHost, fact, open_spool, waiting


class Echo(Collector):
    """Reports one fact for each line; raises on the text "bug", invents a kind on "invented"."""

    name: ClassVar[str] = "echo"
    wants: ClassVar[tuple[type, ...]] = (Line,)
    kinds: ClassVar[tuple[str, ...]] = ("agent.kmsg_overrun",)

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See the class."""
        assert isinstance(sample, Line)
        yield fact(1)
        if sample.text == "bug":
            raise ZeroDivisionError("three divided by none")
        if sample.text == "invented":
            yield UnsentEvent(kind="no.such_kind", component="node", severity=Severity.INFO)


class Late(Echo):
    """Holds its fact back until the next tick."""

    name: ClassVar[str] = "late"
    wants: ClassVar[tuple[type, ...]] = (Line, Tick)

    def feed(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:
        """See the class."""
        if isinstance(sample, Tick):
            yield fact(2)


def line(seq: int, text: str = "") -> Line:
    """A kernel log record."""
    return Line(text=text, mono_s=1000.0, seq=seq)


@pytest.mark.parametrize(
    ("text", "says"), [("bug", "ZeroDivisionError: three divided by none"), ("invented", "no.such_kind")]
)
def test_a_collector_that_raises_loses_that_sample_only(tmp_path: Path, text: str, says: str) -> None:
    """The other collectors get that sample, all of them get the next ones, and the bug is reported once."""
    spool = open_spool(tmp_path / "spool.db", Clock())
    feeder = Feeder(FakeHost(Clock()), [Echo(), Echo()], spool)
    feeder.emit(line(1))
    assert len(waiting(spool)) == 2
    for seq in (2, 3):
        feeder.emit(line(seq, text))
    feeder.emit(line(4))
    failures = [m for m in waiting(spool) if m["kind"] == "agent.source_failed"]
    assert len(failures) == 1
    assert failures[0]["data"]["source"] == "collector:echo"
    assert says in failures[0]["data"]["reason"]
    assert len(waiting(spool)) == 2 + 1 + 2


def test_events_carry_the_position_of_their_line(tmp_path: Path) -> None:
    """With the facts of a line goes its number; with facts held back until a tick the latest number; a
    reading of another source or an ordinary line changes nothing.
    """
    spool = open_spool(tmp_path / "spool.db", Clock())
    feeder = Feeder(FakeHost(Clock()), [Late()], spool)
    feeder.emit(line(7))
    assert spool.position is None
    feeder.emit(Overrun(lost=1, mono_s=1000.0))
    feeder.emit(Tick(mono_s=1001.0))
    assert spool.position == ("boot-1", 7)


async def test_a_broken_source_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With growing pauses; each cause is reported once; when it works at last, nothing more is reported."""
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.01)
    spool = open_spool(tmp_path / "spool.db", Clock())
    feeder = Feeder(Host(), [], spool)
    began: list[float] = []
    working = asyncio.Event()
    errors: list[Exception | None] = [
        PermissionError(13, "Permission denied"),
        PermissionError(13, "Permission denied"),
        KeyError("a bug"),
        None,
    ]

    async def work() -> None:
        began.append(asyncio.get_running_loop().time())
        if len(began) > len(errors):
            working.set()
            await asyncio.Event().wait()
        error = errors[len(began) - 1]
        if error:
            raise error

    async with contextlib.AsyncExitStack() as undo:
        keep_going(undo, "kmsg", work, feeder, Host(), needs="CAP_SYSLOG")
        await asyncio.wait_for(working.wait(), 60)
    pauses = [after - before for before, after in itertools.pairwise(began)]
    assert all(pause >= 0.01 * 2**number for number, pause in enumerate(pauses))
    assert [message["data"]["reason"] for message in waiting(spool)] == [
        "Permission denied (needs CAP_SYSLOG)",
        "KeyError: 'a bug'",
        "it ended",
    ]


def test_that_all_sources_run_is_told_once_they_have_for_a_minute(tmp_path: Path) -> None:
    """After the start, since an earlier run may have failed; after a failure of this one; and while nothing fails never again."""
    clock = Clock()
    spool = open_spool(tmp_path / "spool.db", clock)
    feeder = Feeder(FakeHost(clock), [Echo()], spool)
    kmsg, nvml = Kept(down=""), Kept(down="Permission denied")

    def told(after_s: float) -> int:
        clock.mono_s += after_s
        feeder.tell_well({"kmsg": kmsg, "nvml": nvml})
        return sum(m["kind"] == "agent.sources_run" for m in waiting(spool))

    assert [told(50), told(50)] == [0, 0], "one does not run"
    nvml.down = ""
    assert [told(30), told(30), told(600)] == [0, 1, 1]
    feeder.failed("nvml", "it ended")
    assert [told(59), told(1), told(600)] == [1, 2, 2]
    for _ in range(3):
        feeder.failed("nvml", "it ended")  # told already, and no less a failure
        assert told(59) == 2
    assert told(1) == 3


def test_who_has_lost_a_sample_does_not_say_that_all_is_well(tmp_path: Path) -> None:
    """A collector that has raised may do so with each such sample: until the agent starts again nothing speaks against it."""
    clock = Clock()
    spool = open_spool(tmp_path / "spool.db", clock)
    feeder = Feeder(FakeHost(clock), [Echo()], spool)
    feeder.emit(line(1, "bug"))
    clock.mono_s += 3600
    feeder.tell_well({"kmsg": Kept(down="")})
    assert "agent.sources_run" not in {m["kind"] for m in waiting(spool)}


def test_the_version_is_the_package_s() -> None:
    """The version that beats and events carry is the one that is released."""
    assert f'\nversion = "{__version__}"\n' in (Path(__file__).parents[2] / "pyproject.toml").read_text()
