"""The log's messages: every input survives the way there and back, and nothing on the log can end the brain."""

import base64
import zlib
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.commands import Outcome
from agent.contract.messages import Event, Severity
from brain.adapters import codec as codecs
from brain.adapters.codec import Codec
from brain.core.inputs import (
    Delivery,
    EventSeen,
    Input,
    Intent,
    JobsAnswer,
    Leader,
    Malformed,
    NodeState,
    OperatorCommand,
    PackLoaded,
    StepResult,
    TimerFired,
)
from brain.core.jobs_seen import JobSeen
from tests.brain.world import pack

CODEC = Codec("c")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NAME = st.text("abcXYZ019_.:#", min_size=1, max_size=20)
TIME = st.floats(0, 4e9, allow_nan=False)
NUMBER = st.integers(0, 2**53)
SCALAR = (
    TEXT | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
)
DATA = st.dictionaries(NAME, SCALAR, max_size=5)
INPUTS: st.SearchStrategy[Input] = st.one_of(
    st.builds(TimerFired, id=NAME, name=NAME, due=TIME),
    st.builds(Intent, id=NAME, step=NAME, epoch=NUMBER, brain=NAME),
    st.builds(StepResult, id=NAME, step=NAME, outcome=st.sampled_from(Outcome), why=TEXT, data=DATA),
    st.builds(OperatorCommand, id=NAME, who=TEXT, verb=NAME, args=DATA),
    st.builds(NodeState, id=NAME, node=NAME, alive=st.booleans(), silent_s=TIME),
    st.builds(
        JobsAnswer,
        id=NAME,
        node=NAME,
        known=st.booleans(),
        jobs=st.lists(TEXT, max_size=3).map(tuple),
        people=st.booleans(),
        seen=st.lists(
            st.builds(JobSeen, id=TEXT, name=TEXT, user=TEXT, nodes=NUMBER, gpus=NUMBER), max_size=3
        ).map(tuple),
        unlisted=NUMBER,
        scheduler=st.none() | TEXT,
    ),
    st.builds(Leader, id=NAME, epoch=NUMBER, brain=NAME),
    st.builds(Delivery, id=NAME, page=NAME, ok=st.booleans(), channel=NAME, why=TEXT),
    st.builds(Malformed, id=NAME, subject=TEXT, node=NAME, why=TEXT),
)
EVENT = Event(
    id="n1:s1:7", node="n1", kind="gpu.xid", component="gpu/0000:3b:00", severity=Severity.ERROR, at="2026-01-01T00:00:00Z",
    age_s=0.5, boot="b", count=1, data={"code": 79}, evidence="NVRM: Xid 79 \u2603",
)  # fmt: skip


@given(INPUTS)
def test_what_is_put_on_the_log_is_what_is_read_from_it(given_input: Input) -> None:
    """Every input of brains and people, with any text and number."""
    what, body = CODEC.encode(given_input)
    assert CODEC.decode(f"ward.c.input.{what}", body, 1) == given_input


def test_a_pack_travels_whole_and_small() -> None:
    """Also with the places of a whole cell it stays far below NATS' limit of 1 MiB."""
    from brain.core.pack.spec import Place

    places = {
        f"gpu{n:05}": Place(leaf=f"leaf{n // 32}", rack=f"rack{n // 8}", pod=f"pod{n // 512}")
        for n in range(10_000)
    }
    loaded = PackLoaded(id="p:1", pack=pack(places=places))
    what, body = CODEC.encode(loaded)
    assert len(body) < 500_000
    read = CODEC.decode(f"ward.c.input.{what}", body, 1)
    assert isinstance(read, PackLoaded)
    assert read == replace(loaded, pack=read.pack)
    assert read.pack.places == loaded.pack.places
    assert read.pack.rules == loaded.pack.rules


def test_an_event_is_read_as_its_node_published_it() -> None:
    """The subject says which node; a body that names another one is not believed."""
    body = codecs.encode_event_body(EventSeen(event=EVENT))
    assert CODEC.decode("ward.c.event.n1", body, 5) == EventSeen(event=EVENT)
    forged = CODEC.decode("ward.c.event.n2", body, 5)
    assert isinstance(forged, Malformed)
    assert (forged.id, forged.node) == ("m:5", "n2")
    assert "published an event of" in forged.why


BOMB = base64.b64encode(zlib.compress(bytes(codecs.MAX_PACK + 1), 1)).decode()
BROKEN: list[tuple[str, bytes, str]] = [
    ("event.n1", b"", "an empty body"),
    ("event.n1", b"\xff\xfe{}", "invalid UTF-8"),
    ("event.n1", b"[1,2", "half a JSON"),
    ("event.n1", b"[" * 100_000, "deep nesting, and too large"),
    ("event.n1", b"[" * 60_000, "deep nesting"),
    ("event.n1", b'{"v":1}', "no fields"),
    ("event.n1", b'{"v":2}', "a later version"),
    ("event.n1", b"x" * 1_000_000, "a megabyte"),
    ("event.n1.n2", b"{}", "a subject with another token"),
    ("event.", b"{}", "no node"),
    ("input.said", b'{"v":1,"id":"","who":"a","verb":"hold","args":{}}', "no id"),
    ("input.said", b'{"v":1,"id":"s","who":"a","verb":"hold","args":{"a":[1]}}', "a list as an argument"),
    ("input.timer", b'{"v":1,"id":"t","name":"a","due":"x"}', "text for a time"),
    ("input.timer", b'{"v":1,"id":"t","name":"a","due":NaN}', "NaN for a time"),
    ("input.result", b'{"v":1,"id":"r","step":"s","outcome":"great","why":""}', "an unknown outcome"),
    ("input.party", b'{"v":1,"id":"x"}', "an unknown input"),
    ("input.pack", b'{"v":1,"id":"p","zlib":"!!"}', "no base64"),
    ("input.pack", b'{"v":1,"id":"p","zlib":"AAAA"}', "no zlib"),
    ("input.pack", orjson.dumps({"v": 1, "id": "p", "zlib": BOMB}), "a decompression bomb"),
    ("other", b"{}", "another subject"),
]


@pytest.mark.parametrize(("where", "body", "what"), BROKEN, ids=[what for _, _, what in BROKEN])
def test_a_broken_message_becomes_a_counted_input(where: str, body: bytes, what: str) -> None:
    """It names the subject and why, and the brain goes on."""
    read = CODEC.decode(f"ward.c.{where}", body, 3)
    assert isinstance(read, Malformed)
    assert read.why
    assert len(read.why) <= 300


@given(
    st.sampled_from(["event.n1", *(f"input.{what}" for what in [*codecs.PLAIN, "pack"])]),
    st.binary(max_size=200),
)
def test_no_bytes_can_end_the_brain(where: str, body: bytes) -> None:
    """Whatever stands on the log is an input or Malformed."""
    CODEC.decode(f"ward.c.{where}", body, 1)


JSON = st.recursive(
    st.none() | SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)


@settings(max_examples=300)
@given(
    st.sampled_from([*codecs.PLAIN, "pack"]),
    st.dictionaries(st.sampled_from(["v", "id", "name", "due", "pack", "zlib", "args", "epoch"]), JSON),
)
def test_no_json_can_end_the_brain(what: str, raw: dict[str, Any]) -> None:
    """JSON that nearly fits, too."""
    CODEC.decode(f"ward.c.input.{what}", orjson.dumps({"v": 1} | raw), 1)
