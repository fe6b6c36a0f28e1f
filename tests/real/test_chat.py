"""From an alert of the site's Alertmanager to a button in Slack, on a real brain: one incident, one card, one name on the log."""

import shutil
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from brain.chat_words import Button
from brain.console.chat import reply
from brain.console_config import Role
from brain.outgoing import Outgoing
from tests import people
from tests.brain.notify.receivers import receiving
from tests.brain.notify.test_alertmanager_input import alert, body
from tests.brain.notify.test_slack import TOKEN, Workspace, values
from tests.real.brain_kit import lab
from tests.security.chat_kit import SECRET, by_slack, send

ROOT = Path(__file__).resolve().parents[2]
USERS = {"alertmanager": {"role": "viewer"}, "ann": {"role": "administrator"}, "vic": {"role": "viewer"}}


def site(folder: Path, slack: str) -> dict[str, Any]:
    """The configuration of a site with its own rule, a channel in Slack, and both ways in."""
    shutil.copytree(ROOT / "rules", folder / "rules")
    shutil.copy(ROOT / "docs/examples/rules/alertmanager.yaml", folder / "rules")
    (folder / "topology.yaml").write_text("n1: {leaf: l1}\n")
    for name, text in (("token", TOKEN), ("signing", SECRET)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    return {
        "rules": str(folder / "rules"),
        "topology": str(folder / "topology.yaml"),
        "console": {"port": 0, "users": USERS},
        "channels": {
            "chat": {
                "type": "slack",
                "token_file": str(folder / "token"),
                "channel": "C1",
                "api_url": f"{slack}/api",
                "buttons": True,
            }
        },
        "chat": {
            "slack": {"signing_secret_file": str(folder / "signing"), "users": {"U1": "ann", "U2": "vic"}}
        },
        "alerts": {"alertmanager": {"user": "alertmanager"}},
    }


@pytest.mark.component("nats-server")
async def test_an_alert_is_answered_by_a_button(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes twice and is one incident; what the card carries is pressed, by who may and by who may not; its end ends it."""
    told: list[str] = []

    async def to_sender(_url: str, text: str, _way: Outgoing) -> None:
        told.append(text)

    monkeypatch.setattr(reply, "to_sender", to_sender)  # Slack's own address
    work = Workspace()
    async with receiving(work.api) as slack, lab(tmp_path, **site(tmp_path, slack.url)) as whole:
        assert whole.running is not None
        url = whole.running.console_url
        own = people.bearer(people.token_file(whole.config.data_dir, "alertmanager", Role.VIEWER))

        async def alertmanager(status: str) -> None:
            headers = {"Content-Type": "application/json", **own}
            async with (
                aiohttp.ClientSession() as session,
                session.post(
                    f"{url}/alerts/alertmanager", data=body(alert(status)), headers=headers
                ) as answer,
            ):
                assert await answer.json() == {"taken": 1, "unplaced": 0, "own": 0, "left_out": 0}

        for _ in range(2):
            await alertmanager("firing")
        await whole.until(lambda _: work.shown, "the card is there")
        (one,) = await whole.incidents("site-node-hot")
        assert one["scope"] == "node/n1"
        first = next(iter(work.shown))
        ack = next(value for value in values(work.shown[first]) if "ack" in value)
        assert orjson.loads(ack) == {"verb": "ack", "args": {"id": one["id"]}, "cell": "default"}

        status, _ = await send(url, by_slack("U2", ack))
        assert status == 200
        await whole.until(
            lambda found: any("vic" in note["text"] for note in found["notes"]),
            "that a viewer may not is noted",
            "/api/v1/notes?kind=access.refused",
        )
        assert [each["pages"]["acked_by"] for each in await whole.incidents("site-node-hot")] == [""]
        await send(url, by_slack("U1", ack))
        await whole.until(
            lambda found: [each["pages"]["acked_by"] for each in found["incidents"]] == ["ann"],
            "ann has it",
            "/api/v1/incidents",
        )
        await whole.until(
            lambda _: not [value for value in values(work.shown[first]) if "ack" in value], "the card says so"
        )
        hold = next(value for value in values(work.shown[first]) if "hold" in value)
        assert orjson.loads(hold) == Button(verb="hold", args={"scope": "node/n1"}, cell="default").carried
        await send(url, by_slack("U1", hold))
        (held,) = (await whole.until(lambda found: found["holds"], "it is held"))["holds"]
        assert (held["scope"], held["who"]) == ("node/n1", "ann")
        notes = (await whole.get("/api/v1/notes?kind=access.chat"))["notes"]
        assert {note["who"] for note in notes} == {"ann", "vic"}
        assert all("slack U" in note["text"] for note in notes)

        await alertmanager("resolved")
        await whole.until(
            lambda _: not values(work.shown[first]), "it is over, and the card has no buttons", within_s=90
        )
        assert slack.refused == []
        assert "role operator" in told[0]
        assert "acknowledged by ann" in told[1]
