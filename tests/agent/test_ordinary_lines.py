"""A healthy machine reports nothing: thousands of ordinary lines yield nothing, and cost next to nothing."""

import time

import pytest

from agent.collectors import collectors
from agent.collectors.samples import JobLine, Line, Tick
from agent.contract import kernel_text
from agent.contract.coverage import Coverage
from agent.contract.lines import KernelReader
from agent.contract.messages import Severity
from tests.fixtures import ordinary
from tests.yardstick import slowness


def test_thousands_of_ordinary_lines_yield_nothing() -> None:
    """Boot, driver load, network, storage, jobs: read as kernel lines and as job lines."""
    readers = collectors()
    lines = list(ordinary.areas(25))
    assert len(lines) > 10_000
    reported = []
    for number, (area, text) in enumerate(lines):
        for sample in (Line(text=text, mono_s=number / 100), JobLine(text=text, file="a.log")):
            for reader in readers:
                if isinstance(sample, reader.wants):
                    reported += [(area, text, unsent.kind) for unsent in reader.feed(sample, number / 100)]
    for reader in readers:
        reported += [("tick", "", unsent.kind) for unsent in reader.feed(Tick(mono_s=1e6), 1e6)]
    assert reported == []


@pytest.mark.parametrize("encoding", ["kmsg", "journald", "dmesg", "caller", "console", "ctime", "decoded"])
def test_ordinary_lines_are_silent_in_every_encoding(encoding: str) -> None:
    """A prefix of an encoding makes no fact."""
    reader = KernelReader()
    lines = (ordinary.encoded(text, seq)[encoding] for seq, (_, text) in enumerate(ordinary.areas(2)))
    assert [unsent for _, line in kernel_text.records(lines) for unsent in reader.read(line.text)] == []


def test_a_kept_log_of_a_healthy_machine_is_an_all_clear() -> None:
    """Each line has a form that is known, also without a time; of links it tells that some are up, and no more."""
    lines = [text for area, text in ordinary.areas(4) if area != "jobs"]
    coverage = Coverage()
    for number, text in enumerate(lines):
        for encoded in (text, *ordinary.encoded(text, number).values()):
            coverage.see(number, encoded, kernel_text.parse(encoded))
    assert coverage.blind == ""
    reader = KernelReader(kept=True)
    told = {
        (one.kind, one.severity) for text in lines if "Link down" not in text for one in reader.read(text)
    }
    assert told == {("link.state", Severity.INFO), ("bond.slaves", Severity.INFO)}


def test_an_ordinary_line_costs_a_few_microseconds() -> None:
    """Over all readers of kernel lines; the limit leaves room for a busy machine (it is about 4 µs)."""
    reader = KernelReader()
    texts = [text for area, text in ordinary.areas(4) if area != "jobs"]
    best = 1.0
    for _ in range(5):
        began = time.process_time()
        for text in texts:
            reader.read(text)
        best = min(best, (time.process_time() - began) / len(texts))
    assert best / slowness() < 15e-6
