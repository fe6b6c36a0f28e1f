"""What Alertmanager is sent, without one: tests/real/test_alertmanager.py has the real one."""

from datetime import UTC, datetime, timedelta

import pytest

from brain.core.paging.queue import What
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
