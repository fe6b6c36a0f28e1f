"""PagerDuty: a receiver that checks events as the documentation of its Events API v2 says, and answers as it does."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from brain.core.pack.spec import Priority
from brain.core.state import RunState
from brain.notify.compose import compose
from brain.notify.pagerduty import MAX_BODY, PagerDuty, build
from tests.brain.notify.pages import LINE, page, rule, run
from tests.brain.notify.receivers import Answer, receiving
from tests.real.nats import free_port

KEY = "0123456789abcdef0123456789ABCDEF"


def events_api(request: web.Request, body: Any) -> Answer:
    """What PagerDuty checks: developer.pagerduty.com/docs/send-alert-event."""
    errors = []
    if request.path != "/v2/enqueue" or request.content_type != "application/json":
        errors.append("not the endpoint")
    if (request.content_length or 0) > MAX_BODY:
        errors.append("too large")
    if body.get("routing_key") != KEY:
        errors.append("Invalid routing key")
    if body.get("event_action") not in ("trigger", "acknowledge", "resolve"):
        errors.append("'event_action' is invalid")
    if not 0 < len(body.get("dedup_key", "")) <= 255:
        errors.append("'dedup_key' is missing or too long")
    if unknown := set(body) - {
        "routing_key", "event_action", "dedup_key", "payload", "client", "client_url", "links", "images",
    }:  # fmt: skip
        errors.append(f"unknown: {unknown}")
    if body.get("event_action") == "trigger":
        payload = body.get("payload", {})
        errors += [
            f"'payload.{key}' is missing" for key in ("summary", "source", "severity") if not payload.get(key)
        ]
        if len(payload.get("summary", "")) > 1024:
            errors.append("'payload.summary' is too long")
        if payload.get("severity") not in ("critical", "error", "warning", "info"):
            errors.append("'payload.severity' is invalid")
        datetime.fromisoformat(payload["timestamp"])
        if not isinstance(payload.get("custom_details"), dict):
            errors.append("'payload.custom_details' must be an object")
        errors += ["a link needs href" for link in body.get("links", []) if not link.get("href")]
    if errors:
        return 400, {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
    return 202, {"status": "success", "message": "Event processed", "dedup_key": body["dedup_key"]}


def pagerduty(url: str, folder: Path, **more: Any) -> PagerDuty:
    """The channel as an operator configures it."""
    key = folder / "key"
    key.write_text(KEY + "\n")
    return build("pd", {"type": "pagerduty", "url": url, "routing_key_file": str(key), **more}, "channels.pd")


async def test_what_came_and_went_unheard_stands_in_the_list_and_calls_nobody(tmp_path: Path) -> None:
    """PagerDuty drops the end of an alert that it does not have: so there is one of severity info, resolved at once."""
    async with receiving(events_api) as it:
        channel = pagerduty(it.url, tmp_path, language="en")
        await channel.send(compose(page("resolve", text="it is back", alerted=()), rule=rule()))
        await channel.send(compose(page("resolve", text="it is back"), rule=rule()))
        await channel.close()
    assert it.refused == []
    assert [body["event_action"] for body in it.taken] == ["trigger", "resolve", "resolve"]
    told = it.taken[0]["payload"]
    assert told["severity"] == "info"
    assert told["summary"].endswith("no channel took its page while it lasted; it is back")
    assert LINE in told["custom_details"]["evidence"][0]


async def test_one_alert_from_open_to_resolved(tmp_path: Path) -> None:
    """Trigger, again, acknowledge, resolve: one key; the alert carries everything that the page says."""
    async with receiving(events_api) as it:
        channel = pagerduty(it.url, tmp_path, language="en", console_url="https://ward.example")
        for what in ("open", "repeat", "update", "ack", "resolve"):
            await channel.send(compose(page(what), rule=rule(), runs=[run(RunState.APPROVAL)]))
        await channel.close()
    assert it.refused == []
    assert [body["event_action"] for body in it.taken] == ["trigger"] * 3 + ["acknowledge", "resolve"]
    assert {body["dedup_key"] for body in it.taken} == {"inc-1"}
    alert = it.taken[0]
    assert alert["payload"]["summary"] == "[P1] gpu lost on gpu/n1/0000:3b:00: opened"
    assert (alert["payload"]["source"], alert["payload"]["severity"]) == ("n1", "error")
    details = alert["payload"]["custom_details"]
    assert LINE in details["evidence"][0]
    assert details["what to do"] == "Power the node off and on, then reseat the GPU."
    assert any("gpuward approve inc-1.r1" in line for line in details["type"])
    assert any("evidence.collect" in str(line) for line in [details["tried"]])
    assert [link["href"] for link in alert["links"]] == [
        "https://ward.example/incidents/inc-1",
        "https://docs.nvidia.com/deploy/xid-errors/",
    ]


async def test_who_is_hit_stands_in_the_details(tmp_path: Path) -> None:
    """One short line, as the page has it."""
    async with receiving(events_api) as it:
        channel = pagerduty(it.url, tmp_path, language="en")
        given = page()
        await channel.send(compose(replace(given, subject=replace(given.subject, hit="alice's 4711"))))
        await channel.close()
    assert it.refused == []
    assert it.taken[0]["payload"]["custom_details"]["hit"] == "alice's 4711"


async def test_what_is_more_urgent_than_what_was_acknowledged_calls_people_there(tmp_path: Path) -> None:
    """A trigger of an acknowledged alert is only added to its log: so that is resolved first. News of it are no new alert."""
    raised = replace(page("open"), subject=replace(page().subject, severities_before=(Priority.P2,)))
    async with receiving(events_api) as it:
        channel = pagerduty(it.url, tmp_path)
        for what in ("open", "update"):
            await channel.send(compose(replace(raised, what=what), rule=rule()))
        await channel.close()
    assert it.refused == []
    assert [body["event_action"] for body in it.taken] == ["resolve", "trigger", "trigger"]
    assert {body["dedup_key"] for body in it.taken} == {"inc-1"}


async def test_what_pagerduty_rejects_is_not_retried_and_the_rest_is(tmp_path: Path) -> None:
    """400: never. 429: again when it says so, within the deadline. 500, hanging, away: again by the engine."""
    async with receiving(events_api) as it:
        channel = pagerduty(it.url, tmp_path, timeout_s=20.0)
        message = compose(page())
        it.instead = [(400, {"status": "invalid event"}, {})]
        with pytest.raises(Refused, match="400"):
            await channel.send(message)
        it.instead = [(429, {}, {"Retry-After": "0.1"})]
        await channel.send(message)
        assert len(it.taken) == 1
        it.instead = [(429, {}, {"Retry-After": "60"})]
        with pytest.raises(Unreachable, match="again in 60 s"):
            await channel.send(message)
        it.instead = [(429, {}, {}), (500, {}, {})]
        for status in ("429", "500"):
            with pytest.raises(Unreachable, match=status):
                await channel.send(message)
        await channel.close()
        channel = pagerduty(it.url, tmp_path, timeout_s=1.0)
        it.delay_s = 60
        with pytest.raises(TimedOut):
            await channel.send(message)
        await channel.close()
    away = pagerduty(f"http://127.0.0.1:{free_port()}", tmp_path)
    with pytest.raises(Unreachable) as caught:
        await away.send(message)
    await away.close()
    assert KEY not in str(caught.value)


def test_a_wrong_key_is_named_before_the_first_page(tmp_path: Path) -> None:
    """An empty or foreign file would be found out at three in the morning."""
    key = tmp_path / "key"
    key.write_text("not a key")
    with pytest.raises(ConfigError, match=r"routing_key_file.*32 letters and digits"):
        build("pd", {"routing_key_file": str(key)}, "channels.pd")
    with pytest.raises(ConfigError, match="routing_key_file: is missing"):
        build("pd", {}, "channels.pd")
