"""Alertmanager's webhook as an input: its alerts as facts about nodes, each once, and only what is known."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from agent.contract.messages import MAX_TEXT, Severity
from brain.chat_config import AlertmanagerInputConfig
from brain.console.alerts_in import AGAIN_S, MOST, NoAlerts, found, node_of
from brain.core.pack.lint_symptoms import KINDS
from brain.notify.alertmanager import AlertmanagerOptions, alerts
from brain.notify.compose import compose
from tests.brain.notify.pages import incident, page

NODES = {"n1", "n2"}
NOW = 1_700_000_000.0
WANT = AlertmanagerInputConfig(user="alertmanager", nodes={"10.0.0.7": "n2"})


def alert(status: str = "firing", **labels: str) -> dict[str, Any]:
    """As in the documentation of the webhook."""
    return {
        "status": status,
        "labels": {"alertname": "NodeInletHot", "instance": "n1:9100", "severity": "critical"} | labels,
        "annotations": {"summary": "41 °C", "description": "the air is too warm"},
        "startsAt": "2023-11-14T22:13:20.000Z",
        "endsAt": "0001-01-01T00:00:00Z" if status == "firing" else "2023-11-14T22:23:20.000Z",
        "generatorURL": "http://prometheus/graph",
        "fingerprint": "b4f1",
    }


def body(*alerts: Any, **more: Any) -> bytes:
    whole = {
        "version": "4",
        "groupKey": "{}:{}",
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "gpuward",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager",
        "alerts": list(alerts),
    }
    return orjson.dumps(whole | more)


def test_an_alert_is_a_fact_about_its_node() -> None:
    """With all that rules can use, each field declared."""
    (one,) = found(body(alert()), WANT, NODES, NOW).reports
    assert (one.node, one.kind, one.component, one.severity) == ("n1", "alert.firing", "node", Severity.ERROR)
    assert dict(one.data) == {
        "alert": "NodeInletHot",
        "firing": True,
        "level": "critical",
        "labels": "alertname=NodeInletHot, instance=n1:9100, severity=critical",
        "text": "41 °C",
    }
    assert {field.name for field in KINDS[one.kind].fields} == set(one.data)
    (over,) = found(body(alert("resolved")), WANT, NODES, NOW).reports
    assert (over.data["firing"], over.severity) == (False, Severity.INFO)


def test_what_is_sent_again_counts_once_an_hour() -> None:
    """A retry is nothing new; an alert that lasts is told again, and its end once."""

    def id_(status: str = "firing", after_s: float = 0.0, **labels: str) -> str:
        return found(body(alert(status, **labels)), WANT, NODES, NOW + after_s).reports[0].id

    begin = AGAIN_S - NOW % AGAIN_S  # where an hour begins
    assert id_(after_s=begin) == id_(after_s=begin + AGAIN_S - 1)
    assert len({id_(after_s=begin + hour * AGAIN_S) for hour in range(5)}) == 5
    assert id_("resolved") == id_("resolved", after_s=10 * AGAIN_S)
    assert len({id_(), id_("resolved"), id_(disk="a"), id_(instance="n2")}) == 4
    assert len(found(body(alert(), alert()), WANT, NODES, NOW).reports) == 1


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"instance": "n1:9100"}, "n1"),
        ({"instance": "n1"}, "n1"),
        ({"instance": "n2.cluster.example:9100"}, "n2"),
        ({"instance": "10.0.0.7:9100"}, "n2"),
        ({"node": "n2", "instance": "n1:9100"}, "n2"),
        ({"node": "unknown", "instance": "n1:9100"}, "n1"),
        ({"instance": "n3:9100"}, ""),
        ({"instance": ":9100"}, ""),
        ({"instance": "[2001:db8::1]:9100"}, ""),
        ({"instance": ""}, ""),
        ({"host": "n1"}, ""),
        ({}, ""),
    ],
)
def test_a_label_names_the_node(labels: dict[str, str], node: str) -> None:
    """The first label that names one which is known; a port and a domain may be behind it."""
    assert node_of(labels, WANT, NODES) == node


def test_what_is_of_no_node_or_has_no_form_is_counted() -> None:
    """Nothing is guessed, and nothing fails."""
    odd: tuple[Any, ...] = (
        {},
        {"status": "firing"},
        {"status": "firing", "labels": []},
        alert("maybe"),
        alert(alertname=""),
        None,
        7,
        "x",
    )
    result = found(body(*odd, alert(instance="n9"), alert()), WANT, NODES, NOW)
    assert (len(result.reports), result.unplaced, result.left_out) == (1, 1, len(odd))
    many = found(body(*(alert(disk=str(one)) for one in range(MOST + 5))), WANT, NODES, NOW)
    assert (len(many.reports), many.left_out) == (MOST, 5)
    for cut, more in ((9000, 9000), (0, 0), (-1, 0), ("x", 0), (None, 0)):
        assert found(body(alert(), truncatedAlerts=cut), WANT, NODES, NOW).left_out == more


def test_an_alert_of_our_own_is_no_fact() -> None:
    """Else a page would be a fault, and that one's page the next."""
    message = compose(page(about=replace(incident(), node="n1")))
    want = AlertmanagerOptions(urls=("http://127.0.0.1:1",))
    ours = {"status": "firing", **alerts(message, want, datetime.now(UTC))[0]}
    assert ours["labels"]["node"] == "n1"
    result = found(body(ours, alert()), WANT, NODES, NOW)
    assert (len(result.reports), result.own, result.left_out) == (1, 1, 0)


def test_long_and_odd_texts_are_bounded() -> None:
    """Whatever a label holds: the fact stays one that the log takes."""
    labels = {f"label{one}": "x" * 1000 for one in range(100)}
    (one,) = found(body(alert(**labels, severity="?" * 500)), WANT, NODES, NOW).reports
    assert all(len(str(value)) <= MAX_TEXT for value in one.data.values())
    raw = alert() | {"annotations": {"summary": 7, "description": ["x"]}, "startsAt": 7, "fingerprint": None}
    assert found(body(raw), WANT, NODES, NOW).reports[0].data["text"] == ""


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"7", b"{}", body(version="3"), body(alerts={}), body(alerts=None), b"\xff"]
)
def test_what_is_no_webhook_of_alertmanager_is_refused(raw: bytes) -> None:
    """An older version, or something else: told to whoever has configured it."""
    with pytest.raises(NoAlerts):
        found(raw, WANT, NODES, NOW)
