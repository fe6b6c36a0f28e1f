"""The API's long lists: each page follows the one before it, whatever is added meanwhile, and filters find what they say."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import hdrs, web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from brain.adapters.log import LogClock
from brain.adapters.readmodel import ReadModel
from brain.console import lists, who_is_hit
from brain.console.api.incident_shapes import IncidentsQuery, NotesQuery, RunsQuery
from brain.console.api.pages import cursor, place
from brain.console.feed import Feed
from brain.console.packing import packed, takes_gzip
from brain.core.effects import Note
from brain.core.inputs import OperatorCommand
from brain.core.pack.spec import Mode
from brain.core.state import Incident, IncidentState, Run, RunState
from brain.leader.history import HistoryWriter
from brain.leader.notes import BrainNotes
from tests.brain.world import GPU, Story, pack

MANY = 45


@pytest.fixture(scope="module")
def incident() -> Incident:
    """A lost GPU, as the engine has it."""
    story = Story(pack())
    story.event(1, "gpu.xid", GPU, code=79)
    story.time.run(30)
    (found,) = story.time.incidents.values()
    return found


@pytest.fixture
def model(tmp_path: Path, incident: Incident) -> ReadModel:
    """Incidents on nine nodes, five at each moment, a third of them closed; a note about each."""
    made = ReadModel(tmp_path / "history")
    made.begin("log-1")
    add(made, incident, range(MANY))
    return made


def add(model: ReadModel, incident: Incident, numbers: range) -> None:
    """Incidents and notes with these numbers."""
    states = (IncidentState.OPEN, IncidentState.NEEDS_HUMAN, IncidentState.CLOSED)
    made = [
        replace(
            incident,
            id=f"inc-{number:03}",
            node=f"n{number % 9}",
            scope=f"node/n{number % 9}",
            opened_at=1000.0 + number // 5,
            state=states[number % 3],
        )
        for number in numbers
    ]
    notes = [
        (
            number + 1,
            Note(
                id=f"e{number}#0",
                at=1000.0 + number,
                kind=f"incident.{one.state}",
                text="x",
                incident=one.id,
            ),
        )
        for number, one in zip(numbers, made, strict=True)
    ]
    model.write(numbers[-1] + 1, notes, made)


def incidents(model: ReadModel, **query: Any) -> Any:
    """The answer."""
    return orjson.loads(lists.incidents(IncidentsQuery(**query), lambda: None, model))


def notes(model: ReadModel, **query: Any) -> Any:
    """The answer."""
    return orjson.loads(lists.notes(NotesQuery(**query), lambda: None, model))


def pages(
    ask: Callable[..., Any],
    model: ReadModel,
    key: str,
    between: Callable[[], None] = lambda: None,
    **query: Any,
) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    following = ""
    while True:
        answer = ask(model, cursor=following, **query)
        assert len(answer[key]) <= query["limit"]
        found += [one["id"] for one in answer[key]]
        between()
        if not (following := answer["next"]):
            return found


@pytest.fixture
def with_runs(model: ReadModel) -> ReadModel:
    """Runs on nine nodes, five begun at each moment, a third of them exhausted."""
    story = Story(pack())
    story.event(1, "gpu.xid", GPU, code=79)
    story.time.run(30)
    (one,) = story.time.runs.values()
    states = (RunState.SUCCEEDED, RunState.APPROVAL, RunState.EXHAUSTED)
    made: list[Run] = [
        replace(
            one,
            id=f"inc-{number:03}.r1",
            incident=f"inc-{number:03}",
            node=f"n{number % 9}",
            started_at=1000.0 + number // 5,
            state=states[number % 3],
            ended_at=0.0 if number % 3 == 1 else 2000.0,
            runbook=replace(one.runbook, name=f"book-{number % 2}"),
        )
        for number in range(MANY)
    ]
    model.write(2 * MANY, runs=made)
    return model


def runs(model: ReadModel, **query: Any) -> Any:
    """The answer."""
    return orjson.loads(lists.runs(RunsQuery(**query), lambda: None, model))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, list(range(MANY))),
        ({"state": "approval"}, [one for one in range(MANY) if one % 3 == 1]),
        ({"under_way": True}, [one for one in range(MANY) if one % 3 == 1]),
        ({"runbook": "*-1"}, [one for one in range(MANY) if one % 2]),
        ({"runbook": "book"}, []),
        ({"node": "n[78]"}, [one for one in range(MANY) if one % 9 in (7, 8)]),
        ({"incident": "inc-003"}, [3]),
        ({"since": 1003, "until": 1004}, [15, 16, 17, 18, 19]),
    ],
)
def test_runs_are_found_and_paged(with_runs: ReadModel, query: dict[str, Any], numbers: list[int]) -> None:
    """Each filter finds what it says, newest first, on one page or on many."""
    wanted = [f"inc-{number:03}.r1" for number in sorted(numbers, key=lambda one: (-(one // 5), one))]
    assert [one["id"] for one in runs(with_runs, **query)["runs"]] == wanted
    assert pages(runs, with_runs, "runs", limit=4, **query) == wanted


@pytest.mark.parametrize("limit", [1, 4, 5, 7, 44, 45, 46, 1000])
def test_pages_have_each_one_once_newest_first(model: ReadModel, limit: int) -> None:
    """Also where many have opened at one moment, and where the last page is just full."""
    whole = sorted(range(MANY), key=lambda number: (-(number // 5), number))
    found = pages(incidents, model, "incidents", all=True, limit=limit)
    assert found == [f"inc-{number:03}" for number in whole]
    newest = [f"e{number}#0" for number in reversed(range(MANY))]
    assert pages(notes, model, "notes", limit=limit) == newest


def test_who_did_it_alone_or_with_a_second(tmp_path: Path) -> None:
    """Notes that a command caused carry who gave it: the engine's by the log, the brain's own as it says."""
    model = ReadModel(tmp_path / "who")
    history = HistoryWriter(model, Feed())
    history.open("log-1")
    given = [("ann", "holds"), ("ann and ben", "close"), ("", "a fault"), ("anna", "acks"), ("ben", "asks")]
    for seq, (who, text) in enumerate(given, 1):
        made = Note(id=f"e{seq}#0", at=float(seq), kind="operator.hold", text=text, data={"more": 1})
        said = OperatorCommand(id=f"e{seq}", who=who, verb="ack", args={})
        history.collect(seq, [made], said if who else None)
    assert history.flush()
    BrainNotes("b", LogClock(), history).write("access.login", "ben logged in", "ben")
    assert history.flush()
    found = notes(model)["notes"]
    assert [one["who"] for one in found] == ["ben", "ben", "anna", "", "ann and ben", "ann"]
    assert found[1]["data"] == {"who": "ben", "more": 1}

    def by(who: str) -> list[str]:
        return [one["text"] for one in notes(model, who=who)["notes"]]

    assert by("ann") == ["close", "holds"]
    assert by("ben") == ["ben logged in", "asks", "close"]
    assert by("ann*") == ["acks", "close", "holds"]
    assert by("*") == ["ben logged in", "asks", "acks", "close", "holds"]
    assert by("an") == []


@pytest.mark.parametrize(
    ("many", "shown"),
    [
        (3, [0, 1, 2]),
        (8, list(range(8))),
        (9, [0, 1, 3, 4, 5, 6, 7, 8]),
        (30, [0, 1, 24, 25, 26, 27, 28, 29]),
    ],
)
def test_of_many_notes_of_an_incident_the_newest_are_shown(
    tmp_path: Path, many: int, shown: list[int]
) -> None:
    """What people have said last matters more than the middle; how it began stays."""
    model = ReadModel(tmp_path / "many")
    history = HistoryWriter(model, Feed())
    history.open("log-1")
    for number in range(many):
        said = Note(id=f"e{number}#0", at=float(number), kind="x", text=str(number), incident="inc-1")
        history.collect(number + 1, [said])
    assert history.flush()
    assert [int(one["text"]) for one in model.notes_of("inc-1", limit=8)] == shown


def test_what_is_added_meanwhile_moves_nothing(model: ReadModel, incident: Incident) -> None:
    """Pages by number would show the last one of a page again."""
    number = MANY

    def one_more() -> None:
        nonlocal number
        add(model, incident, range(number, number + 1))
        number += 1

    found = pages(incidents, model, "incidents", one_more, all=True, limit=4)
    assert len(found) == len(set(found)) == MANY
    there = number
    found = pages(notes, model, "notes", one_more, limit=4)
    assert found == [f"e{one}#0" for one in reversed(range(there))]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"state": "needs_human"}, [one for one in range(MANY) if one % 3 == 1]),
        ({"state": "closed"}, [one for one in range(MANY) if one % 3 == 2]),
        ({"node": "n[78]", "all": True}, [one for one in range(MANY) if one % 9 in (7, 8)]),
        ({"scope": "node/n1"}, [one for one in range(MANY) if one % 9 == 1 and one % 3 != 2]),
        ({"since": 1003, "until": 1004, "all": True}, [15, 16, 17, 18, 19]),
        ({"cause": "no-such"}, []),
        ({"severity": "P3"}, []),
        ({"limit": 1000}, [one for one in range(MANY) if one % 3 != 2]),
        ({}, [one for one in range(MANY) if one % 3 != 2]),
    ],
)
def test_filters(model: ReadModel, query: dict[str, Any], numbers: list[int]) -> None:
    """Each finds what it says; without `all` what is over is left out, unless its state is asked for."""
    found = incidents(model, **query)
    assert {one["id"] for one in found["incidents"]} == {f"inc-{number:03}" for number in numbers}
    assert (found["next"], found["more"]) == ("", False)


def test_filters_of_notes(model: ReadModel) -> None:
    """By kind, incident and time."""
    assert len(notes(model, kind="incident.*", limit=1000)["notes"]) == MANY
    assert [one["id"] for one in notes(model, incident="inc-003")["notes"]] == ["e3#0"]
    assert [one["id"] for one in notes(model, since=1003, until=1005)["notes"]] == ["e4#0", "e3#0"]
    assert notes(model, kind="page.*")["notes"] == []


def test_states_of_version_0_1_are_found_by_todays_names(model: ReadModel) -> None:
    """Its rows are not written again."""
    with model._db:
        model._db.execute(
            "UPDATE incidents SET state = 'person', body = replace(CAST(body AS TEXT), 'needs_human', 'person') "
            "WHERE state = 'needs_human'"
        )
    assert len(incidents(model, state="needs_human")["incidents"]) == MANY // 3


@pytest.mark.parametrize(
    "text",
    [
        "x", "!!", "e30", "\u00e9", cursor("incidents", "a", "b"), cursor("incidents", 1.0, 2),
        cursor("incidents", 1.0, "a", 3), "WzEwMDAuMCwiaW5jLTAwMSJd",  # the last one is of version 0.2.0
    ],
)  # fmt: skip
def test_a_cursor_of_something_else_is_refused(model: ReadModel, text: str) -> None:
    """With a sentence, and no 500."""
    with pytest.raises(web.HTTPBadRequest) as caught:
        incidents(model, cursor=text)
    assert "begin again" in str(caught.value.text)
    with pytest.raises(web.HTTPBadRequest) as caught:
        notes(model, cursor=cursor("notes", "e999#0"))
    assert "begin again" in str(caught.value.text)


def test_a_cursor_of_another_list_is_refused(with_runs: ReadModel) -> None:
    """It would have been a place there, too: a client that takes one for the other would miss what it does not see."""
    lists_: dict[str, Callable[..., Any]] = {
        "incidents": partial(incidents, all=True),
        "runs": runs,
        "notes": notes,
    }
    for name, ask in lists_.items():
        following = ask(with_runs, limit=3)["next"]
        assert following, name
        for other, asks in lists_.items():
            if other == name:
                assert asks(with_runs, limit=3, cursor=following)[other]
                continue
            with pytest.raises(web.HTTPBadRequest, match="Bad Request") as caught:
                asks(with_runs, limit=3, cursor=following)
            assert "begin again" in str(caught.value.text), (name, other)


@given(st.text())
def test_any_cursor_is_a_place_or_refused(text: str) -> None:
    """Nothing else comes out."""
    try:
        found = place("incidents", text, float, str)
    except web.HTTPBadRequest:
        return
    assert found is None or (isinstance(found[0], float) and isinstance(found[1], str))


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        ("", False), ("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("*", True), ("br", False),
        ("*;q=0", False), ("gzip;q=0.000, *", False), ("GZIP ; q=1", True), ("identity", False),
    ],
)  # fmt: skip
def test_who_takes_gzip(header: str, takes: bool) -> None:
    """RFC 9110, 12.5.3."""
    assert takes_gzip(header) == takes


def test_a_body_is_packed_and_not_sent_again() -> None:
    """Packed and plain have one weak ETag, which another body does not have."""

    def sent(body: bytes, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return packed(make_mocked_request("GET", "/", named), body)

    body = b"[" + b"1," * 5000 + b"1]"
    plain, small = sent(body), sent(body, Accept_Encoding="gzip")
    assert (plain.body, gzip.decompress(small.body)) == (body, body)
    assert len(small.body) < len(body) / 20
    tag = plain.headers[hdrs.ETAG]
    assert tag == small.headers[hdrs.ETAG] != sent(body + b" ").headers[hdrs.ETAG]
    for shown in (tag, f'"other", {tag}', "*"):
        again = sent(body, If_None_Match=shown)
        assert (again.status, again.body, again.headers[hdrs.ETAG]) == (304, b"", tag)
    assert sent(body, If_None_Match='"other"').status == 200


def test_an_incident_says_which_of_its_runs_waits_for_an_approval(tmp_path: Path) -> None:
    """By itself it is `healing`, which is only true once somebody has agreed."""
    story = Story(pack(Mode.APPROVE))
    story.event(10, "link.state", "link/eth0", up=False)
    story.run(20)
    model = ReadModel(tmp_path / "asking")
    model.begin("log-1")
    model.write(1, [], story.time.incidents.values(), story.time.runs.values())
    (found,) = orjson.loads(lists.incidents(IncidentsQuery(), lambda: None, model))["incidents"]
    (one,) = story.time.incidents.values()
    assert (found["state"], found["asks"]) == ("healing", f"{one.id}.r1")
    raw = model.incident(one.id)
    assert raw is not None
    assert who_is_hit.whole(raw, story.engine.state).asks == f"{one.id}.r1"
    story.say(21, "deny", id=one.id)
    story.run(30)
    model.write(2, [], story.time.incidents.values(), story.time.runs.values())
    (found,) = orjson.loads(lists.incidents(IncidentsQuery(), lambda: None, model))["incidents"]
    assert found["asks"] == ""
    model.close()
