"""The spool keeps what the broker does not have yet: in order, once, within bounds."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.contract.messages import Severity, UnsentEvent, decode_event
from agent.uplink.spool import LINE, MEMORY_MAX_EVENTS, Spool
from tests.agent.uplink_kit import Clock, fact, numbers, open_spool, waiting

RANKS = (Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.FATAL)
MAX = 100

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.sampled_from(RANKS), min_size=1, max_size=60)),
        st.tuples(st.just("ack"), st.integers(0, 80)),
        st.tuples(st.just("die"), st.none()),
        st.tuples(st.just("reboot"), st.none()),
        st.tuples(st.just("report"), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_whatever_happens_nothing_is_lost_doubled_or_reordered(steps: list[tuple[str, object]]) -> None:
    """Puts, acknowledgements, crashes and reboots in any order: what waits is what was put, less what was acknowledged,
    less the counted drops (mildest first, oldest first); in order; no number is used twice.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, clock = Path(folder) / "spool.db", Clock()
        spool = open_spool(path, clock, max_events=MAX)
        model: list[tuple[int, int]] = []  # (rank, the test's number)
        given_out: dict[str, int] = {}
        put, unreported = 0, 0
        for what, detail in steps:
            if what == "put":
                assert isinstance(detail, list)
                for severity in detail:
                    put += 1
                    spool.put(fact(put, severity), clock.mono_s)
                    model.append((severity.rank, put))
                    if len(model) > MAX:
                        model.remove(min(model))
                        unreported += 1
            elif what == "ack":
                assert isinstance(detail, int)
                rows = spool.pending(0, detail)
                if rows:
                    spool.acknowledged(rows[-1].seq)
                    del model[: len(rows)]
            elif what == "report":
                spool.report_dropped()
                if unreported and len(model) <= MAX * 3 // 4:
                    model.append((Severity.WARNING.rank, -unreported))
                    unreported = 0
            else:
                if what == "reboot":
                    clock.boot, clock.mono_s = clock.boot + "1", 5.0
                dead, spool = spool, open_spool(path, clock, max_events=MAX)  # no goodbye: as after SIGKILL
                dead.close()
            found = [
                -message["data"]["dropped"] if message["kind"] == "agent.dropped" else message["data"]["lost"]
                for message in waiting(spool)
            ]
            assert found == [number for _, number in model]
            assert spool.spooled == len(model) <= MAX
            for message, number in zip(waiting(spool), found, strict=True):
                assert given_out.setdefault(message["id"], number) == number
        spool.close()


def test_a_message_fits_the_contract(tmp_path: Path) -> None:
    """What is sent can be read by the brain, whatever a collector wrote into it."""
    clock = Clock()
    spool = open_spool(tmp_path / "spool.db", clock)
    odd = UnsentEvent(
        kind="gpu.off_bus",
        component="gpu/0000:3b:00",
        severity=Severity.FATAL,
        data={"message": "x" * 5000, "odd": "\udcff\x00é", "big": 2**70},
        evidence="\ud800" + "e" * 9000,
        age_s=3.0,
    )
    spool.put(odd, clock.mono_s)
    clock.mono_s += 2.5
    (raw,) = waiting(spool)
    event = decode_event(raw, "gpu-1")
    assert event.age_s == 5.5
    assert len(str(event.data["message"])) == 500
    assert event.data["big"] == str(2**70)
    assert event.at == "2026-01-01T00:00:00.000+00:00"
    assert event.order[1] == 1


def test_age_over_a_reboot_is_a_lower_bound(tmp_path: Path) -> None:
    """After a reboot the age is what was known at spooling plus the time since this boot, never by a wall clock."""
    clock = Clock(mono_s=1000.0)
    spool = open_spool(tmp_path / "spool.db", clock)
    spool.put(fact(1), 990.0)
    spool.close()
    clock.boot, clock.mono_s = "boot-2", 40.0
    clock.wall = clock.wall.replace(year=2001)
    (message,) = waiting(open_spool(tmp_path / "spool.db", clock))
    assert message["age_s"] == 50.0
    assert message["boot"] == "boot-1"


def test_the_kernel_log_position_is_kept_with_the_events_of_its_line(tmp_path: Path) -> None:
    """Both or neither, so that a line is neither lost nor reported again."""
    clock, path = Clock(), tmp_path / "spool.db"
    spool = open_spool(path, clock)
    assert spool.position is None
    spool.put_all([fact(1), fact(2)], clock.mono_s, {LINE: "boot-1 17"})
    spool = open_spool(path, clock)
    assert spool.position == ("boot-1", 17)
    spool.save_position("boot-1", 21)
    assert open_spool(path, clock).position == ("boot-1", 21)
    assert numbers(spool) == [1, 2]


def test_checkpoints_are_kept_with_the_events_and_removed_when_they_are_empty(tmp_path: Path) -> None:
    """How far other sources have read: for each source, over a restart, and when the disk is left for memory."""
    clock, path = Clock(), tmp_path / "spool.db"
    spool = open_spool(path, clock)
    spool.put_all([fact(1)], clock.mono_s, {"log /a": "7 100", "log /b": "8 5"})
    spool.save_checkpoints({"log /b": "", "log /c": "9 0"})
    assert open_spool(path, clock).checkpoints("log ") == {"log /a": "7 100", "log /c": "9 0"}
    assert open_spool(path, clock).checkpoints("journal") == {}
    spool._store.close()  # as a disk that fails
    spool.save_checkpoints({"log /d": "1 1"})
    assert spool.checkpoints("log /d") == {"log /d": "1 1"}


DIE = """
import os, signal, sys
from pathlib import Path
from agent.uplink.spool import LINE
from tests.agent.uplink_kit import Clock, fact, open_spool
spool = open_spool(Path(sys.argv[1]), Clock())
for number in range(1, 10**6):
    spool.put_all([fact(2 * number), fact(2 * number + 1)], 1000.0, {LINE: f"boot-1 {number}"})
    os.write(1, f"{number}\\n".encode())
"""


def test_sigkill_in_the_middle_of_putting(tmp_path: Path) -> None:
    """A process that is killed at a random moment leaves whole transactions: events and position agree, all that was
    reported as put is there, and the next process continues the numbers.
    """
    path = tmp_path / "spool.db"
    process = subprocess.Popen(
        [sys.executable, "-c", DIE, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(300)][-1]
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait(60)
    said = int(rest[-1]) if rest else said
    spool = open_spool(path, Clock())
    assert spool.position is not None
    line = spool.position[1]
    assert line >= said
    assert numbers(spool) == list(range(2, 2 * line + 2))
    spool.put(fact(7), 1000.0)
    assert waiting(spool)[-1]["id"].endswith(f":{2 * line + 1}")


def test_an_event_that_was_stored_behind_a_later_one_goes_to_the_end(tmp_path: Path) -> None:
    """Renumbering keeps the fact and gives it a higher number."""
    clock = Clock()
    spool = open_spool(tmp_path / "spool.db", clock)
    for number in (1, 2, 3):
        spool.put(fact(number), clock.mono_s)
    spool.renumber(1)
    spool.renumber(99)  # gone already: nothing happens
    assert numbers(spool) == [2, 3, 1]
    assert [row.seq for row in spool.pending(0, 9)] == [2, 3, 4]
    assert spool.spooled == 3


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_broken_file_is_moved_away(tmp_path: Path, content: bytes) -> None:
    """The agent starts with an empty spool, reports what happened, and keeps the broken file for a person."""
    path = tmp_path / "spool.db"
    path.write_bytes(content)
    spool = open_spool(path, Clock())
    spool.put(fact(1), 1000.0)
    (problem,) = spool.take_problems()
    assert "spool.db.broken" in problem
    assert (tmp_path / "spool.db.broken").read_bytes() == content
    assert numbers(open_spool(path, Clock())) == [1]
    assert spool.take_problems() == []


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_disk_changes_the_others_are_told(tmp_path: Path, seed: int) -> None:
    """Bits flip anywhere in the file: the agent starts, goes on, and says what it could not send."""
    chance = random.Random(seed)
    whole = open_spool(tmp_path / "whole.db", Clock())
    for number in range(100):
        whole.put(fact(number), 1000.0)
    whole.save_position("boot-1", 7)
    whole.close()
    content = (tmp_path / "whole.db").read_bytes()
    for number in range(12):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 8, 64))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path = tmp_path / f"{number}.db"
        path.write_bytes(damaged)
        spool = open_spool(path, Clock())
        assert spool.position in (None, ("boot-1", 7)) or spool.position[0] != ""
        sent = [spool.message(row) for row in spool.pending(0, 1000)]
        assert len(sent) + spool.dropped == 100 or spool.take_problems()
        spool.put(fact(999), 1000.0)
        assert spool.message(spool.pending(0, 1000)[-1])
        spool.acknowledged(50)
        spool.report_dropped()
        spool.close()


def test_one_damaged_event_stands_in_nobodys_way(tmp_path: Path) -> None:
    """It is dropped, counted and told; before, it shut the node's mouth for ever."""
    path = tmp_path / "spool.db"
    spool = open_spool(path, Clock())
    for number in (1, 2, 3):
        spool.put(fact(number), 1000.0)
    spool.close()
    with sqlite3.connect(path) as other:
        other.execute('UPDATE events SET body = CAST(\'{"kind": "x\' AS BLOB) WHERE seq = 2')
    other.close()
    spool = open_spool(path, Clock())
    assert numbers(spool) == [1, 3]
    assert (spool.spooled, spool.dropped) == (2, 1)
    assert "1 event damaged and dropped" in spool.take_problems()[0]
    spool.report_dropped()
    assert [row.kind for row in spool.pending(0, 9)][-1] == "agent.dropped"


def test_a_file_that_breaks_while_it_is_used(tmp_path: Path) -> None:
    """Everything that can still be read is kept, under its old numbers; new numbers have a new spool id."""
    path, clock = tmp_path / "spool.db", Clock()
    spool = open_spool(path, clock)
    spool.put(fact(1), 1000.0)
    first = waiting(spool)[0]["id"]
    _break_table(path)
    spool.put(fact(2), 1000.0)
    assert numbers(spool)[-1] == 2
    assert waiting(spool)[-1]["id"].split(":")[1] != first.split(":")[1]
    assert spool.take_problems()


def _break_table(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("DROP INDEX mildest")
        other.execute("ALTER TABLE events RENAME TO gone")
    other.close()


@pytest.mark.root
def test_a_full_disk(tmp_path: Path) -> None:
    """On a full file system the spool continues in memory and reports it; once there is room it returns to the disk, and
    nothing is lost or doubled on the way.
    """
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(mount)], check=True)
    try:
        clock = Clock()
        spool = open_spool(mount / "spool.db", clock)
        ballast = mount / "ballast"
        spool.put(fact(1), clock.mono_s)
        _fill(ballast)
        for number in range(2, 400):
            spool.put(fact(number, note="x" * 400), clock.mono_s)
        (problem,) = spool.take_problems()
        assert "memory" in problem
        assert numbers(spool) == list(range(1, 400))
        spool.acknowledged(spool.pending(0, 390)[-1].seq)
        spool.retry_disk()
        spool.put(fact(400), clock.mono_s)
        ballast.unlink()
        spool.retry_disk()
        assert numbers(spool) == list(range(391, 401))
        spool.put(fact(401), clock.mono_s)
        again = open_spool(mount / "spool.db", clock)
        assert numbers(again) == list(range(391, 402))
        assert again.take_problems() == []
        ids = [message["id"] for message in waiting(again)]
        assert len(set(ids)) == len(ids)
        spool.close()
        again.close()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as sink:
        try:
            while sink.write(b"x" * 4096) == 4096:
                pass
        except OSError:
            return


def test_no_disk_at_all(tmp_path: Path) -> None:
    """Where the folder cannot be made, the agent still works: bounded, in memory."""
    (tmp_path / "file").write_text("")
    spool = open_spool(tmp_path / "file" / "spool.db", Clock())
    for number in range(50):
        spool.put(fact(number), 1000.0)
    assert numbers(spool) == list(range(50))
    assert "memory" in spool.take_problems()[0]
    assert MEMORY_MAX_EVENTS <= 10_000


def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    """Large events do not fill the disk; the drops are counted, and reported once there is room."""
    clock = Clock()
    spool = open_spool(tmp_path / "spool.db", clock, max_bytes=65536)
    for number in range(200):
        spool.put(fact(number, note="x" * 500), clock.mono_s)
    assert sum(len(row.body) for row in spool.pending(0, 1000)) <= 65536
    dropped = 200 - spool.spooled
    assert spool.dropped == dropped > 0
    spool.report_dropped()
    assert spool.spooled == 200 - dropped, "no room: the report waits"
    spool.acknowledged(spool.pending(0, 1000)[-5].seq)
    spool.report_dropped()
    spool.report_dropped()
    assert [m["data"]["dropped"] for m in waiting(spool) if m["kind"] == "agent.dropped"] == [dropped]


def test_a_put_is_quick(tmp_path: Path) -> None:
    """A put takes well under a millisecond; here with a wide margin for a busy machine."""
    clock = Clock()
    spool: Spool = open_spool(tmp_path / "spool.db", clock)
    started = os.times().user + os.times().system
    for number in range(2000):
        spool.put(fact(number), clock.mono_s)
    assert os.times().user + os.times().system - started < 2.0
