"""What PagerDuty signs, as its documentation has it: an acknowledgement or a note, and nothing else."""

from typing import Any

import orjson
import pytest

from brain.console.chat import pagerduty
from brain.console.chat.refused import Forged, Odd

NOW = 1_531_420_618.0


def pagerduty_event(**more: Any) -> bytes:
    event: dict[str, Any] = {
        "id": "5ac64822-4adc-4fda-ade0-410becf0de4f",
        "event_type": "incident.acknowledged",
        "resource_type": "incident",
        "occurred_at": "2018-07-12T18:36:58.000Z",
        "agent": {"id": "PXPGF42", "type": "user_reference", "summary": "Earline Greenholt"},
        "data": {"id": "PGR0VU2", "type": "incident", "incident_key": "inc-abc"},
    }
    return orjson.dumps({"event": event | more})


def test_pagerduty_signs_with_one_of_several_secrets() -> None:
    """While a secret is exchanged there are two signatures."""
    body = pagerduty_event()
    good = pagerduty.sign(b"s", body)
    pagerduty.verify(b"s", {"X-PagerDuty-Signature": f"{pagerduty.sign(b'old', body)},{good}"}, body)
    for shown in (
        "",
        "v1=",
        good.removeprefix("v1="),
        good.replace("v1", "v0"),
        pagerduty.sign(b"old", body),
        "\udc80",
    ):
        with pytest.raises(Forged):
            pagerduty.verify(b"s", {"X-PagerDuty-Signature": shown}, body)
    with pytest.raises(Forged):
        pagerduty.verify(b"s", {"X-PagerDuty-Signature": good}, body + b" ")


def test_what_pagerduty_tells_is_an_acknowledgement_or_a_note() -> None:
    """Never the end of an incident; nothing by what is no person, or about what is not ours."""
    one = pagerduty.event(pagerduty_event())
    assert (one.sender, one.at) == ("PXPGF42", NOW)
    assert pagerduty.wanted(one) == ("ack", {"id": "inc-abc"})
    resolved = pagerduty.wanted(pagerduty.event(pagerduty_event(event_type="incident.resolved")))
    assert resolved is not None
    assert (resolved[0], resolved[1]["id"]) == ("note", "inc-abc")
    group = {"incident_key": "grp-1"}
    assert pagerduty.wanted(pagerduty.event(pagerduty_event(data=group))) == ("ack", {"id": "grp-1"})
    for nothing in (
        {"agent": None},
        {"agent": {"id": "PS", "type": "service_reference"}},
        {"data": {"incident_key": "another"}},
        {"data": {"incident_key": None}},
        {"event_type": "incident.triggered"},
        {"event_type": "incident.resolved", "data": group},
    ):
        assert pagerduty.wanted(pagerduty.event(pagerduty_event(**nothing))) is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"event": []}', pagerduty_event(data=[]), pagerduty_event(id="")]
)
def test_what_is_no_event_of_pagerduty_is_odd(body: bytes) -> None:
    """Signed, and not of the documented form."""
    with pytest.raises(Odd):
        pagerduty.event(body)
