"""The sieve passes what means nothing: what is left reads the same as the whole log."""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.coverage import Coverage
from brain.cli import log_times
from brain.cli.backtest.sieve import Sieve
from brain.cli.log_nodes import by_node
from tests.brain.backtest.kit import DOWN, LOST, UP, ask_json, causes

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = [
    line
    for line in (ROOT / "fixtures/ordinary/templates.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
MEANT = [
    LOST,
    DOWN,
    UP,
    "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands.",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm x: reading directory lblock 0",
    "pcieport 0000:3a:00.0: AER: Corrected error received: 0000:3b:00.0",
    "python3 invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0",
    "Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB "
    "oom_score_adj:0",
    "nvidia 0000:3b:00.0: AER: can't recover (no error_detected callback)",
    "Linux version 6.8.0-48-generic",
    "NVRM: Xid (PCI:0000:3b:00): 7",
]
FORMS = (
    "[{s:5}.{us:06}] {text}",
    "4,{n},{s}{us:06},-;{text}",
    "2026-11-24T{h:02}:{m:02}:{sec:02}+00:00 n1 kernel: {text}",
    "Nov 24 {h:02}:{m:02}:{sec:02} n1 kernel: {text}",
    "{text}",
)


def facts(lines: Sequence[str], positions: Sequence[int] | None = None) -> list[object]:
    """What is read of a log: where, when and what."""
    (own,) = by_node({"n1": list(lines)}, ())
    coverage = Coverage(positions=positions)
    log = log_times.read(own, "", coverage)
    where = list(range(len(lines))) if positions is None else list(positions)
    found: list[object] = [(where[line - 1], round(at, 6), one) for line, at, one in log.unsent_events]
    return [*found, coverage.unread, coverage.first, round(log.length_s, 6)]


def sieved(lines: Sequence[str]) -> Sieve:
    sieve = Sieve()
    sieve.take(lines)
    return sieve


def story(draw: random.Random, form: str, count: int) -> Iterator[str]:
    """Mostly ordinary lines; now and then one that means something, a clock that is set, a line without a time."""
    at = 10.0
    for n in range(count):
        at += draw.choice((0.0, 0.3, 7.0)) if draw.random() < 0.995 else -draw.choice((5.0, 400.0, at))
        at = max(0.0, at)
        text = draw.choice(MEANT) if draw.random() < 0.01 else draw.choice(ORDINARY)
        if draw.random() < 0.005:
            yield "a line of prose that somebody has pasted"
        for part in text.split("\n"):
            s = int(at)
            yield form.format(
                n=n, s=s, us=int(at % 1 * 1e6), h=s // 3600 % 24, m=s // 60 % 60, sec=s % 60, text=part
            )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), form=st.sampled_from(FORMS))
def test_what_is_left_reads_the_same(seed: int, form: str) -> None:
    """Facts, their times and lines, what could not be read, and how long the log is."""
    lines = list(story(random.Random(seed), form, 900))
    found = sieved(lines).found
    if found.repeated:
        return  # those are told apart below
    assert facts(found.lines, found.positions) == facts(lines)
    assert found.read == sum(bool(line.strip()) for line in lines)


def test_most_of_an_ordinary_log_is_passed() -> None:
    """What was found of one line counts for all that differ in digits."""
    lines = [
        f"[{n:7}.000000] usb 1-1: new high-speed USB device number {n} using xhci_hcd" for n in range(50_000)
    ]
    assert len(sieved(lines).found.lines) < 200


def test_a_line_that_repeats_is_one_fact_with_a_count(tmp_path: Path) -> None:
    """A line that came between ends it: what goes down, up and down again has gone down twice."""
    sieve = sieved(
        [f"[    1.{n:06}] {LOST}" for n in range(1000)]
        + [f"[    1.9] {DOWN}", f"[    1.9] {UP}", f"[    1.9] {DOWN}"]
    )
    assert len(sieve.found.lines) == 4
    assert sum(sieve.found.repeated.values()) == 999


def test_a_storm_of_one_line_takes_linear_time(tmp_path: Path) -> None:
    """800,000 times the same XID: all are counted, one incident."""
    times, form = [], FORMS[2]
    for many in (100_000, 800_000):
        where = tmp_path / str(many)
        where.mkdir()
        with (where / "n1.log").open("w", encoding="utf-8") as file:
            for n in range(many):
                s = n // 1000
                file.write(
                    form.format(n=n, s=s, us=n % 1000, h=s // 3600, m=s // 60 % 60, sec=s % 60, text=LOST)
                    + "\n"
                )
        began = time.process_time()
        found = ask_json(where)
        times.append(time.process_time() - began)
        assert causes(found) == [("gpu-lost", "gpu/n1/0000:3b:00")]
        assert found["input"]["meaningful"] == found["input"]["lines"] == many
    assert times[1] < 16 * times[0] + 10
