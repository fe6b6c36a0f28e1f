"""A brain of another version answers while `gpuward top` is open: it was rolled back, or is newer. What cannot be drawn of it is
told, what was known stays on the screen, and nobody is left with a traceback.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from brain.cli.client import Client
from brain.cli.top.app import Top
from brain.cli.top_command import begun
from brain.console.words import Words
from tests.brain.top.kit import Served, Terminal, link_down, served

Change = Callable[[Any], Any]
ODD = "what answers there is no brain of this version"


class OtherVersion(Client):
    """What the brain answers, as another version would: by the first part of the path, once `others` is set."""

    changes: dict[str, Change]

    def get(self, *path: str, query: str = "") -> Any:
        """The real answer, changed."""
        found = super().get(*path, query=query)
        return self.changes.get(path[0], lambda same: same)(found)


@asynccontextmanager
async def beside(
    whole: Served, size: tuple[int, int] = (200, 50)
) -> AsyncIterator[tuple[Terminal, OtherVersion]]:
    """A terminal that shows the brain as it is; and the client by which it becomes another one."""
    client = OtherVersion(whole.url, whole.tokens["ann"])
    client.changes = {}
    app = Top(client, Words("en"), await asyncio.to_thread(client.get, "status"))
    async with app.run_test(size=size) as pilot:
        yield Terminal(app, pilot), client


def without(*keys: str) -> Change:
    """The answer lacks these."""
    return lambda found: {key: value for key, value in found.items() if key not in keys}


def people(change: Change) -> Change:
    """Each of what needs a person is changed."""
    return lambda found: {**found, "people": [change(one) for one in found["people"]]}


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("status", without("modes")),
        ("status", without("holds")),
        ("status", lambda found: {**found, "troubles": None}),
        ("status", lambda _: []),
        ("me", without("role")),
        ("me", lambda _: []),
        ("needs", people(without("verbs"))),
        ("needs", people(lambda one: {**one, "approval": None, "text": None})),
        ("needs", people(lambda one: {**one, "approval": {"what": "x"}})),
        ("explain", lambda _: {}),
        ("explain", dict.fromkeys),
        ("nodes", without("cards")),
        ("runs", lambda found: {**found, "runs": [without("until")(one) for one in found["runs"]]}),
    ],
)
async def test_what_another_version_lacks_is_told(what: str, change: Change, tmp_path: Path) -> None:
    """Whichever answer it is: the lists, their keys and the way out still work."""
    with served(tmp_path, link_down()) as whole:
        async with beside(whole) as (at, client):
            await at.sees("waits for an approval")
            client.changes = {what: change}
            await at.press("4" if what == "nodes" else "1", "down", "r")
            await at.sees(ODD)
            await at.press("a", "escape", "4", "down", "1", "down")
            await at.sees("waits for an approval")
            client.changes = {}
            await at.press("r", "down", "up")
            await at.until(lambda: ODD not in at.screen(), "all is well again")


async def test_what_a_newer_version_says_is_shown_as_it_says_it(tmp_path: Path) -> None:
    """A role and a word that this one has no name for."""
    say = {"verb": "repaint", "args": {}, "asks": [], "two_persons": False}
    with served(tmp_path, link_down()) as whole:
        async with beside(whole) as (at, client):
            await at.sees("waits for an approval")
            client.changes = {
                "me": lambda found: {**found, "role": "painter"},
                "needs": people(lambda one: {**one, "verbs": [say]}),
            }
            await at.press("r")
            await at.sees("ann, painter")
            await at.until(
                lambda: at.app._needs and all(one["verbs"] == [say] for one in at.app._needs.values()),
                "it came",
            )
            await at.press("a")
            await at.sees("What do you say?", "repaint")
            await at.press("enter")
            await at.sees("repaint")


def test_at_its_start_it_is_a_line(tmp_path: Path) -> None:
    """Not a traceback within a terminal that nobody has cleared."""
    with served(tmp_path, link_down()) as whole:
        client = OtherVersion(whole.url, whole.tokens["ann"])
        client.changes = {"status": without("modes")}
        with pytest.raises(click.ClickException, match=ODD):
            begun(client)
