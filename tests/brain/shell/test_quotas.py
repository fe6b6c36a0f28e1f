"""How much of one node goes onto the log: by number and by bytes."""

from dataclasses import replace

import orjson
import pytest

from agent.contract.errors import ContractError
from agent.contract.messages import (
    MAX_EVENT_BYTES,
    MAX_FIELDS,
    MAX_TEXT,
    Event,
    Severity,
    decode_event,
    encode_event,
    fitting,
)
from agent.contract.subjects import EVENT, EVIDENCE, lane, offered
from brain.adapters import lanes
from brain.leader.quotas import BESIDE_BODY, NodeQuota
from brain.nats_config import LogConfig

LOG = LogConfig()
KEPT_S = int(LOG.max_age_s)


def event(severity: Severity = Severity.WARNING, text: str = "") -> Event:
    """Of node n1."""
    return Event(
        id="n1:s:1", node="n1", kind="link.state", component="link/eth0", severity=severity,
        at="", age_s=0.0, boot="b", count=1, data={}, evidence=text,
    )  # fmt: skip


def test_a_liar_with_the_largest_events_does_not_push_others_off_the_log() -> None:
    """As long as the log keeps anything, all kinds, as large as they may be: an eighth of it."""
    quota, taken, size = NodeQuota(), 0, MAX_EVENT_BYTES + BESIDE_BODY
    for second in range(0, KEPT_S, 600):
        for severity in (Severity.INFO, Severity.ERROR):
            while quota.takes(event(severity), size, float(second)):
                taken += size
    assert LOG.max_bytes / 20 < taken < LOG.max_bytes / 7.5


def test_an_honest_storm_is_taken_whole() -> None:
    """What a machine on fire says in a minute, of the usual size."""
    quota = NodeQuota()
    assert all(quota.takes(event(), 700, number / 50) for number in range(3000))


@pytest.mark.parametrize("letter", ["x", "\x01", "\U0001f525", '"'])
def test_every_event_of_an_agent_fits(letter: str) -> None:
    """However its texts are encoded; an ordinary one is as it was."""
    whole = replace(
        event(text=letter * 2000), data={f"field_{n}": letter * MAX_TEXT for n in range(MAX_FIELDS)}
    )
    body = fitting(whole, orjson.dumps)
    assert len(body) <= MAX_EVENT_BYTES
    assert decode_event(orjson.loads(body), "n1").data["field_39"].startswith(letter)  # type: ignore[union-attr]
    assert fitting(event(), orjson.dumps) == orjson.dumps(encode_event(event()))


def test_names_that_are_no_names_are_refused() -> None:
    """They would stand in the brain's state and in its read model."""
    raw = encode_event(event())
    with pytest.raises(ContractError, match="has more than 80 characters"):
        decode_event(raw | {"data": {"x" * 81: 1}}, "n1")
    with pytest.raises(ContractError, match="not an event kind"):
        decode_event(raw | {"kind": "a." + "b" * 80}, "n1")
    assert len(decode_event(raw | {"boot": "b" * 9999, "at": "t" * 9999}, "n1").boot) <= 80


def test_one_node_fills_at_most_a_quarter_of_its_lane() -> None:
    """With the largest messages of every kind that its lane keeps."""
    for one in lanes.lanes("c"):
        assert len(one.subjects) * one.per_subject * one.max_message <= lanes.MAX_BYTES / 4


def test_who_offers_what_stands_in_the_subject() -> None:
    """Both ways."""
    for what in (EVENT, EVIDENCE):
        assert offered(lane("c", "n1", what)) == ("n1", what)
