"""`gpuward fleet` over three cells, each with a real brain: what is open where, and which of them nobody looks after."""

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agent.contract.errors import ConfigError
from brain.cli import fleet_file
from brain.cli.client import Client
from brain.cli.fleet import CellView, ask, fleet, view
from brain.cli.fleet_file import CellEntry
from brain.cli.main import group
from tests.real.brain_kit import Lab, lab

pytestmark = pytest.mark.component("nats-server")
CELLS = ("east", "north", "west")


class Fleet:
    """Three cells and the file that names them."""

    def __init__(self, folder: Path, cells: dict[str, Lab]) -> None:
        self.cells = cells
        self.file = folder / "fleet.toml"

    def write(self, **more: str) -> None:
        """`more`: another first brain of a cell."""
        lines = []
        for name, cell in self.cells.items():
            assert cell.running is not None
            urls = [*([more[name]] if name in more else []), cell.running.console_url]
            token = self.file.parent / f"{name}.token"
            token.write_bytes(cell.ann.read_bytes())
            lines += [f"[cells.{name}]", f"urls = {json.dumps(urls)}", f'token_file = "{token.name}"']
        self.file.write_text("\n".join(lines))

    async def ask(self, *args: str, columns: int = 160) -> Result:
        """The command."""
        return await asyncio.to_thread(
            CliRunner().invoke,
            group({}),
            ["fleet", "--file", str(self.file), *args],
            env={"COLUMNS": str(columns)},
        )


def _for_people(found: Any) -> bool:
    return [one["state"] for one in found["incidents"]] == ["needs_human"]


@contextlib.asynccontextmanager
async def three(folder: Path) -> AsyncIterator[Fleet]:
    """Each with one node; in the east a GPU fell off the bus."""
    async with contextlib.AsyncExitStack() as stack:
        cells = {}
        for name in CELLS:
            (folder / name).mkdir()
            cells[name] = await stack.enter_async_context(
                lab(folder / name, cell=name, settings={"hold_off_s": 0})
            )
        for cell in cells.values():
            node = await cell.node("n1")
            await node.event("agent.started", version="1")
            if cell is cells["east"]:
                await node.event("gpu.xid", "gpu/0000:3b:00", code=79)
                await cell.until(_for_people, "the fault is left to people", "/api/v1/incidents")
        found = Fleet(folder, cells)
        found.write()
        yield found


async def test_three_cells_under_one_view(tmp_path: Path) -> None:
    """As a table and as JSON; a second brain is asked where the first does not answer; a cell without any is told."""
    async with three(tmp_path) as fleet:
        done = await fleet.ask()
        print(done.output)
        assert done.exit_code == 0, done.output
        rows = [line.split() for line in done.output.splitlines()]
        assert [row[0] for row in rows[1:5]] == [*CELLS, "all"]
        assert rows[1][3:] == ["1", "0", "0", "1", "0", "0", "1", "0"], "one P1 in the east, for people"
        assert [rows[-1][0], rows[-1][2], rows[-1][-2]] == ["east", "P1", "gpu/n1/0000:3b:00"]

        fleet.write(west="http://127.0.0.1:9")
        found = json.loads((await fleet.ask("--json")).output)
        assert [(one["name"], one["trouble"], one["status"]["nodes"]) for one in found] == [
            (name, "", 1) for name in CELLS
        ]

        await fleet.cells["west"].stop()
        done = await fleet.ask(columns=70)
        print(done.output)
        assert done.exit_code == 1
        assert "west  NO ANSWER" in done.output
        assert "west: no brain answers at http://127.0.0.1:9" in done.output
        assert "3 cells, 1 not heard" in done.output
        await fleet.cells["west"].start()


async def test_a_refused_token_is_no_silence(tmp_path: Path) -> None:
    """The brain is there and lets this person not in: one line says so, and what to do; a cell that is away is not called so. A
    second brain, which shares no tokens, is asked too.
    """
    async with lab(tmp_path) as cell:
        fleet = Fleet(tmp_path, {"east": cell})
        fleet.write()
        token = tmp_path / "east.token"
        token.write_text("gw_nobody_0123456789abcdefghijklmnopqrstuvwxyz\n")
        done = await fleet.ask()
        assert done.exit_code == 1
        assert "east  TOKEN REFUSED" in done.output
        assert "NO ANSWER" not in done.output
        said = " ".join(done.output.split())
        assert cell.running is not None
        assert f"{cell.running.console_url}: the token in {token} was refused" in said
        assert "`gpuward token create" in said
        (found,) = json.loads((await fleet.ask("--json")).output)
        assert "was refused" in found["error"]
        # Where one brain is away and the other one refuses, the token is what can be mended from here.
        fleet.write(east="http://127.0.0.1:9")
        token.write_text("gw_nobody_0123456789abcdefghijklmnopqrstuvwxyz\n")
        done = await fleet.ask()
        assert "east  TOKEN REFUSED" in done.output
        assert "no brain answers at http://127.0.0.1:9" in " ".join(done.output.split())


async def test_one_cell_under_two_names_is_not_counted_twice(tmp_path: Path) -> None:
    """A URL that was copied and not changed."""
    async with lab(tmp_path) as cell:
        fleet = Fleet(tmp_path, {"east": cell, "west": cell})
        fleet.write()
        done = await fleet.ask()
        assert done.exit_code == 1
        assert "is cell default, as for east" in done.output
        assert "correct `urls` of [cells.west]" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("east", "west", "wrong"),
    [
        ("east", "west", []),
        ("west", "east", ["east", "west"]),  # copied, and changed the wrong way round
        ("west", "west", ["east"]),  # the one that is right is not blamed, although it comes later
        ("default", "default", ["west"]),  # two cells that nobody has given a name
        ("b1", "b2", []),  # the file may call them as it likes
    ],
)
def test_whose_urls_are_wrong(
    monkeypatch: pytest.MonkeyPatch, east: str, west: str, wrong: list[str]
) -> None:
    """By which cell answers at those of east and of west."""
    answers = {"east": east, "west": west}
    entries = {name: CellEntry(urls=[f"http://{name}"], token_file=None, ca_file=None) for name in answers}

    def asked(name: str, cell: CellEntry, *, faithful: bool) -> CellView:
        return CellView(name, cell.urls[0], {"cell": answers[name]})

    monkeypatch.setattr("brain.cli.fleet.ask", asked)
    assert [one.name for one in view(entries) if one.error] == wrong


def test_a_token_that_is_missing_is_said_to_be_of_the_file(tmp_path: Path) -> None:
    """Not only of options that this command does not have."""
    cell = CellEntry(urls=["http://127.0.0.1:9"], token_file=tmp_path / "none", ca_file=None)
    assert "`token_file` and `ca_file` of [cells.east] in fleet.toml" in ask("east", cell).error


def test_a_brain_that_hears_nobody_is_asked_only_where_no_other_one_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one of a cell is cut off from NATS, and names the leader that it had: the second one knows better."""
    told = {
        "cell": "east", "brain": "b1", "leads": False, "leader": "b1", "stopped": "", "troubles": [], "nodes": 2,
        "nodes_unreachable": 0, "holds": [], "connected": False, "caught_up": True, "log_time": None,
    }  # fmt: skip
    cut_off = {
        "http://b1": told,
        "http://b2": told | {"brain": "b2", "leader": "b2", "leads": True, "connected": True},
    }

    def get(self: Client, path: str, **_: Any) -> Any:
        return {"incidents": []} if path == "incidents" else cut_off[self.url]

    monkeypatch.setattr(Client, "get", get)
    cell = CellEntry(urls=["http://b1", "http://b2"], token_file=None, ca_file=None)
    assert (ask("east", cell).url, ask("east", cell).trouble) == ("http://b2", "")
    alone = ask("east", cell.model_copy(update={"urls": ["http://b1"]}))
    assert "not connected to NATS" in alone.trouble
    monkeypatch.setenv("COLUMNS", "140")
    file = tmp_path / "fleet.toml"
    file.write_text("[cells.east]\nurls = ['http://b1']\n")
    done = CliRunner().invoke(fleet, ["--file", str(file)])
    assert done.exit_code == 1
    assert "b1 HEARS NOBODY" in done.output
    assert "b1 leads" not in done.output


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b"null", b"{}", b"\xff\xfe{", b"[" * 100_000])
def test_what_is_no_brain_hides_no_other_cell(tmp_path: Path, answer: bytes) -> None:
    """A proxy's page, or somebody's joke, in the place of a cell's brain: that cell does not answer, and the view is there."""

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever).start()
        file = tmp_path / "fleet.toml"
        file.write_text(f"[cells.east]\nurls = ['http://127.0.0.1:{server.server_port}']\n")
        done = CliRunner().invoke(fleet, ["--file", str(file)])
        server.shutdown()
    assert isinstance(done.exception, SystemExit)
    assert "NO ANSWER" in done.output
    assert "what answers there is no brain" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cells: Field required"),
        (
            "[cells.east]\nurl = 'http://a'",
            ":2: cells.east.url: no such key; known: ca_file, token_file, urls",
        ),
        (
            "[cells.east]\nurls = ['a:8470']",
            ":2: cells.east.urls: 'a:8470' must begin with http:// or https://",
        ),
        ("[cells.east]\nurls = ['http://a'", "Unclosed array"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, said: str) -> None:
    """Where, and what to write instead."""
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        fleet_file.read(file)
    assert said in str(error.value)
