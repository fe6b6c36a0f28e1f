"""Tickets by templates: a table of ServiceNow, as its Table API is documented, and a system that itself knows repeated keys.

https://www.servicenow.com/docs/r/api-reference/rest-apis/c_TableAPI.html: POST (201) and PATCH (200) answer {"result": {...}}, an
encoded query is `name=value` pairs between ^, a record that is not there is 404.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ConfigError, Refused, Unreachable
from brain.config import load, locating
from brain.core.state import Evidence, RunState
from brain.notify import notifier
from brain.notify.compose import compose
from brain.notify.message import PageMessage
from brain.notify.ticket import build
from brain.notify.tickets import TicketChannel
from tests.brain.notify.pages import LINE, T0, incident, page, rule, run
from tests.brain.notify.receivers import Answer, receiving

AUTHORIZATION = "Basic Z3B1d2FyZDpzZWNyZXQ="
TABLE = "/api/now/table/incident"
WANT: dict[str, Any] = {
    "words": {"urgency": {"P0": "1", "P1": "1", "P2": "2", "P3": "3"}},
    "settle_s": 0.0,
    "find": {
        "method": "GET",
        "path": f"{TABLE}?sysparm_query=correlation_id=$key&sysparm_fields=sys_id&sysparm_limit=1",
        "ticket": "result.0.sys_id",
    },
    "open": {
        "path": TABLE,
        "ticket": "result.sys_id",
        "body": {
            "correlation_id": "$key", "short_description": "$subject", "description": "$text", "urgency": "$urgency",
            "u_nodes": "$nodes", "u_tags": ["gpu", "$cause"], "u_made": {"by": "gpuward", "for": "$$"},
        },
    },
    "comment": {"method": "PATCH", "path": f"{TABLE}/$ticket", "body": {"work_notes": "$text"}},
    "close": {"method": "PATCH", "path": f"{TABLE}/$ticket", "body": {"state": "6", "close_notes": "$why_now"}},
}  # fmt: skip


class ServiceNow:
    """The table of incidents."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self.headers: list[Any] = []
        self.made = 0
        self.lost = 0

    def api(self, request: web.Request, body: Any) -> Answer:
        """One request."""
        if request.headers.get("Authorization") != AUTHORIZATION:
            return 401, {"error": {"message": "User Not Authenticated"}, "status": "failure"}
        self.headers.append(request.headers.copy())
        id_ = request.path.removeprefix(TABLE).strip("/")
        if not request.path.startswith(TABLE):
            return 400, {"error": {"message": "Requested URI does not represent any resource"}}
        if request.method == "GET" and id_ in self.records:
            return 200, {"result": self.records[id_]}
        if request.method == "GET":
            asked = dict(pair.split("=", 1) for pair in request.query["sysparm_query"].split("^"))
            found = [one for one in self.records.values() if asked.items() <= one.items()]
            return 200, {"result": [{"sys_id": one["sys_id"]} for one in found]}
        if request.method == "POST" and not id_:
            self.made += 1
            self.records[f"sys{self.made}"] = body | {"sys_id": f"sys{self.made}"}
            self.lost -= 1
            return (
                (502, "Bad Gateway") if self.lost >= 0 else (201, {"result": self.records[f"sys{self.made}"]})
            )
        if request.method == "PATCH" and id_ in self.records:
            self.records[id_] |= body
            self.notes += [body["work_notes"]] if "work_notes" in body else []
            return 200, {"result": self.records[id_]}
        return 404, {"error": {"message": "No Record found"}, "status": "failure"}


def tickets(at: str, folder: Path, **more: Any) -> TicketChannel:
    """The channel as an operator configures it."""
    file = folder / "authorization"
    file.write_text(AUTHORIZATION + "\n")
    return build("desk", WANT | {"url": at, "authorization_file": str(file)} | more, "channels.desk")


def message(what: Any = "open", number: int = 1, **more: Any) -> PageMessage:
    """A page of the incident, with its number."""
    sent = replace(page(what), id=f"inc-1.p{number}")
    return replace(compose(sent, rule=rule(), runs=[run(RunState.APPROVAL)]), **more)


async def test_one_ticket_from_open_to_closed(tmp_path: Path) -> None:
    """By the templates of the site; numbers stay numbers, and a nested table is one."""
    desk = ServiceNow()
    async with receiving(desk.api) as it:
        channel = tickets(it.url, tmp_path)
        for number, what in enumerate(("open", "update", "ack", "resolve"), 1):
            assert await channel.send(message(what, number)) == "sys1"
        await channel.close()
    assert it.refused == []
    (record,) = desk.records.values()
    assert (record["correlation_id"], record["urgency"], record["u_nodes"]) == ("inc-1", "1", 1)
    assert record["u_tags"] == ["gpu", "gpu_lost"]
    assert record["u_made"] == {"by": "gpuward", "for": "$"}
    assert LINE in record["description"]
    assert [note.split(": ")[0] for note in desk.notes] == [
        "[P1] UPDATE",
        "[P1] ACKNOWLEDGED",
        "[P1] RESOLVED",
    ]
    assert (record["state"], record["close_notes"]) == ("6", "opened")
    assert desk.headers[1]["Idempotency-Key"] == "inc-1"
    assert desk.headers[-1]["Ward-Page"] == "inc-1.p4"


async def test_what_a_machine_wrote_stays_a_text_of_json_and_of_an_address(tmp_path: Path) -> None:
    """No quote, brace, template or part of an address of it counts."""
    hostile = '","state":"7"}] ${key} $ticket $$ \\" \\u0000 {{ 7*7 }} &sysparm_limit=9^active=true#'
    facts = [Evidence(id="e", at=T0, node="n1", kind="k", component="gpu", text=hostile)]
    desk = ServiceNow()
    async with receiving(desk.api) as it:
        channel = tickets(it.url, tmp_path)
        given = compose(page(about=incident(evidence=facts), text=hostile), rule=rule())
        await channel.send(given)
        await channel.send(replace(given, dedup_key=f"inc-2{hostile}", scope=hostile))
        assert (
            await channel.send(replace(given, dedup_key=f"inc-2{hostile}", id="inc-2.p2", again=True))
            == "sys2"
        )
        await channel.close()
    assert it.refused == []
    for record in desk.records.values():
        assert set(record) <= {*WANT["open"]["body"], "sys_id", "work_notes"}
        assert hostile in record["description"]


async def test_an_answer_that_was_lost_makes_no_second_ticket(tmp_path: Path) -> None:
    """It is found by the key, also by another brain; without `find` the system itself knows the key."""
    desk = ServiceNow()
    desk.lost = 1
    async with receiving(desk.api) as it:
        channel = tickets(it.url, tmp_path)
        with pytest.raises(Unreachable, match="502"):
            await channel.send(message())
        await channel.close()
        another = tickets(it.url, tmp_path)
        assert await another.send(message(again=True)) == "sys1"
        await another.close()
    assert desk.made == 1

    def knows(request: web.Request, body: Any) -> Answer:
        return 200, {"id": keys.setdefault(request.headers.get("Idempotency-Key", ""), len(keys) + 1)}

    keys: dict[str, int] = {}
    async with receiving(knows) as it:
        plain = {
            "url": it.url,
            "open": {"body": {"key": "$key"}, "ticket": "id"},
            "comment": {"path": "/$ticket"},
        }
        for again in (False, True):
            channel = build("desk", plain | {"settle_s": 0.0}, "channels.desk")
            assert await channel.send(message(again=again)) == "1"
            await channel.close()


LOOK = {"path": f"{TABLE}/$ticket", "state": "result.state", "closed": ["6", "7"]}


@pytest.mark.parametrize(
    ("more", "state", "made"),
    [
        pytest.param({}, "6", 2, id="gpuward has closed it"),
        pytest.param({"close": None}, "1", 1, id="only people close it, and nobody can ask"),
        pytest.param({"look": LOOK}, "7", 2, id="it says that it is closed"),
        pytest.param({"look": LOOK}, "2", 1, id="somebody has opened it again"),
    ],
)
async def test_what_is_back_has_another_ticket_where_the_former_is_closed(
    tmp_path: Path, more: dict[str, Any], state: str, made: int
) -> None:
    """It has a key of its own, and may name the former one; what is open is commented."""
    desk = ServiceNow()
    opens = WANT["open"] | {"body": WANT["open"]["body"] | {"u_former": "$former"}}
    async with receiving(desk.api) as it:
        channel = tickets(it.url, tmp_path, open=opens, **more)
        for number, what in enumerate(("open", "resolve"), 1):
            await channel.send(message(what, number))
        desk.records["sys1"]["state"] = state
        known = await channel.send(message("open", 3, tickets_before={"desk": "sys1"}, time=2))
        await channel.close()
    assert (desk.made, known) == (made, f"sys{made}")
    assert desk.records["sys1"]["u_former"] == ""
    if made == 2:
        assert (desk.records["sys2"]["correlation_id"], desk.records["sys2"]["u_former"]) == (
            "inc-1.2",
            "sys1",
        )
        assert desk.headers[-1]["Idempotency-Key"] == "inc-1.2"


async def test_a_deleted_ticket_is_opened_anew_and_a_wrong_path_is_an_error(tmp_path: Path) -> None:
    """The search says which of the two a 404 is."""
    desk = ServiceNow()
    async with receiving(desk.api) as it:
        channel = tickets(it.url, tmp_path)
        await channel.send(message())
        desk.records.clear()
        assert await channel.send(message("update", 2)) == "sys2"
        await channel.close()
        channel = tickets(it.url, tmp_path, comment={"method": "PATCH", "path": f"{TABLE}/x/$ticket"})
        with pytest.raises(Refused, match="404"):
            await channel.send(message("update", 3))
        await channel.close()


async def test_an_answer_without_a_ticket_is_no_delivery(tmp_path: Path) -> None:
    """The template names another place; or a proxy answered."""
    answers: list[Any] = [{"result": []}, {"result": {"sys_id": True}}, [1], "<html>"]

    def says(request: web.Request, body: Any) -> Answer:
        return 200, answers[0]

    for _ in range(4):
        async with receiving(says) as it:
            channel = tickets(it.url, tmp_path)
            with pytest.raises(
                Unreachable, match=r"no ticket at result\.sys_id|whether there is a ticket|a web page"
            ):
                await channel.send(message())
            await channel.close()
        answers.pop(0)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"open": None}, "channels.desk.open: "),
        ({"open": {"body": {"k": "$key"}}}, "channels.desk.open.ticket: is missing"),
        ({"open": {"bodi": {}}}, "channels.desk.open.bodi: is not an option here"),
        (
            {"open": {"body": {"a": {"b": "$kay"}}, "ticket": "id"}},
            "channels.desk.open.body.a.b: there is no $kay",
        ),
        ({"open": {"path": "x", "ticket": "id"}}, "channels.desk.open.path: begins with / or ?"),
        ({"comment": {"body": {"text": "$text"}}}, "channels.desk.comment: $ticket stands nowhere in it"),
        ({"close": {"path": "/close"}}, "channels.desk.close: $ticket stands nowhere in it"),
        ({"find": {"path": "/all", "ticket": "0.id"}}, "channels.desk.find: $key stands nowhere in it"),
        ({"look": LOOK | {"path": "/x"}}, "channels.desk.look.path: $ticket stands nowhere in it"),
        ({"look": LOOK | {"closed": []}}, "channels.desk.look.closed: is empty"),
        ({"look": LOOK | {"state": ""}}, "channels.desk.look.state: is missing"),
        ({"find": None, "open": {"ticket": "id"}}, "channels.desk.open: $key stands nowhere in it"),
        (
            {"find": {"method": "GET", "body": {"k": "$key"}, "ticket": "id"}},
            "channels.desk.find.body: a GET has none",
        ),
        ({"headers": {"A": "b\nc"}}, "channels.desk.headers.'A': not an HTTP header"),
        ({"authorization_file": "/nowhere/a"}, "channels.desk.authorization_file: /nowhere/a cannot be read"),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, Any], says: str, tmp_path: Path) -> None:
    """The message names the key, as the operator wrote it."""
    with pytest.raises(ConfigError) as caught:
        tickets("http://desk.example", tmp_path, **more)
    assert says in str(caught.value)


def test_an_error_in_a_template_names_file_and_line(tmp_path: Path) -> None:
    """As all errors of brain.toml do."""
    file = tmp_path / "brain.toml"
    file.write_text(
        '[channels.desk]\ntype = "ticket"\nurl = "http://desk"\n\n[channels.desk.open]\nticket = "id"\n'
        '[channels.desk.open.body]\nkey = "$key"\nnode = "$nodee"\n[channels.desk.comment]\npath = "/$ticket"\n'
    )
    config = load(file)
    with pytest.raises(ConfigError) as caught, locating(config):
        notifier.build(config.channels, config.groups, tmp_path)
    assert f"{file}:9: channels.desk.open.body.node: there is no $nodee" in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        "Please wait ...",
        '{"message": "wait"}',
        "{}",
        "[]",
        '{"result": "busy"}',
        '{"result": [{"sys_id": "sys1"',
        "\ufffd",
    ],
)
async def test_an_answer_that_cannot_be_read_is_not_the_word_that_there_is_no_ticket(
    tmp_path: Path, answer: str
) -> None:
    """Else each page in such an hour would open one more."""
    desk = ServiceNow()
    async with receiving(desk.api) as it:
        channel = tickets(it.url, tmp_path)
        await channel.send(message())
        await channel.close()
        channel = tickets(it.url, tmp_path)  # a brain that was started anew, and asks
        found = it.judge

        def unreadable(request: web.Request, body: Any) -> Answer:
            return (200, answer) if request.method == "GET" else found(request, body)

        it.judge = unreadable
        with pytest.raises(Unreachable, match="whether there is a ticket"):
            await channel.send(replace(message("repeat", 2), again=True))
        it.judge = found
        assert await channel.send(replace(message("repeat", 2), again=True)) == "sys1"
        await channel.close()
    assert len(desk.records) == 1


@pytest.mark.parametrize(
    ("place", "answer", "lacks"),
    [
        ("sys_id", "{}", "sys_id"),
        ("sys_id", '{"message": "wait"}', "sys_id"),
        ("sys_id", "[]", "sys_id"),
        ("found.id", "{}", "found"),
        ("found.id", '{"found": {}}', "found.id"),
        ("found.id", '{"found": "busy"}', "found.id"),
        ("sys_id", '{"sys_id": null}', ""),
        ("sys_id", "null", ""),
        ("sys_id", "", ""),
        ("found.id", '{"found": null}', ""),
    ],
)
async def test_a_search_through_no_list_says_none_by_null(
    tmp_path: Path, place: str, answer: str, lacks: str
) -> None:
    """An answer that lacks what the configuration names says nothing: no ticket is opened, and the error names it."""
    desk = ServiceNow()

    def one(request: web.Request, body: Any) -> Answer:
        return (200, answer) if request.method == "GET" else desk.api(request, body)

    async with receiving(one) as it:
        channel = tickets(it.url, tmp_path, find=WANT["find"] | {"ticket": place})
        if lacks:
            with pytest.raises(Unreachable, match=f"which has no {re.escape(lacks)}: null there"):
                await channel.send(message())
        else:
            assert await channel.send(message()) == "sys1"
        await channel.close()
    assert len(desk.records) == (0 if lacks else 1)
