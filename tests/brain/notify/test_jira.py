"""Jira: a server that checks issues, comments and transitions as Atlassian's documentation says, and answers as it does."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ConfigError, Refused, TimedOut, Unreachable
from brain.core.state import Evidence
from brain.notify import tickets
from brain.notify.compose import compose
from brain.notify.http import NotAdmitted
from brain.notify.jira import document, label, wiki
from tests.brain.notify.jira_channel import jira, message
from tests.brain.notify.jira_server import TOKEN, JiraServer, text_of, wrong_document
from tests.brain.notify.pages import LINE, T0, incident, page, rule
from tests.brain.notify.receivers import receiving

HOSTILE = '{noformat} {NOFORMAT}{code} [~admin] [text|http://evil] !http://evil/x.png! "}]} \\u0000 ${text} $$ <b> {{x}} @here'


@pytest.mark.parametrize("version", [3, 2])
async def test_one_issue_from_open_to_done(version: int, tmp_path: Path) -> None:
    """It is opened once, says everything that the page says, is commented, and closed when the incident is."""
    server = JiraServer(version)
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path, version, console_url="https://ward.example", language="en")
        for number, what in enumerate(("open", "update", "ack", "resolve"), 1):
            assert await channel.send(message(what, number)) == "OPS-1"
        await channel.close()
    assert it.refused == []
    issue = server.only()
    assert issue.fields["summary"] == "[P1] gpu lost on gpu/n1/0000:3b:00"
    assert issue.fields["labels"] == ["gpuward", "gpuward-inc-1"]
    said = text_of(issue.fields["description"])
    assert LINE in said
    assert "Power the node off and on, then reseat the GPU." in said
    assert "https://ward.example/incidents/inc-1" in said
    assert [text_of(one["body"]).count("UPDATE: ") for one in issue.comments] == [1, 0, 0]
    assert "ACKNOWLEDGED: " in text_of(issue.comments[1]["body"])
    assert "RESOLVED: " in text_of(issue.comments[2]["body"])
    assert issue.status == "Done"


async def test_a_site_has_fields_of_its_own(tmp_path: Path) -> None:
    """Priorities by severity, a text and a number of custom fields."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(
            it.url, tmp_path, labels=["gpu", "hands"], issue_type="10001", words={"urgency": {"P1": "High"}},
            fields={
                "priority": {"name": "$urgency"}, "customfield_10010": "$node ($cause): $$5", "customfield_10020": "$nodes",
            },
        )  # fmt: skip
        await channel.send(message())
        await channel.close()
    assert it.refused == []
    fields = server.only().fields
    assert fields["priority"] == {"name": "High"}
    assert (fields["customfield_10010"], fields["customfield_10020"]) == ("n1 (gpu_lost): $5", 1)
    assert fields["labels"] == ["gpu", "hands", "gpuward-inc-1"]


@pytest.mark.parametrize("version", [3, 2])
async def test_what_a_machine_wrote_is_text(version: int, tmp_path: Path) -> None:
    """A kernel line is no markup, mention, link or template, and breaks no JSON; very long pages are cut to what Jira takes."""
    server = JiraServer(version)
    facts = [
        Evidence(id=f"e{n}", at=T0 + n, node="n1", kind=f"k{n}", component="gpu", text=HOSTILE + "\\" * n)
        for n in range(12)
    ]
    given = compose(page(about=incident(evidence=facts), text=f"{HOSTILE}\n" * 3000), rule=rule())
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path, version, fields={"customfield_10010": "$why_now"})
        await channel.send(given)
        await channel.send(replace(given, what="update", id="inc-1.p2"))
        await channel.close()
    assert it.refused == []
    issue = server.only()
    for body in (issue.fields["description"], issue.comments[0]["body"]):
        if version == 3:
            assert [block["type"] for block in body["content"]] == ["codeBlock"]
        else:
            assert body.lower().count("{noformat}") == 2
            assert body.startswith("{noformat}\n")
            assert body.endswith("\n{noformat}")
            assert "[~" not in body


async def test_an_answer_that_was_lost_makes_no_second_issue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue was made, and nobody heard of it. Sent again, also by a new leader, and though Jira's search lags behind."""
    monkeypatch.setattr(tickets, "POLL_S", 0.05)
    server = JiraServer()
    server.lag_s, server.lost = 0.5, 1
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        with pytest.raises(Unreachable, match="502"):
            await channel.send(message())
        await channel.close()
        new_leader = jira(it.url, tmp_path, settle_s=60.0)
        assert await new_leader.send(message(again=True)) == "OPS-1"
        server.lost = 1
        with pytest.raises(Unreachable, match="502"):
            await new_leader.send(message("update", 2))
        assert await new_leader.send(message("update", 2, again=True)) == "OPS-1"
        await new_leader.close()
    issue = server.only()
    assert len(issue.comments) == 1, "the comment was made, too"
    assert server.searches > 1


@pytest.mark.parametrize(
    "answer",
    ["", "{}", "[]", '{"message": "Please wait"}', '{"issues": null}', '{"issues": [{}]}', "null", "OK"],
)
async def test_an_answer_of_something_else_is_not_the_word_that_there_is_no_issue(
    tmp_path: Path, answer: str
) -> None:
    """What stands before Jira answers 200, and it is no answer of Jira's: else each page in such an hour would open one more,
    say once more what it has said, or say of an issue that nothing leads to its end.
    """
    server = JiraServer()
    asks = ("GET", "/search/jql")

    def between(request: Any, body: Any) -> Any:
        return (
            (200, answer)
            if request.method == asks[0] or request.path.endswith(asks[1])
            else api(request, body)
        )

    async with receiving(server.api) as it:
        api = it.judge
        channel = jira(it.url, tmp_path)
        assert await channel.send(message()) == "OPS-1"
        await channel.close()
        channel = jira(it.url, tmp_path)  # a brain that was started anew, and asks
        it.judge = between
        with pytest.raises(Unreachable):
            await channel.send(message("update", 2, again=True))
        it.judge = api
        assert await channel.send(message("update", 2, again=True)) == "OPS-1"
        assert len(server.only().comments) == 1
        it.judge = between
        with pytest.raises(Unreachable):
            await channel.send(message("resolve", 3))
        it.judge = api
        assert await channel.send(message("resolve", 3, again=True)) == "OPS-1"
        await channel.close()
    assert server.only().status == "Done"
    assert len(server.only().comments) == 2


async def test_a_leader_that_was_told_of_the_issue_does_not_search(tmp_path: Path) -> None:
    """Its key stands on the log."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        await channel.send(message())
        await channel.close()
        searches, channel = server.searches, jira(it.url, tmp_path)
        assert await channel.send(message("update", 2, tickets={"j": "OPS-1"})) == "OPS-1"
        await channel.close()
    assert server.searches == searches
    assert len(server.only().comments) == 1


async def test_two_groups_that_share_the_channel_share_the_issue(tmp_path: Path) -> None:
    """Each has a queue of its own, and both send at once."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        sent = [channel.send(message(number=n, group=f"g{n}")) for n in range(1, 4)]
        assert await asyncio.gather(*sent) == ["OPS-1"] * 3
        await channel.close()
    assert len(server.only().comments) == 2


async def test_a_deleted_issue_is_no_ticket_and_one_that_we_may_not_see_is(tmp_path: Path) -> None:
    """News of a fault whose issue somebody has deleted open another one; its end opens none. A right that we lost is an error."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        await channel.send(message())
        server.sees_project = False
        with pytest.raises(NotAdmitted, match="404"):
            await channel.send(message("update", 2))
        server.sees_project = True
        server.issues.clear()
        assert await channel.send(message("update", 3)) == "OPS-2"
        server.issues.clear()
        assert await channel.send(message("resolve", 4)) == ""
        await channel.close()
    assert server.issues == {}


async def test_errors_say_who_must_act_and_hide_the_token(tmp_path: Path) -> None:
    """401 and 403: a person; 400: never; 429: when it says so; 5xx and silence: later."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path, fields={"customfield_99": "x"})
        with pytest.raises(Refused, match="customfield_99") as caught:
            await channel.send(message())
        await channel.close()
        channel = jira(it.url, tmp_path)
        it.instead = [(429, {}, {"Retry-After": "0.1"})]
        assert await channel.send(message()) == "OPS-1"
        it.instead = [(429, {}, {"Retry-After": "600"})]
        with pytest.raises(Unreachable, match="again in 600 s"):
            await channel.send(message("update", 2))
        for status, error in ((500, Unreachable), (503, Unreachable), (403, NotAdmitted), (401, NotAdmitted)):
            it.instead = [(status, {}, {})]
            with pytest.raises(error, match=str(status)):
                await channel.send(message("update", 2))
        it.instead = [(200, {"issues": []}, {}), (201, "<html>", {})]
        with pytest.raises(Unreachable, match="names no issue"):
            await channel.send(message(dedup_key="inc-2"))
        server.authorization = "another"
        with pytest.raises(NotAdmitted, match="401") as caught:
            await channel.send(message("update", 2))
        assert TOKEN not in str(caught.value)
        await channel.close()
        slow = jira(it.url, tmp_path, timeout_s=0.3)
        it.delay_s = 60
        with pytest.raises(TimedOut):
            await slow.send(message())
        await slow.close()


async def test_the_doctor_hears_what_is_wrong_before_the_first_ticket(tmp_path: Path) -> None:
    """Who we are, the project, the type of issue; nothing is made."""
    server = JiraServer()
    async with receiving(server.api) as it:
        channel = jira(it.url, tmp_path)
        assert (await channel.reach()).endswith(", as gpuward")
        await channel.close()
        for key, value, says in (
            ("project", "GPU", "No project could be found with key 'GPU'"),
            ("issue_type", "Bug", r"OPS has no issue type 'Bug' \(have: Task\)"),
            ("user", "someone@else", "401"),
        ):
            given: dict[str, Any] = {key: value}
            channel = jira(it.url, tmp_path, **given)
            with pytest.raises(Unreachable, match=says):
                await channel.reach()
            await channel.close()
    assert server.issues == {}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"project": "ops team"}, "channels.j.project: want the project's key, such as OPS, not 'ops team'"),
        ({"user": ""}, "channels.j.user: is missing: Jira Cloud takes an API token with"),
        ({"labels": ["two words"]}, "channels.j.labels.0: a label has no spaces"),
        ({"url": "jira"}, "channels.j.url: want http://host/"),
        ({"api": 4}, "channels.j.api: "),
        ({"fields": {"summary": "x"}}, "channels.j.fields.summary: gpuward sets it itself"),
        (
            {"fields": {"a": {"b": ["$nod"]}}},
            "channels.j.fields.a.b.0: there is no $nod: did you mean node",
        ),
        ({"fields": {"a": "cost: 5$"}}, "channels.j.fields.a: a $ is followed by a name"),
        ({"fields": {"a": "$ticket"}}, "channels.j.fields.a: there is no $ticket"),
        ({"words": {"text": {"P1": "x"}}}, "channels.j.words.text: this name is a part of the page"),
        ({"words": {"u": {"P9": "x"}}}, "channels.j.words.u.P9: there are P0, P1, P2 and P3"),
        ({"words": {"a-b": {"P1": "x"}}}, "channels.j.words.a-b: a name has letters"),
        ({"projekt": "x"}, "channels.j.projekt: is not an option here"),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, Any], says: str, tmp_path: Path) -> None:
    """The message names the key, as the operator wrote it."""
    with pytest.raises(ConfigError) as caught:
        jira("http://jira.example", tmp_path, **more)
    assert says in str(caught.value)


def test_texts_and_labels_are_what_jira_takes() -> None:
    """Also of a key with odd letters."""
    assert wrong_document(document("x", "https://ward.example/incidents/inc-1")) == ""
    assert wiki("a", "https://w.example") == "[https://w.example]\n{noformat}\na\n{noformat}"
    assert label("brain_rules-brain 1-17") == "gpuward-brain_rules-brain_1-17"
    assert len(label("x" * 400)) == 255
