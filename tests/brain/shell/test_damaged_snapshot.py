"""A snapshot that the disk gives back otherwise than it was written, or whose writer was killed: whole, or not taken."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from brain.adapters import snapshot as snapshots
from brain.adapters.snapshot import Snapshots
from brain.core.state import State

LOG = "log-1"
ROUNDS = 30
# Writes states of which each is as long as its number says, and tells each number once it is written.
WRITER = """
import sys
from pathlib import Path
from brain.adapters import snapshot
from brain.core.state import State
kept, state, seq = snapshot.Snapshots(Path(sys.argv[1])), State(), int(sys.argv[2])
while True:
    seq += 1
    state.epoch, state.leader = seq, "x" * (seq % 7) * 100_000
    kept.write(snapshot.dump(state), seq, sys.argv[3])
    print(seq, flush=True)
"""


def state_of(seq: int) -> State:
    """One that says where on the log it is."""
    state = State()
    state.epoch = seq
    return state


def test_each_bit_of_its_head_counts(tmp_path: Path) -> None:
    """A position that is another one would leave out inputs of the log, or take them twice."""
    path = tmp_path / "state.snapshot"
    Snapshots(path).write(snapshots.dump(state_of(1234)), 1234, LOG)
    whole = path.read_bytes()
    taken = 0
    for bit in range(8 * (whole.index(b"\n") + 1)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found = Snapshots(path).load(LOG)
        assert (found.state is None, found.seq) in ((True, 0), (False, 1234)), damaged.partition(b"\n")[0]
        assert found.state is None or found.state.epoch == 1234
        taken += found.state is not None
        assert bool(found.why) == (found.state is None)
    assert not taken, "nor where the check's own name is another one"


def test_one_without_the_check_of_its_head_is_read(tmp_path: Path) -> None:
    """Version 0.1 wrote none."""
    path = tmp_path / "state.snapshot"
    Snapshots(path).write(snapshots.dump(state_of(7)), 7, LOG)
    head, _, body = path.read_bytes().partition(b"\n")
    meta = orjson.loads(head)
    del meta["head"]
    path.write_bytes(orjson.dumps(meta) + b"\n" + body)
    assert Snapshots(path).load(LOG).state is None, "a later version has written one"
    meta["version"] = "0.1.0"
    path.write_bytes(orjson.dumps(meta) + b"\n" + body)
    assert Snapshots(path).load(LOG).seq == 7


def test_one_whose_end_or_middle_is_another_is_not_taken(tmp_path: Path) -> None:
    """Cut, flipped, zeroes where a page was lost, anywhere."""
    chance, path = random.Random(5), tmp_path / "state.snapshot"
    state = state_of(9)
    state.leader = "b" * 20_000
    Snapshots(path).write(snapshots.dump(state), 9, LOG)
    whole = path.read_bytes()
    for _ in range(300):
        at = chance.randrange(whole.index(b"\n") + 1, len(whole) - 1)
        for damaged in (
            whole[:at],
            whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :],
            whole[:at] + bytes(min(4096, len(whole) - at)) + whole[at + 4096 :],
        ):
            path.write_bytes(damaged)
            found = Snapshots(path).load(LOG)
            assert (found.state, found.seq) == (None, 0)
            assert "damaged, moved to state.snapshot.damaged" in found.why


def test_a_writer_that_is_killed_leaves_a_whole_one(tmp_path: Path) -> None:
    """kill -9 at any moment: the one that was written last, or the next; what it left beside it is no obstacle."""
    chance, path = random.Random(7), tmp_path / "state.snapshot"
    last, partly = 0, 0
    for _ in range(ROUNDS):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(last), LOG], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            last = int(writer.stdout.readline())
            time.sleep(chance.random() / 20)  # the moment of death
            writer.send_signal(signal.SIGKILL)
            last = max([last, *map(int, writer.stdout.read().split())])
        partly += path.with_name("state.snapshot.part").exists()
        found = Snapshots(path).load(LOG)
        assert found.state is not None, found.why
        assert found.seq in (last, last + 1)
        assert found.state.epoch == found.seq
        last = found.seq
    print(f"{ROUNDS} deaths, {partly} while it was written")
    assert partly, "some of them came while it was written"
    assert {one.name for one in tmp_path.iterdir()} <= {"state.snapshot", "state.snapshot.part"}


@pytest.mark.parametrize(
    "what", ["a folder", "a pipe", "a link to nothing", "a link to itself", "a folder that is not empty"]
)
def test_what_is_no_file_keeps_no_brain_from_starting(tmp_path: Path, what: str) -> None:
    """It is out of the way, so that the next one can be written; a disk that does not give a file back is the same."""
    path = tmp_path / "state.snapshot"
    match what:
        case "a pipe":
            os.mkfifo(path)
        case "a link to nothing":
            path.symlink_to(tmp_path / "nowhere")
        case "a link to itself":
            path.symlink_to(path)
        case _:
            path.mkdir()
            path.joinpath("file").touch()
    found = Snapshots(path).load(LOG)
    assert (found.state, found.seq) == (None, 0)
    assert ("cannot be read" in found.why) == (what != "a link to nothing")
    Snapshots(path).write(snapshots.dump(state_of(7)), 7, LOG)
    assert Snapshots(path).load(LOG).seq == 7
    assert not path.is_symlink()
    path.write_bytes(b"noise")
    assert "moved to state.snapshot.damaged" in Snapshots(path).load(LOG).why, (
        "also where another one lies there"
    )


@pytest.mark.parametrize("what", ["a link to nothing", "a folder", "noise", "nothing in it"])
def test_what_lies_there_as_one_of_an_earlier_version_is_no_obstacle(tmp_path: Path, what: str) -> None:
    """Neither where the brain's own is lost, nor when it writes the next one, in place of one of an earlier version."""
    path, left = tmp_path / "state.snapshot", tmp_path / "state.snapshot.of-0.1.0"
    match what:
        case "a link to nothing":
            left.symlink_to(tmp_path / "nowhere")
        case "a folder":
            left.mkdir()
        case _:
            left.write_bytes(b"noise" if what == "noise" else b"")
    found = Snapshots(path).load(LOG)
    assert (found.state, found.seq) == (None, 0)
    kept = Snapshots(path)
    kept.write(snapshots.dump(state_of(7)), 7, LOG)
    head, _, body = path.read_bytes().partition(b"\n")
    meta = orjson.loads(head) | {"version": "0.1.9"}
    del meta["head"]
    path.write_bytes(orjson.dumps(meta) + b"\n" + body)
    assert Snapshots(path).load(LOG).seq == 7
    Snapshots(path).write(snapshots.dump(state_of(8)), 8, LOG)
    assert Snapshots(path).load(LOG).seq == 8
    path.unlink()
    assert Snapshots(path).load(LOG).seq == 7, "of the earlier version"
