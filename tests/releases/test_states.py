"""What each released version left on disk and on the log is read by this one: nothing of it is forgotten, nothing unreadable."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from agent import __version__
from brain.adapters.codec import Codec
from brain.adapters.snapshot import Snapshots, dump
from brain.core.engine import Engine
from brain.core.hit_words import short, standing
from brain.core.inputs import JobsAnswer, Malformed
from brain.core.jobs_seen import JobSeen
from brain.core.pack.actions import ACTIONS
from brain.core.state import State
from tests.releases.kit import CELL, KEPT, KeptState, Logged, install, states, summary, versions

ROOT = Path(__file__).resolve().parents[2]
CODE = (".py", ".yaml", ".js", ".css", ".html")
STATES = [
    pytest.param(kept, id=f"{version}-{kept.name}") for version in versions() for kept in states(version)
]


def read(engine: Engine, log: list[Logged]) -> list[str]:
    """Lets the engine handle a log; what could not be read."""
    codec, unread = Codec(CELL), []
    for seq, (now, subject, body) in enumerate(log, 1):
        given = codec.decode(subject, body, seq)
        if isinstance(given, Malformed) and "malformed" not in subject:
            unread.append(f"{subject}: {given.why}")
        engine.handle(given, now)
    return unread


def loaded(kept: KeptState, folder: Path) -> State:
    """The state, as a brain of this version takes it up."""
    (folder / "state.snapshot").write_bytes(kept.snapshot)
    found = Snapshots(folder / "state.snapshot").load(KEPT)
    assert found.why == ""
    assert found.state is not None
    return found.state


def test_each_version_that_was_released_is_kept() -> None:
    """Five states each, in which something is held and drained."""
    assert versions()[0] == "0.1.0"
    for version in versions():
        kept = states(version)
        assert len(kept) == 5
        assert all(one.summary["holds"] and one.summary["drains"] for one in kept)


def test_what_was_released_is_not_changed_under_its_number(tmp_path: Path) -> None:
    """What is kept of this version is its code: whoever changes it raises the number first."""
    if __version__ not in versions():
        return
    install(__version__, tmp_path)
    changed = [
        str(path.relative_to(ROOT))
        for folder in ("agent", "brain", "rules", "runbooks")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in CODE and not same(path, tmp_path / "source" / path.relative_to(ROOT))
    ]
    assert not changed, (
        f"{__version__} is released (tests/fixtures/releases), and this is other code: raise the number in agent/__init__.py and "
        f"where tests/test_documents.py says, and begin its section in CHANGELOG.md. {changed[:5]}"
    )


def same(path: Path, kept: Path) -> bool:
    """Is it the file that was released?"""
    return kept.is_file() and kept.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kept", STATES)
def test_a_state_of_each_version_is_taken_up(kept: KeptState, tmp_path: Path) -> None:
    """Incidents, runs, holds, drains and modes are those that it had; what follows on its log is read and handled."""
    state = loaded(kept, tmp_path)
    assert summary(state) == kept.summary
    engine = Engine(state, actions=ACTIONS)
    assert read(engine, list(kept.after)) == []
    dump(engine.state)
    engine.close()


@pytest.mark.parametrize("kept", STATES)
def test_a_log_of_each_version_is_read_from_its_beginning(kept: KeptState) -> None:
    """Nothing on it is unreadable; operators' holds, which no code decides, are those of that time."""
    engine = Engine(actions=ACTIONS)
    assert read(engine, list(kept.before)) == []
    assert summary(engine.state)["holds"] == kept.summary["holds"]
    engine.close()


READS = """
import sys
from brain.adapters.codec import Codec
given = Codec("c").decode("ward.c.input.jobs", sys.stdin.buffer.read(), 1)
print(type(given).__name__, given.node, given.known, given.jobs, given.protected)
"""


@pytest.mark.parametrize("version", versions())
def test_each_version_reads_what_this_one_is_told_of_jobs(version: str, tmp_path: Path) -> None:
    """A standby of that version reads the log of this one's leader: an answer for people is one like any other there."""
    install(version, tmp_path)
    answer = JobsAnswer(
        id="j:n1:3.1", node="n1", known=True, jobs=("4711",), people=True, scheduler="slurm", unlisted=2,
        seen=(JobSeen(id="4711", name="train", user="alice", nodes=16, gpus=8),),
    )  # fmt: skip
    what, body = Codec(CELL).encode(answer)
    assert what == "jobs"
    done = subprocess.run(
        [sys.executable, "-P", "-c", READS],
        input=body,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "source")},
        check=True,
    )
    assert done.stdout.decode() == "JobsAnswer n1 True ('4711',) \n"


@pytest.mark.parametrize("kept", states("0.1.0"), ids=lambda kept: kept.name)
def test_an_incident_of_0_1_learns_who_is_hit(kept: KeptState, tmp_path: Path) -> None:
    """Which asked nobody for that: from its own answers, which have ids only, and from those of later versions."""
    state = loaded(kept, tmp_path)
    engine = Engine(state, actions=ACTIONS)
    one = next(
        one for one in state.incidents.values() if one.node and one.state not in ("closed", "explained")
    )
    assert one.hit == {}
    old = orjson.dumps({"v": 1, "id": "j:1", "node": one.node, "known": True, "jobs": ["4711"]})
    engine.handle(Codec(CELL).decode(f"ward.{CELL}.input.jobs", old, 1), state.now + 1)
    assert [line.job.id for line in standing(one.hit, asks=True).jobs] == ["4711"]
    seen = (JobSeen(id="4711", name="train", user="alice", nodes=16),)
    new = JobsAnswer(
        id="j:2", node=one.node, known=True, jobs=("4711",), people=True, seen=seen, scheduler="s"
    )
    what, body = Codec(CELL).encode(new)
    engine.handle(Codec(CELL).decode(f"ward.{CELL}.input.{what}", body, 2), state.now + 1)
    assert short(one.hit) == "alice's 4711 (1 of its 16 nodes)"
    engine.close()
