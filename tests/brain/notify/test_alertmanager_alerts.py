"""What Alertmanager is sent, without one: tests/real/test_alertmanager.py has the real one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from brain.core.pack.spec import Priority
from brain.core.paging.queue import What
from brain.core.state import AlertFace
from brain.notify.alertmanager import AlertmanagerOptions, alerts
from brain.notify.compose import compose
from tests.brain.notify.pages import page, rule

NOW = datetime(2026, 11, 25, 3, tzinfo=UTC)
WANT = AlertmanagerOptions(urls=("http://127.0.0.1:9093",), hold_s=1800)


@pytest.mark.parametrize(
    ("what", "alerted", "severity", "lasts_s"),
    [
        pytest.param("open", (), "P1", 1800, id="an alert"),
        pytest.param("resolve", ("am",), "P1", 0, id="its end"),
        pytest.param(
            "resolve", (), "P3", 1800, id="it came and went unheard: an end alone would be told to nobody"
        ),
    ],
)
def test_how_long_an_alert_fires(what: What, alerted: tuple[str, ...], severity: str, lasts_s: int) -> None:
    """By its end; what nobody was told of fires once, as something worth knowing."""
    (alert,) = alerts(compose(page(what, alerted=alerted), rule=rule()), WANT, NOW)
    assert alert["labels"]["severity"] == severity
    assert datetime.fromisoformat(alert["endsAt"]) - NOW == timedelta(seconds=lasts_s)


def test_an_alert_that_passed_to_another_incident_ends_under_its_former_labels() -> None:
    """Alertmanager knows it by its labels: the node's end with the post that brings the leaf switch's, by the same key."""
    sent = page("update", alerted=("am",))
    node = AlertFace(cause="ib-port-down", scope="port/n3/mlx5_0.1", node="n3", nodes=1, severity=Priority.P2)
    sent = replace(sent, subject=replace(sent.subject, id="inc-leaf", key="inc-node", before=(node,)))
    message = compose(sent, rule=rule())
    assert (message.dedup_key, message.about) == ("inc-node", "inc-leaf")
    assert message.in_console("http://c/").endswith("/incidents/inc-leaf")
    now, former = alerts(message, WANT, NOW)
    assert now["labels"]["incident"] == former["labels"]["incident"] == "inc-node"
    assert (former["labels"]["alertname"], former["labels"]["node"], former["labels"]["severity"]) == (
        "ib-port-down",
        "n3",
        "P2",
    )
    assert [datetime.fromisoformat(one["endsAt"]) - NOW for one in (now, former)] == [
        timedelta(seconds=1800),
        timedelta(0),
    ]
