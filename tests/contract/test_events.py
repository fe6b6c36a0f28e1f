"""What a node's event is read to, and which is refused."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.errors import ContractError
from agent.contract.messages import (
    MAX_EVIDENCE,
    VERSION,
    Event,
    Severity,
    clip,
    decode_event,
    encode_event,
)

TEXTS = ("id", "node", "kind", "component", "at", "boot", "evidence")
SCALARS = st.one_of(st.text(max_size=20), st.integers(), st.floats(allow_nan=False), st.booleans())
EVENTS = st.builds(
    Event,
    id=st.integers(0, 10**17).map(lambda number: f"n1:s:{number}"),
    node=st.just("n1"),
    kind=st.sampled_from(["gpu.xid", "ib.errors", "made.up"]),
    component=st.sampled_from(["node", "gpu/0000:3b:00", "port/mlx5_0.1"]),
    severity=st.sampled_from(Severity),
    at=st.text(max_size=200),
    age_s=st.one_of(st.integers(0, 10**8), st.floats(0, 1e8)),
    boot=st.text(max_size=200),
    count=st.integers(1, 2**53 - 1),
    data=st.dictionaries(st.text(max_size=20), SCALARS, max_size=5),
    evidence=st.text(max_size=3 * MAX_EVIDENCE // 2),
)


def raw_of(**other: Any) -> dict[str, Any]:
    """A plain event on the wire, with other fields; ...: without it."""
    plain = {
        "v": VERSION,
        "id": "n1:s:1",
        "node": "n1",
        "kind": "gpu.xid",
        "component": "node",
        "severity": "info",
        "at": "2026-01-01T00:00:00Z",
        "age_s": 0.5,
        "boot": "b",
        "count": 1,
        "data": {"code": 79},
        "evidence": "a line",
    }
    return {name: value for name, value in (plain | other).items() if value is not ...}


@given(sent=EVENTS)
def test_an_event_is_read_as_it_was_sent(sent: Event) -> None:
    """Texts that are too long are cut; what is read is an event like any other."""
    read = decode_event(encode_event(sent), "n1")
    assert read == dataclasses.replace(
        sent,
        at=clip(sent.at, 80),
        boot=clip(sent.boot, 80),
        age_s=round(float(sent.age_s), 3),
        evidence=sent.evidence[:MAX_EVIDENCE],
    )
    assert type(read) is Event
    assert type(read.age_s) is float
    assert repr(read) == repr(dataclasses.replace(read))
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.count = 2  # type: ignore[misc]


@pytest.mark.parametrize("wrong", [..., None, 7, True, 1.5, ["n1"], {"n1": 1}])
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_none_is_refused_by_its_name(name: str, wrong: Any) -> None:
    """Whichever of them it is."""
    with pytest.raises(ContractError, match=f"^{name} must be a string$"):
        decode_event(raw_of(**{name: wrong}), "n1")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"v": 2}, "version '2'"),
        ({"node": "n2"}, "published an event of 'n2'"),
        ({"id": "n2:s:1"}, "is not <node>:<spool>:<seq>"),
        ({"severity": "bad"}, "not a severity"),
        ({"severity": ["info"]}, "not a severity"),
        ({"age_s": -1}, "age_s"),
        ({"age_s": True}, "age_s"),
        ({"age_s": 1e9}, "age_s"),
        ({"count": 0}, "count"),
        ({"count": 1.0}, "count"),
        ({"count": 2**53}, "count"),
        ({"kind": "xid"}, "not an event kind"),
        ({"component": "gpu"}, "not a component"),
        ({"data": []}, "data must be an object"),
        ({"data": {"a": None}}, "data.a"),
        ({"data": {"a" * 81: 1}}, "more than 80 characters"),
    ],
)
def test_what_does_not_fit_is_refused(other: dict[str, Any], said: str) -> None:
    """With the reason."""
    with pytest.raises(ContractError, match=said):
        decode_event(raw_of(**other), "n1")
