"""`gpuward log replay` of a log with a message that crashes the engine: it says which one, and can leave it out."""

from pathlib import Path

import orjson
import pytest

from agent.contract import subjects
from agent.contract.messages import Event, Severity, encode_event
from brain.adapters.log import Record
from brain.adapters.log_file import LogFileWriter, LogName
from brain.cli.main import run
from brain.core.effects import Effect
from brain.core.engine import Engine
from brain.core.inputs import Input

CRASHES = 3


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five events, and an engine that cannot bear one of them."""
    file = tmp_path / "log.ndjson"
    handle = Engine.handle

    def bad(engine: Engine, given: Input, now: float) -> list[Effect]:
        if getattr(given, "id", "") == f"n1:x:{CRASHES}":
            raise ZeroDivisionError("division by zero")
        return handle(engine, given, now)

    monkeypatch.setattr(Engine, "handle", bad)
    with file.open("wb") as sink:
        made = LogFileWriter(sink.write, LogName(cell="default", log="x"), 1, packed=False)
        for seq in range(1, 6):
            event = Event(
                id=f"n1:x:{seq}", node="n1", kind="agent.started", component="node", severity=Severity.INFO,
                at="", age_s=0.0, boot="b", count=1, data={"version": "1"}, evidence="",
            )  # fmt: skip
            body = orjson.dumps(encode_event(event))
            made.add(Record(seq, 1.7e9 + seq, subjects.event("default", "n1"), body, 0))
        made.finish()
    return file


def test_it_says_which_and_leaves_nothing_half_made(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what to do, without a traceback."""
    into = log.parent / "made"
    with pytest.raises(SystemExit) as left:
        run({}, ["log", "replay", str(log), "--into", str(into)])
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith(
        f"gpuward: message {CRASHES} (ward.default.event.n1) crashes the engine: ZeroDivisionError: division by zero"
    )
    assert "`--skip` with its position" in said
    assert [path.name for path in into.iterdir()] == ["lock"]  # of whoever uses the folder


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_file_that_was_cut_off_leaves_nothing_half_made(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keep: float
) -> None:
    """A brain that is started there would go on behind half of a history; and the whole file is taken by the same command."""
    monkeypatch.undo()  # the engine bears all of it
    whole = log.read_bytes()
    into = log.parent / "made"
    said = []
    for content in (whole[: int(len(whole) * keep)], whole, whole):
        log.write_bytes(content)
        with pytest.raises(SystemExit) as left:
            run({}, ["log", "replay", str(log), "--into", str(into)])
        said.append((left.value.code, capsys.readouterr().err))
        if len(said) == 1:
            assert [path.name for path in into.iterdir()] == ["lock"]  # of whoever uses the folder
    assert said[0][0] == 1
    assert "was cut off" in said[0][1]
    assert said[1] == (0, "")
    assert sorted(one.name for one in into.iterdir()) == ["history.sqlite", "lock", "state.snapshot"]
    assert said[2][0] == 2
    assert "stop the brain and move history.sqlite* and state.snapshot out of it" in said[2][1]


def test_it_is_left_out(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a brain leaves it out that it has crashed."""
    into = log.parent / "made"
    with pytest.raises(SystemExit) as left:
        run({}, ["log", "replay", str(log), "--into", str(into), "--skip", str(CRASHES)])
    assert left.value.code == 0
    assert "messages 1 to 5, 5 in" in capsys.readouterr().out
    assert (into / "state.snapshot").exists()
