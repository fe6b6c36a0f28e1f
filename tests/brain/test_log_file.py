"""The log as a file: what comes back is what was written, byte for byte, or it is said what is wrong."""

import gzip
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent.contract.errors import ContractError
from brain.adapters.log import Record
from brain.adapters.log_file import Damaged, End, Gap, Head, LogFileWriter, LogName, Part, read
from brain.archive_config import ArchiveConfig
from brain.leader.archiver import OpenSegment

NAME = LogName(cell="default", log="2026-01-01 00:00:00+00:00")
BODIES = (
    b'{"v":1,"id":"x"}',
    b'{"v": 1}',  # with a blank that orjson would not write
    b'{"a":1e5,"a":2}',
    b"[1,2]",
    b"",
    b"not JSON\n{",
    b"\xff\xfe\x00",
    '{"text":"\u2028 温度"}'.encode(),
    b"18446744073709551617",
)


def written(records: list[Record], *, first: int = 1, packed: bool = True, gap: Gap | None = None) -> bytes:
    """A file of these messages."""
    body = io.BytesIO()
    file = LogFileWriter(body.write, NAME, first, packed=packed)
    if gap is not None:
        file.gap(gap)
    for record in records:
        file.add(record)
    file.finish()
    return body.getvalue()


def parts(body: bytes, size: int = 7) -> list[Part]:
    """What is in a file that comes in small pieces."""
    return list(read((body[at : at + size] for at in range(0, len(body), size)), "it"))


@pytest.mark.parametrize("packed", [True, False])
def test_every_body_comes_back_byte_for_byte(packed: bool) -> None:
    """JSON of any layout, text, anything."""
    records = [
        Record(seq, 1.7e9 + seq / 3, "ward.default.event.n1", body, 0) for seq, body in enumerate(BODIES, 5)
    ]
    body = written(records, first=3, packed=packed, gap=Gap(first=3, last=4))
    head, gap, *found, end = parts(body)
    assert head == Head(name=NAME, first=3)
    assert gap == Gap(first=3, last=4)
    assert found == records
    assert end == End(last=records[-1].seq, at=records[-1].at, messages=len(records))
    assert body == written(records, first=3, packed=packed, gap=Gap(first=3, last=4)), (
        "the same bytes each time"
    )


@given(some.lists(some.tuples(some.floats(0, 4e9), some.text(), some.binary()), max_size=5))
def test_any_message_comes_back(told: list[tuple[float, str, bytes]]) -> None:
    """Whatever somebody has put on the log."""
    records = [Record(seq, at, subject, body, 0) for seq, (at, subject, body) in enumerate(told, 1)]
    assert parts(written(records), 4096)[1:-1] == records


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda text: text[: len(text) // 2], "cut off"),
        (lambda text: text.replace(b'"v":1', b'"v":2', 1), "its sum is wrong"),
        (lambda text: b"\n".join([*text.split(b"\n")[:2], *text.split(b"\n")[3:]]), "message 3 follows 1"),
        (lambda _: b"Jan 1 kernel: NVRM: Xid\n", "not JSON"),
        (lambda _: b'{"a":1}\n', "no log of gpuward"),
        (lambda _: b"", "is empty"),
        (lambda text: text.replace(b'"subject"', b'"subjekt"', 1), "no message"),
        (lambda text: gzip.compress(text)[:-20], "cut off"),
        (lambda text: gzip.compress(text)[:-1], "cut off"),
        (lambda text: gzip.compress(text)[:-6] + b"\0\0" + gzip.compress(text)[-4:], "cannot be unpacked"),
        (lambda text: text + text, "more after its end"),
        (lambda text: gzip.compress(text) * 2, "more after its end"),
        (lambda text: gzip.compress(text + text), "more after its end"),
        (lambda text: text.replace(b'"last":3,"at":1', b'"last":3,"at":9'), "its sum is wrong"),
        (lambda _: b"\x1f\x8bnothing", "cannot be unpacked"),
    ],
)  # fmt: skip
def test_harm_is_seen(harm: Callable[[bytes], bytes], says: str) -> None:
    """A file is whole, or it says why not."""
    text = written([Record(seq, 1e9, "s", b'{"v":1}', 0) for seq in (1, 2, 3)], packed=False)
    with pytest.raises(Damaged, match=says):
        parts(harm(text), 4096)


@pytest.mark.parametrize(
    ("was", "is_", "says"),
    [
        (b'"cell":"default"', b'"cell":"c\\u001b]0;x\\u0007"', "its first line is wrong"),
        (b'"cell":"default"', b'"cell":"a.b"', "its first line is wrong"),
        (b'"log":"', b'"log":"\\u001b[2J', "its first line is wrong"),
        (b'"first":1', b'"first":-1', "its first line is wrong"),
        (b'"at":1000000000.0,"subject"', b'"at":1e308,"subject"', "a line is no message"),
        (b'"at":1000000000.0,"subject"', b'"at":-1.0,"subject"', "a line is no message"),
        (b'"at":1000000000.0,"subject"', b'"at":"inf","subject"', "a line is no message"),
        (b'"at":1000000000.0,"messages"', b'"at":1e300,"messages"', "its last line is wrong"),
        (b'"seq":3', b'"seq":36893488147419103232', "a line is no message"),
    ],
)
def test_what_no_log_has_is_damage(was: bytes, is_: bytes, says: str) -> None:
    """Also where its sum is right: a name goes to a terminal, a time to a calendar, and a position to a database."""
    text = written([Record(seq, 1e9, "s", b'{"v":1}', 0) for seq in (1, 2, 3)], packed=False)
    assert was in text
    with pytest.raises(Damaged, match=says):
        parts(text.replace(was, is_))


def test_a_format_of_a_later_version_is_refused() -> None:
    """It is said by which gpuward it was written."""
    text = written([], packed=False).replace(b'"version":1', b'"version":2')
    with pytest.raises(ContractError, match=r"version 2, of gpuward .* reads up to 1"):
        parts(text)


def segments(records: list[Record], config: ArchiveConfig) -> dict[int, bytes]:
    """The files of an archive that is written from these messages on."""
    made: dict[int, bytes] = {}
    segment = OpenSegment(NAME, records[0].seq, config)
    for record in records:
        if not segment.takes(record):
            made[segment.first] = segment.finished()
            segment = OpenSegment(NAME, segment.last + 1, config)
        segment.add(record)
    return made


@given(
    some.lists(some.tuples(some.floats(0, 30), some.integers(0, 30_000)), min_size=2, max_size=40),
    some.integers(0, 100),
)
def test_whoever_goes_on_makes_the_same_files(steps: list[tuple[float, int]], which: int) -> None:
    """A leader that begins after any file of its predecessor makes the files that that one would have made: so one that is
    written twice is the same one.
    """
    config = ArchiveConfig(url="/x", segment_s=60, segment_bytes=64 * 1024)
    now, records = 1.7e9, []
    for seq, (step_s, size) in enumerate(steps, 1):
        now += step_s
        records.append(Record(seq, now, "s", b"x" * size, 0))
    made = segments(records, config)
    for body in made.values():
        ats = [one.at // 60 for one in parts(body, 4096) if isinstance(one, Record)]
        assert len(set(ats)) == 1, "a file is of one period"
    assert all(len(body) < 64 * 1024 for body in made.values())
    if made:
        begin = sorted(made)[which % len(made)]
        assert segments(records[begin - 1 :], config) == {
            at: body for at, body in made.items() if at >= begin
        }
