"""Who may come in is read from brain.toml while the brain runs: somebody new needs no restart, who has left is nobody."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from click.testing import CliRunner

from brain import config
from brain.cli.main import group
from brain.console.brain_view import BrainView
from brain.console.server import Console
from brain.console_config import Role
from brain.leader.own_files import EDITED_S, OwnFiles
from tests import people
from tests.security.test_door import ask, shown
from tests.security.view import FolderView

ANN = '[console.users.ann]\nrole = "administrator"\n'
BOB = '[console.users.bob]\nrole = "operator"\n'


class Site:
    """A console that was started with a brain.toml."""

    def __init__(self, folder: Path, *tables: str) -> None:
        self.folder = folder
        self.file = folder / "brain.toml"
        self.url = ""
        self.write(*tables)
        self.view = FolderView(config=config.load(self.file))

    def write(self, *tables: str) -> None:
        """The operator's file, as an editor replaces it."""
        new = self.folder / "brain.toml.new"
        head = f'data_dir = "{self.folder / "d"}"\n[console]\nport = 0\nopen_reading = false\n'
        new.write_text(head + "".join(tables))
        new.rename(self.file)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its URL."""
        async with Console(cast(BrainView, self.view)).serving() as self.url:
            yield self.url

    def notes(self) -> list[str]:
        """What was noted about people."""
        return [text for kind, text in self.view.notes if kind == "access.people"]

    async def says(self, *words: str) -> str:
        """What `gpuward` says to ann."""
        ann = self.folder / "d-ann.token"
        where = ["--url", self.url, "--token-file", str(ann)]
        done = await asyncio.to_thread(
            CliRunner().invoke, group({}), [*words, *where], catch_exceptions=False
        )
        return done.output


def site(folder: Path, *tables: str) -> Site:
    """With a token of each."""
    people.token_file(folder / "d", "ann")
    people.token_file(folder / "d", "bob", Role.OPERATOR)
    return Site(folder, *tables)


async def test_somebody_new_needs_no_restart(tmp_path: Path) -> None:
    """Listed, known with the role that stands there, and noted; another role counts from the next request on."""
    it = site(tmp_path, ANN)
    async with it.serving() as url:
        bob = shown(tmp_path / "d-bob.token")
        assert (await ask(url, Authorization=bob))[0] == 401
        it.write(ANN, BOB)
        status, me = await ask(url, Authorization=bob)
        assert (status, me["role"]) == (200, "operator")
        status, made = await ask(
            url, "/api/v1/tokens", {"user": "bob"}, Authorization=shown(tmp_path / "d-ann.token")
        )
        assert (status, made["user"]) == (200, "bob")
        it.write(ANN, BOB.replace("operator", "viewer"))
        assert (await ask(url, Authorization=bob))[1]["role"] == "viewer"
        assert it.notes() == [
            "brain.toml was read again: bob is new",
            "brain.toml was read again: bob is viewer",
        ]


async def test_who_has_left_counts_for_nothing_and_the_list_says_so(tmp_path: Path) -> None:
    """At once; the tokens stand in the list as what they are, until somebody removes them."""
    it = site(tmp_path, ANN, BOB)
    async with it.serving() as url:
        assert "counts no more" not in await it.says("token", "list")
        it.write(ANN)
        assert (await ask(url, Authorization=shown(tmp_path / "d-bob.token")))[0] == 401
        assert it.notes() == ["brain.toml was read again: bob has left"]
        (line,) = [one for one in (await it.says("token", "list")).splitlines() if "  bob  " in one]
        assert line.endswith("counts no more: bob is not in brain.toml")
        tokens = (await ask(url, "/api/v1/tokens", Authorization=shown(tmp_path / "d-ann.token")))[1][
            "tokens"
        ]
        assert {one["user"]: one["void"] for one in tokens} == {"ann": "", "bob": "bob is not in brain.toml"}
        assert "revoked" in await it.says("token", "revoke", "--user", "bob")
        assert "bob" not in await it.says("token", "list")


async def test_a_file_that_cannot_be_used_changes_nobody(tmp_path: Path) -> None:
    """Half written, with an error elsewhere, or gone: people stay who they were, and the reason is noted once."""
    it = site(tmp_path, ANN, BOB)
    async with it.serving() as url:
        bob = shown(tmp_path / "d-bob.token")
        for number, wrong in enumerate(('[console.users.eve]\nrole = "oper', "[log]\nmax_bytes = 'x'\n"), 1):
            it.write(ANN, wrong)
            for _ in range(3):
                assert (await ask(url, Authorization=bob))[0] == 200
            assert len(it.notes()) == number
            assert it.notes()[-1].startswith("people stay as they were, because brain.toml cannot be used: ")
        it.file.unlink()
        assert (await ask(url, Authorization=bob))[0] == 200
        it.write(ANN, BOB)
        assert (await ask(url, Authorization=bob))[0] == 200
        assert len(it.notes()) == 2


async def test_an_expired_token_is_listed_as_such(tmp_path: Path) -> None:
    """It stands in the file until the next one is made."""
    people.token_file(tmp_path / "d", "ann")
    people.token_file(tmp_path / "d", "bob", Role.OPERATOR, lasts_s=-1)
    it = Site(tmp_path, ANN, BOB)
    async with it.serving():
        (line,) = [one for one in (await it.says("token", "list")).splitlines() if "  bob  " in one]
        assert line.endswith("counts no more: its time is over")


def test_a_lock_out_that_does_not_count_is_paged(tmp_path: Path) -> None:
    """Somebody was taken out with a mistake in the file: they still come in, and people hear of it when nobody corrects it."""
    file = tmp_path / "brain.toml"
    whole = f'data_dir = "{tmp_path}"\n[console.users.ann]\nrole = "administrator"\n'
    file.write_text(whole)
    told: dict[str, str] = {}
    alerts: Any = SimpleNamespace(open=told.__setitem__, clear=lambda cause: told.pop(cause, None))
    at_s = [0.0]
    files = OwnFiles(config.load(file), alerts, clock=lambda: at_s[0])
    files.look()
    file.write_text('[console.users.bob]\nrole = "aprover"\n')
    for at_s[0] in (1.0, 60.0):
        files.look()
        assert not told, "somebody is writing"
    at_s[0] = 1.0 + EDITED_S
    files.look()
    assert "brain.toml cannot be used: brain.toml:2: console.users.bob.role" in told["people_unreadable"]
    file.write_text(whole + "# corrected\n")
    files.look()
    assert not told
