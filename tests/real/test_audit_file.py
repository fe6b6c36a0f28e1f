"""The audit as a file: all that the list has, line by line, in memory that does not grow with it."""

from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from brain.adapters.readmodel import ReadModel
from brain.console import notes_file
from brain.core.effects import Note
from tests import people
from tests.real.brain_kit import lab
from tests.security.test_door import console

MANY = 3 * notes_file.AT_ONCE + 7


@pytest.mark.component("nats-server")
async def test_it_says_what_was_done_and_by_whom(tmp_path: Path) -> None:
    """A real brain: the same notes as in the list, with the same filters; a wrong filter is a problem and no file."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        headers = people.bearer(whole.ann)
        async with aiohttp.ClientSession(whole.running.console_url, headers=headers) as session:
            for verb, args in (("hold", {"scope": "all", "why": "a look"}), ("release", {"scope": "all"})):
                body = {"verb": verb, "args": args}
                async with session.post("/api/v1/command", json=body) as answer:
                    assert answer.status == 200
            for query in ("", "?who=ann", "?who=ann&kind=*.release", "?who=bob"):
                listed = (await whole.get(f"/api/v1/notes{query}"))["notes"]
                async with session.get(f"/api/v1/notes.ndjson{query}") as answer:
                    assert (answer.status, answer.content_type) == (200, "application/x-ndjson")
                    assert "attachment" in answer.headers["Content-Disposition"]
                    lines = (await answer.text()).splitlines()
                assert [orjson.loads(line) for line in lines] == listed, query
            said = (await whole.get("/api/v1/notes?who=ann&kind=operator.*"))["notes"]
            assert [(one["who"], one["kind"]) for one in said] == [
                ("ann", "operator.release"),
                ("ann", "operator.hold"),
            ]
            for query in ("?limit=5", "?since=x"):
                async with session.get(f"/api/v1/notes.ndjson{query}") as answer:
                    assert (answer.status, answer.content_type) == (400, "application/problem+json")


async def test_a_long_one_is_whole_and_one_person_has_one_at_a_time(tmp_path: Path) -> None:
    """Over several reads none is missed or told twice, whatever is written meanwhile."""
    model = ReadModel(tmp_path / "history")
    model.begin("log-1")
    model.write(MANY, [(n, note(n)) for n in range(1, MANY + 1)])
    ann = people.bearer(people.token_file(tmp_path, "ann"))
    async with console(tmp_path, users=people.ANN["users"]) as (url, view):
        view.reader = model.reader(lambda: None)
        async with (
            aiohttp.ClientSession(url, headers=ann) as session,
            session.get("/api/v1/notes.ndjson") as answer,
        ):
            async with session.get("/api/v1/notes.ndjson") as second:
                assert (second.status, "already" in (await second.json())["detail"]) == (503, True)
            model.write(MANY + 1, [(MANY + 1, note(MANY + 1))])
            lines: list[Any] = [orjson.loads(line) async for line in answer.content]
            assert [one["id"] for one in lines] == [note(n).id for n in range(MANY, 0, -1)]


def note(n: int) -> Note:
    """One of many."""
    return Note(id=f"e{n}#0", at=1000.0 + n, kind="symptom.started", text="x" * 50)
