"""Words and shapes that have changed since the recordings were made: what stands in a recording → what is said for it today.

A recording may only differ from today's by these. `python -m tests.replay again` writes recordings in today's words, and
this table is empty again.
"""

import functools
from typing import Any

KEYS: dict[str, str] = {
    "told": "notified",
    "bundled": "grouped",
    "bundle": "alert_group",
    "bundles": "alert_groups",
    "support": "matching_rules",
    "quiet_s": "resolve_delay_s",
    "settle_s": "hold_off_s",
    "settle_until": "hold_off_until",
    "way_back": "return_to_service",
    "anew": "reset_on_act",
    "likes": "peers",
    "silent": "unreachable",
    "heard": "arrived",
}  # keys of records
VALUES: dict[str, str] = {
    "person": "needs_human",
    "mended": "recovered",
    "incident.person": "incident.needs_human",
    "incident.mended": "incident.recovered",
    **{
        f"said.{verb}": f"operator.{verb}"
        for verb in ("hold", "release", "approve", "mode", "return", "start", "reset", "refused")
    },
}  # whole texts: states, kinds of notes, names of effects
PARTS: dict[str, str] = {
    "bundle:bun-": "group:grp-",
    "bun-": "grp-",
    "(gate young)": "(gate settling)",
    "node.silent": "node.unreachable",
    "mode, return, start, reset)": "mode, return, forget, start, reset)",
    ": a fresh fact; an approval": ": there is no fresh one; an approval",
    "not fit what is known here": "not fit what is known as the run begins",
    "it tests what is not done here": "it tests what this plan does not do",
    "they test what is not done here": "they test what this plan does not do",
}  # parts of ids and sentences


# Fields of an incident that a page's subject has under the same name.
SUBJECT = (
    "id", "severity", "cause", "state", "scope", "node", "because", "nodes", "rule", "runbook", "runs", "evidence",
)  # fmt: skip


def today(value: Any) -> Any:
    """A recorded value in today's words."""
    if isinstance(value, dict):
        if value.get("effect") == "SendPage" and "incident" in value:
            value = _page(value)
        return {KEYS.get(_text(name), _text(name)): today(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [today(entry) for entry in value]
    return _text(value) if isinstance(value, str) else value


@functools.lru_cache(maxsize=100_000)
def _text(value: str) -> str:
    for old, new in PARTS.items():
        if old in value:
            value = value.replace(old, new)
    return VALUES.get(value, value)


def _page(effect: dict[str, Any]) -> dict[str, Any]:
    """A page used to carry a whole incident; for an alert group one was made up, beside the incidents that it lists."""
    incident, pages = effect["incident"], effect["incident"]["pages"]
    subject = {name: incident[name] for name in SUBJECT} | {
        "since": min([fact["at"] for fact in incident["evidence"]] + [incident["opened_at"]]),
        "acked_by": pages["acked_by"],
        "severities_before": pages["severities"],
        "listed": effect["listed"],
    }
    rest = {name: value for name, value in effect.items() if name not in ("incident", "listed")}
    return rest | {"subject": subject, "alerted": pages["by"].get(effect["to"], [])}
