"""The API of a real brain: what its table says is what it does, and errors say who must do what."""

import gzip
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from brain.console.api.endpoint import PREFIX
from brain.console.api.problems import PROBLEM, ProblemShape
from brain.console.api.table import TABLE
from brain.console.packing import PACKED_FROM
from brain.console.server import Console
from tests import people
from tests.real.brain_kit import lab
from tests.security.view import FolderView

USERS = people.ANN["users"] | {"vic": {"role": "viewer"}}


def test_the_table_is_the_whole_api(tmp_path: Path) -> None:
    """Each row is served, and nothing below /api/v1 is served without a row."""
    console = Console(FolderView.of(tmp_path, drill=True))
    served = {(one.method, one.path) for one in console.routes() if one.path.startswith(PREFIX)}
    assert served == {(one.method, one.whole_path) for one in TABLE}
    assert len({one.name for one in TABLE}) == len(TABLE)


@pytest.mark.component("nats-server")
async def test_errors_say_who_must_do_what(tmp_path: Path) -> None:
    """RFC 9457, whatever refuses: the door, the router, the check of a query or a body, the route, or the engine."""
    async with lab(tmp_path, console={"port": 0, "users": USERS}) as whole:
        assert whole.running is not None
        ann, vic = (people.bearer(people.token_file(whole.config.data_dir, name)) for name in ("ann", "vic"))
        hold = {"verb": "hold", "args": {"scope": "all", "why": "a look"}}
        cases: list[tuple[str, str, Any, dict[str, str], int, str, str]] = [
            ("GET", "/tokens", None, {}, 401, "caller", "a token is needed"),
            ("POST", "/command", hold, vic, 403, "administrator", "needs the role operator"),
            ("GET", "/nothing", None, ann, 404, "caller", "openapi.json"),
            ("GET", "/runs/none", None, ann, 404, "caller", "no run 'none'"),
            ("POST", "/status", {}, ann, 405, "caller", "this path takes GET"),
            ("GET", "/incidents?everything=1", None, ann, 400, "caller", "there is no `everything`"),
            ("GET", "/incidents?all=1&all=0", None, ann, 400, "caller", "`all` more than once"),
            ("GET", "/watch?last=-1", None, ann, 400, "caller", "`last`"),
            ("POST", "/command", {"verb": "hold", "args": {"scope": "all"}}, ann, 400, "caller", "why` is missing"),
            ("POST", "/command", {"verb": "ack", "args": {"id": "inc-0"}}, ann, 409, "caller", "inc-0"),
        ]  # fmt: skip
        async with aiohttp.ClientSession(whole.running.console_url) as session:
            for method, path, body, headers, status, who, part in cases:
                async with session.request(method, PREFIX + path, json=body, headers=headers) as answer:
                    assert (answer.status, answer.content_type) == (status, PROBLEM), path
                    found = ProblemShape.model_validate(await answer.json())
                    assert (found.status, found.who.value, part in found.detail) == (status, who, True), found


@pytest.mark.component("nats-server")
async def test_whoever_asks_at_the_paths_of_version_0_1_is_led_on(tmp_path: Path) -> None:
    """A script follows, with its token, its query and its body; the command line of 0.1 follows nobody and shows `error`. Nothing
    is told or done at the old path itself.
    """
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        headers = people.bearer(whole.ann)
        async with aiohttp.ClientSession(whole.running.console_url, headers=headers) as session:
            async with session.get("/api/incidents?all=1") as answer:
                assert (answer.status, answer.url.path_qs) == (200, "/api/v1/incidents?all=1")
            hold = {"verb": "hold", "args": {"scope": "all", "why": "a look"}}
            async with session.post("/api/command", json=hold, allow_redirects=False) as answer:
                assert (answer.status, "below /api/v1" in (await answer.json())["error"]) == (308, True)
            assert not (await whole.get("/api/v1/status"))["holds"]
            async with session.post("/api/command", json=hold) as answer:
                assert (answer.status, (await answer.json())["by"]) == (200, "ann")
            for path in ("/api", "/api/", "/api/other", "/api/statuses", "/api/v1/nothing", "/api/v1"):
                async with session.get(path, allow_redirects=False) as answer:
                    assert answer.status == 404, path
            for path in ("/api/runs//evil.example/x", "/api/runs/%0d%0aX: y"):
                async with session.get(path, allow_redirects=False) as answer:
                    assert answer.status in (308, 403, 404, 421), path
                    assert answer.headers.get("Location", PREFIX).startswith(f"{PREFIX}"), path


@pytest.mark.component("nats-server")
async def test_what_a_client_has_is_not_sent_again(tmp_path: Path) -> None:
    """Each JSON answer that is read has an ETag; when it changes it is sent again. Whoever takes gzip gets it, and whoever pages
    through a list gets all of it.
    """
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        for name in ("n1", "n2", "n3"):
            await (await whole.node(name)).event("gpu.xid", "gpu/0000:3b:00", code=79)
        await whole.until(
            lambda found: len(found["incidents"]) >= 3, "they are seen", "/api/v1/incidents?all=1"
        )
        headers = people.bearer(whole.ann) | {"Accept-Encoding": "gzip"}
        async with aiohttp.ClientSession(
            whole.running.console_url, headers=headers, auto_decompress=False
        ) as session:
            for path in (
                "/incidents",
                "/nodes",
                "/fleet",
                "/runs",
                "/needs",
                "/reports?from=0&to=1",
                "/rules",
                "/runbooks",
                "/notes",
                "/me",
                "/tokens",
                "/openapi.json",
            ):
                async with session.get(PREFIX + path) as answer:
                    body = await answer.read()
                    tag = answer.headers["ETag"]
                    packed = answer.headers.get("Content-Encoding") == "gzip"
                whole_body = gzip.decompress(body) if packed else body
                assert packed == (len(whole_body) >= PACKED_FROM), path
                orjson.loads(whole_body)
                for _ in range(100):  # it may change between two requests
                    async with session.get(PREFIX + path, headers={"If-None-Match": tag}) as answer:
                        again = (answer.status, await answer.read(), answer.headers["ETag"])
                    if again[0] == 304:
                        break
                    assert again[2] != tag, path
                    tag = again[2]
                assert again == (304, b"", tag), path
            async with session.get(f"{PREFIX}/notes") as answer:
                before = answer.headers["ETag"]
            await whole.say("hold", scope="all", why="a look")
            async with session.get(f"{PREFIX}/notes", headers={"If-None-Match": before}) as answer:
                assert answer.status == 200
        for key, more in (("nodes", ""), ("incidents", "&all=1"), ("notes", "")):
            every = await whole.get(f"{PREFIX}/{key}?limit=1000{more}")
            found, following = [], ""
            while True:
                page = await whole.get(f"{PREFIX}/{key}?limit=2&cursor={following}{more}")
                found += page[key]
                if not (following := page["next"]):
                    break
            names = [[one.get("id", one.get("name")) for one in some] for some in (found, every[key])]
            assert names[0] == names[1] != [], key
