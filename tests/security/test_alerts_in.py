"""Who may report alerts, and how many of them: one user's token, at a bounded pace."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from brain.console.alert_routes import LARGEST
from brain.console.alerts_in import MOST
from brain.console.server import Console
from brain.console_config import Role
from brain.core.pack.spec import Pack
from brain.core.state import Node
from tests import people
from tests.brain.notify.test_alertmanager_input import alert, body
from tests.security.figures import Record, attacked
from tests.security.view import FolderView

USERS = {"alertmanager": {"role": "viewer"}, "ann": {"role": "administrator"}}


async def post(url: str, sent: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    """Status and answer."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{url}/alerts/alertmanager", data=sent, headers={"Content-Type": "application/json", **headers}
        ) as answer,
    ):
        return answer.status, await answer.json()


def view_of(folder: Path, **more: Any) -> Any:
    view: Any = FolderView.of(
        folder, console={"port": 0, "users": USERS}, alerts={"alertmanager": {"user": "alertmanager", **more}}
    )
    view.state.nodes["n1"] = Node(name="n1")
    view.state.pack = Pack(version="1", symptoms=(), rules=(), runbooks=())
    return view


async def test_only_the_token_of_that_user_reports_alerts(tmp_path: Path, record_property: Record) -> None:
    """Not an administrator's, not nobody's; its own can do nothing else."""
    data = tmp_path / "brain"
    own = people.bearer(people.token_file(data, "alertmanager", Role.VIEWER))
    ann = people.bearer(people.token_file(data, "ann"))
    view = view_of(data)
    async with Console(view).serving() as url:
        for headers, status in (({}, 401), ({"Authorization": "Bearer guess"}, 401), (ann, 403)):
            assert (await post(url, body(alert()), headers))[0] == status
        assert not view.said
        assert await post(url, body(alert(), alert(instance="n9")), own) == (
            200,
            {"taken": 1, "unplaced": 1, "own": 0, "left_out": 0},
        )
        assert [(one.node, one.kind) for one in view.said] == [("n1", "alert.firing")]
        assert any(kind == "alerts.left_out" for kind, _ in view.notes)
        for odd in (b"", b"{}", b"[" * 9999, b"\xff"):
            assert (await post(url, odd, own))[0] == 400
        large = {f"label{one}": "x" * 300 for one in range(10)}
        storm = body(*(alert(disk=str(one), **large) for one in range(MOST)))
        assert len(storm) > 3_000_000
        assert (await post(url, storm, own))[0] == 200, "as many as are read fit into a body"
        assert (await post(url, b"x" * (LARGEST + 1), own))[0] == 413
        attacked(record_property, 8)


async def test_a_storm_of_alerts_is_sent_again_later(tmp_path: Path, record_property: Record) -> None:
    """503 with a time, for Alertmanager drops what is answered by 4xx; so does a log that takes nothing."""
    data = tmp_path / "brain"
    own = people.bearer(people.token_file(data, "alertmanager", Role.VIEWER))
    view = view_of(data, alerts_per_s=0.1)
    async with Console(view).serving() as url:
        storm = body(*(alert(disk=str(one)) for one in range(100)))
        assert (await post(url, storm, own))[0] == 200
        status, answer = await post(url, storm, own)
        assert (status, answer["retry_after_s"] > 600) == (503, True)
        assert len(view.said) == 100
    view = view_of(data)
    view.deaf = True
    async with Console(view).serving() as url:
        assert (await post(url, body(alert()), own))[0] == 503
    attacked(record_property, 2)


@pytest.mark.parametrize("caught_up", [True, False])
async def test_a_brain_that_knows_no_nodes_yet_takes_none(tmp_path: Path, caught_up: bool) -> None:
    """It would take every alert for one of no node."""
    data = tmp_path / "brain"
    own = people.bearer(people.token_file(data, "alertmanager", Role.VIEWER))
    view = view_of(data)
    if caught_up:
        view.state.pack = None
    else:
        view.caught_up = False
    async with Console(view).serving() as url:
        assert (await post(url, body(alert()), own))[0] == 503
        assert not view.said
