"""Alertmanager's webhook, version 4: from its alerts to facts about nodes. Pure.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config: `{"version": "4", "status": ...,
"alerts": [{"status": "firing" | "resolved", "labels": {...}, "annotations": {...}, "startsAt": ..., "endsAt": ..., "fingerprint":
...}, ...]}`. It is sent again after `repeat_interval` as long as an alert fires, and when it is answered with 5xx.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from agent.contract.messages import MAX_TEXT, Scalar, Severity, clip
from brain.chat_config import AlertmanagerInputConfig
from brain.core import ids
from brain.core.inputs import Reported
from brain.core.pack.vocabulary import ALERT_FIRING

SOURCE = "alertmanager"
MOST = 1000  # alerts of one body that are read
_OWN = (
    f"{ids.INCIDENT}-",
    f"{ids.ALERT_GROUP}-",
)  # how the label `incident` of our own alerts begins (brain/notify/alertmanager.py)
AGAIN_S = 3600.0  # an alert that goes on is a new fact once in this time, as agents tell what lasts
_SEVERITIES: Mapping[str, Severity] = {
    "critical": Severity.ERROR,
    "page": Severity.ERROR,
    "error": Severity.ERROR,
    "info": Severity.INFO,
    "none": Severity.INFO,
}


class NoAlerts(ValueError):
    """The body is not what Alertmanager sends; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsFound:
    """What one body has."""

    reports: tuple[Reported, ...]
    # Alerts of no node that is known
    unplaced: int
    # gpuward's own, which came back: no fault feeds itself
    own: int
    # Alerts that have not the form, or were too many, for us or for Alertmanager, which then says how many
    left_out: int


def found(body: bytes, want: AlertmanagerInputConfig, nodes: Collection[str], now: float) -> AlertsFound:
    """Returns the facts of a body. `nodes`: the known ones. NoAlerts: it is none of Alertmanager's."""
    try:
        raw: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NoAlerts("the body must be JSON") from error
    alerts = raw.get("alerts") if isinstance(raw, dict) else None
    if not isinstance(alerts, list) or raw.get("version") != "4":
        raise NoAlerts('want a webhook of Alertmanager: "version": "4", and "alerts"')
    cut = raw.get("truncatedAlerts")  # by max_alerts of its configuration
    reports, unplaced, own, left_out = {}, 0, 0, max(0, len(alerts) - MOST)
    left_out += cut if isinstance(cut, int) and cut > 0 else 0
    for alert in alerts[:MOST]:
        labels = _texts(alert.get("labels")) if isinstance(alert, dict) else {}
        if not labels.get("alertname") or alert.get("status") not in ("firing", "resolved"):
            left_out += 1
            continue
        if labels.get("incident", "").startswith(_OWN):
            own += 1
            continue
        node = node_of(labels, want, nodes)
        if not node:
            unplaced += 1
            continue
        one = _report(alert, labels, node, now)
        reports[one.id] = one
    return AlertsFound(reports=tuple(reports.values()), unplaced=unplaced, own=own, left_out=left_out)


def node_of(labels: Mapping[str, str], want: AlertmanagerInputConfig, nodes: Collection[str]) -> str:
    """Returns the node that an alert is about; empty: none that is known."""
    for label in want.node_labels:
        value = labels.get(label, "")
        host = value.rpartition(":")[0] if value.rpartition(":")[2].isdigit() else value
        for name in (want.nodes.get(value), want.nodes.get(host), value, host, host.partition(".")[0]):
            if name and name in nodes:
                return name
    return ""


def _report(alert: Mapping[str, Any], labels: Mapping[str, str], node: str, now: float) -> Reported:
    firing = alert["status"] == "firing"
    notes = _texts(alert.get("annotations"))
    listed = ", ".join(f"{name}={labels[name]}" for name in sorted(labels))
    data: dict[str, Scalar] = {
        "alert": clip(labels["alertname"], 200),
        "firing": firing,
        "level": clip(labels.get("severity", ""), 80),
        "labels": clip(listed, MAX_TEXT),
        "text": clip(notes.get("summary") or notes.get("description") or "", MAX_TEXT),
    }
    which = [listed, str(alert.get("startsAt", "")), str(alert.get("fingerprint", "")), str(firing)]
    which += [str(int(now // AGAIN_S))] if firing else [str(alert.get("endsAt", ""))]
    number = sha256("\0".join(which).encode("utf-8", "replace")).hexdigest()[:32]
    level = _SEVERITIES.get(labels.get("severity", "").lower(), Severity.WARNING)
    return Reported(
        id=f"{SOURCE}:{number}",
        source=SOURCE,
        node=node,
        kind=ALERT_FIRING,
        component="node",
        severity=level if firing else Severity.INFO,
        data=data,
    )


def _texts(raw: object) -> dict[str, str]:
    """The texts among the values, inert for whoever reads them later as all facts are."""
    pairs = raw.items() if isinstance(raw, dict) else ()
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}
