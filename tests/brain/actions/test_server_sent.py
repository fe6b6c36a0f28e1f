"""A BMC's stream of events: cut into events however it arrives, bounded, and believed only as far as "look now". No I/O."""

import json
import random
from typing import Any

import pytest

from brain.actions.bmc_streams import FIRST_S, LookPace
from brain.actions.server_sent import MOST_EVENT, Concern, ServerSentReader, concern


def event(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"@odata.type": "#Event.v1_7_0.Event", "Id": "1", "Events": list(rows)}).encode()


BAD, GOOD = event({"EventType": "Alert", "Severity": "Critical"}), event({"MessageSeverity": "OK"})


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (BAD, Concern.BAD),
        (GOOD, Concern.GOOD),
        (event({"Severity": "Warning"}), Concern.BAD),
        (event({"EventType": "StatusChange"}), Concern.BAD),
        (event({"Severity": "Informational"}), Concern.GOOD),
        (event({"Severity": "OK"}, {"Severity": "critical"}), Concern.BAD),
        (event({"Severity": "Critical", "MessageSeverity": "OK"}), Concern.GOOD),
        (event({"EventType": "MetricReport", "Severity": "Critical"}), Concern.NONE),
        (event(), Concern.NONE),
        (b'{"@odata.type": "#MetricReport.v1_4_2.MetricReport", "MetricValues": []}', Concern.NONE),
        (b'{"Events": {"Severity": "Critical"}}', Concern.NONE),
        (b'{"Events": ["Critical", null, 7]}', Concern.NONE),
        (b"[" * 100_000, Concern.NONE),
        (b"\xff\xfe", Concern.NONE),
        (b"null", Concern.NONE),
        (b"", Concern.NONE),
    ],
)
def test_what_concerns_health(data: bytes, what: Concern) -> None:
    """By its severity; telemetry and what nobody can read do not."""
    assert concern(data) is what


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
def test_however_it_arrives(ends: bytes) -> None:
    """1000 ways to cut the same stream: comments, ids, data over several lines; each event once, in order."""
    pretty = json.dumps(json.loads(BAD), indent=1).encode().splitlines()
    lines = [b": hello", b"", b"id: 7", b"event: x", b"data: " + GOOD, b"", b"retry: 5", b""]
    lines += [*(b"data: " + line for line in pretty), b"", b"data:" + GOOD, b"", b""]
    text = ends.join(lines)
    for seed in range(1000):
        dice, reader, found, at = random.Random(seed), ServerSentReader(), [], 0
        while at < len(text):
            size = dice.choice((1, 2, 7, 100, 1000))
            found += list(reader.feed(text[at : at + size]))
            at += size
        assert found == [Concern.GOOD, Concern.BAD, Concern.GOOD], seed


def test_an_event_without_end_is_bounded() -> None:
    """Nothing is kept beyond the limit, in one line or in many; once it ends it is worth a look, and the next one is read."""
    for piece in (b"x" * 50_000, b"x" * 1000 + b"\ndata: "):
        reader = ServerSentReader()
        assert list(reader.feed(b"data: ")) == []
        for _ in range(200):
            assert list(reader.feed(piece)) == []
            assert len(reader._line) <= MOST_EVENT
            assert len(reader._data) <= MOST_EVENT
        assert list(reader.feed(b"\n\n")) == [Concern.BAD]
        assert list(reader.feed(b"data: " + GOOD + b"\n\n")) == [Concern.GOOD]


def test_the_pace_of_looks() -> None:
    """At once, then less and less often: a day of events without end costs hardly more looks than the poll makes."""
    pace, looks, waits_until = LookPace(most_s=300.0), [], -1.0
    for second in range(86_400):
        at_s = pace.at_s(float(second))
        if waits_until < 0:
            waits_until = at_s
        if waits_until <= second:
            looks.append(second)
            pace.looked(float(second))
            waits_until = -1.0
    assert looks[:4] == [0, FIRST_S, 3 * FIRST_S, 7 * FIRST_S]
    assert len(looks) <= 86_400 / 300 + 6
    assert pace.at_s(86_400 + 299.0) > 86_400 + 299.0 - 300.0
    assert pace.at_s(200_000.0) == 200_000.0, "after a quiet time an event counts at once again"
