"""How an issue of Jira ends: by us, by a person, by its site; and what is told where once its fault is back."""

from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import Unreachable
from brain.notify.compose import compose
from tests.brain.notify.jira_channel import jira, message
from tests.brain.notify.jira_server import JiraServer, text_of
from tests.brain.notify.pages import page, rule
from tests.brain.notify.receivers import receiving


async def test_what_came_and_went_unheard_is_an_issue_that_is_closed(tmp_path: Path) -> None:
    """Jira could not be reached while it lasted."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        given = compose(page("resolve", text="it is back", alerted=()), rule=rule())
        assert given.untold
        assert await channel.send(given) == "OPS-1"
        await channel.close()
    assert server.only().status == "Done"


async def test_who_closed_it_by_hand_is_not_overruled(tmp_path: Path) -> None:
    """The end is a comment."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        await channel.send(message())
        server.only().status = "Done"
        await channel.send(message("resolve", 2))
        await channel.close()
    assert it.refused == []
    assert (server.only().status, len(server.only().comments)) == ("Done", 1)


@pytest.mark.parametrize("may_link", [True, False])
async def test_what_is_back_has_another_issue_that_names_and_links_the_closed_one(
    tmp_path: Path, may_link: bool
) -> None:
    """Nobody reads what is added to an issue that is done. The search finds the new one, also for another leader; where issues
    cannot be linked, its text names the former one.
    """
    server = JiraServer()
    server.may_link = may_link
    back: dict[str, Any] = {"tickets_before": {"j": "OPS-1"}, "time": 2}
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path, language="en", fields={"customfield_10010": "after: $former"})
        for number, what in enumerate(("open", "resolve"), 1):
            assert await channel.send(message(what, number)) == "OPS-1"
        assert await channel.send(message("open", 3, **back)) == "OPS-2"
        await channel.close()
        another = jira(it.url, tmp_path)
        assert await another.send(message("open", 3, again=True, **back)) == "OPS-2"
        assert await another.send(message("resolve", 4, tickets={"j": "OPS-2"}, **back)) == "OPS-2"
        await another.close()
    assert len(it.refused) == (0 if may_link else 1)
    assert server.links == ([("OPS-2", "OPS-1")] if may_link else [])
    first, second = server.issues.values()
    assert (first.status, len(first.comments)) == ("Done", 1)
    assert (second.status, len(second.comments)) == ("Done", 1)
    assert second.fields["labels"] == ["gpuward", "gpuward-inc-1.2"]
    assert second.fields["customfield_10010"] == "after: OPS-1"
    assert "  old ticket OPS-1 (j)\n" in text_of(second.fields["description"])


async def test_what_is_back_is_told_in_an_issue_that_is_open(tmp_path: Path) -> None:
    """Its site closes them by itself and has not, or somebody has opened it again; one that was deleted is none."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        for number, what in enumerate(("open", "resolve"), 1):
            await channel.send(message(what, number))
        server.only().status = "In Progress"
        back: dict[str, Any] = {"tickets_before": {"j": "OPS-1"}, "time": 2}
        assert await channel.send(message("open", 3, **back)) == "OPS-1"
        assert await channel.send(message("resolve", 4, **back)) == "OPS-1"
        assert (server.only().status, len(server.only().comments)) == ("Done", 3)
        server.issues.clear()
        assert await channel.send(message("open", 5, tickets_before={"j": "OPS-1"}, time=3)) == "OPS-2"
        await channel.close()


async def test_a_site_may_close_its_issues_itself(tmp_path: Path) -> None:
    """Or name the transition, or the status."""
    server = JiraServer()
    async with receiving(server.api) as it:
        ways: list[dict[str, Any]] = [
            {"close": False}, {"transition": "in progress"}, {"transition": "Resolve"}, {"transition": "Done"},
        ]  # fmt: skip
        for key, more in enumerate(ways):
            channel = jira(it.url, tmp_path, **more)
            for what in ("open", "resolve"):
                await channel.send(message(what, dedup_key=f"inc-{key}"))
            await channel.close()
    assert [one.status for one in server.issues.values()] == ["To Do", "In Progress", "Done", "Done"]


async def test_a_workflow_that_lets_nobody_close_it_is_told_in_the_issue(tmp_path: Path) -> None:
    """No way to it, or a screen that asks for more: a person reads it there, and the page is delivered all the same."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        await channel.send(message())
        server.resolution = True
        await channel.send(message("resolve", 2))
        said = text_of(server.only().comments[-1]["body"])
        assert "Resolution is required." in said
        assert "请手动关闭" in said
        server.ways = server.ways | {"To Do": [("11", "Start", "In Progress")]}
        await channel.send(message("resolve", 3))
        assert "no transition leads to a status of the category Done (have: Start)" in text_of(
            server.only().comments[-1]["body"]
        )
        await channel.close()
        channel = jira(it.url, tmp_path, close_fields={"resolution": {"name": "Done"}}, transition="Resolve")
        server.ways = server.ways | {"To Do": [("31", "Resolve", "Done")]}
        server.busy = True
        with pytest.raises(Unreachable, match="409"):
            await channel.send(message("resolve", 4))
        server.busy = False
        await channel.send(message("resolve", 4, again=True))
        await channel.close()
    assert (server.only().status, server.only().resolved) == ("Done", {"resolution": {"name": "Done"}})
