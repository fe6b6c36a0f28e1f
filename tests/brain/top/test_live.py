"""`gpuward top` over a connection that is lost, a brain that is deaf, a silent network: said at once, and it goes on."""

import asyncio
import http.server
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.events import Resize
from textual.geometry import Size

from brain.cli.client import Client
from brain.cli.top import frame
from brain.cli.top.app import Top
from brain.cli.top.heard import Cut, Heard, NotesLost
from brain.cli.top.rows import Tab
from brain.cli.top.wire import Wire, drained
from brain.console.words import Words
from brain.core.effects import Note
from tests.brain.top.kit import Terminal, link_down, served, terminal
from tests.brain.world import Story


def says(story: Story, number: int) -> None:
    """Somebody holds a node, which is a note."""
    now = story.engine.state.now
    story.say(now + 1, "hold", scope="node/n1", why=f"look {number}")
    story.run(now + 2)


def told(at: Terminal) -> list[int]:
    """The numbers of these looks, in the order in which their notes came."""
    texts = [one.text for one in reversed(at.app._notes) if one.text.startswith("ann holds node/n1: look ")]
    return [int(text.split()[4].rstrip(";")) for text in texts]


async def test_a_lost_connection_is_said_at_once_and_nothing_is_missed(tmp_path: Path) -> None:
    """The banner says since when, why, and of which time the lists are; what happened meanwhile is told when the brain is back,
    each note once, and the lists are read anew.
    """
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.sees("waits for an approval")
            whole.play(lambda story: says(story, 0))
            await at.until(lambda: len(told(at)) == 1, "the first note is told")
            await asyncio.to_thread(whole.stop)
            await at.sees("NOT CONNECTED since", "What you see is as of")
            await at.sees("waits for an approval")  # what is known stays
            for number in range(1, 5):
                whole.play(partial(says, number=number))
            whole.play(
                lambda story: story.event(story.engine.state.now + 1, "link.state", "link/eth7", up=False)
            )
            whole.play(lambda story: story.run(story.engine.state.now + 60))
            await asyncio.to_thread(whole.start)
            await at.until(lambda: "NOT CONNECTED" not in at.screen(), "the banner is gone")
            await at.until(lambda: len(told(at)) == 5, "all notes are told")
            assert told(at) == [0, 1, 2, 3, 4]
            await at.sees("link/n1/eth7")


async def test_what_cannot_be_told_any_more_is_a_gap(tmp_path: Path) -> None:
    """The history of that time is gone: a line says so where the notes would stand."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.sees("waits for an approval")
            whole.play(lambda story: says(story, 0))
            await at.until(lambda: len(told(at)) == 1, "the first note is told")
            await asyncio.to_thread(whole.stop)
            whole.brain.model.begin("log-2")
            await asyncio.to_thread(whole.start)
            await at.press("5")
            await at.sees("what was written here cannot be told any more")


@pytest.mark.parametrize(
    ("change", "banner"),
    [
        ({"is_connected": False}, "OUTDATED: nodes, incidents and runs are shown as of"),
        ({"trouble": [("nobody_leads", "nobody leads", 1.0)]}, "nobody leads, so nothing that nodes say is"),
        ({"trouble": [("disk", "the disk is full [red]", 1.0)]}, "TROUBLE: the disk is full [red]"),
    ],
)
async def test_a_brain_in_trouble_is_said(tmp_path: Path, change: dict[str, Any], banner: str) -> None:
    """Also what writes no note: without its broker a brain hears of nothing. It goes with its cause."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.sees("waits for an approval")
            assert not at.app._static("banner").has_class("seen")
            before = {name: getattr(whole.brain, name) for name in change}
            for name, value in change.items():
                setattr(whole.brain, name, value)
            await at.sees(banner)
            for name, value in before.items():
                setattr(whole.brain, name, value)
            await at.until(lambda: banner not in at.screen(), "the banner is gone")


async def test_a_revoked_token_is_said(tmp_path: Path) -> None:
    """In the brain's words; what was known stays on the screen, and the token may be renewed in its file."""
    with served(tmp_path, link_down(), open_reading=False) as whole:
        async with terminal(whole) as at:
            await at.sees("waits for an approval")
            good = whole.tokens["ann"].read_text()
            whole.tokens["ann"].write_text("gw-not-a-token")
            await asyncio.to_thread(whole.stop)
            await asyncio.to_thread(whole.start)
            await at.sees("NOT CONNECTED", "token")
            whole.tokens["ann"].write_text(good)
            await at.until(lambda: "NOT CONNECTED" not in at.screen(), "it is back")


async def test_a_brain_that_is_silent_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that swallows everything closes no connection."""
    monkeypatch.setattr(frame, "SILENT_S", 0.5)
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.sees("NOTHING HEARD from the brain for")
            whole.play(lambda story: says(story, 0))
            await at.until(lambda: "NOTHING HEARD" not in at.screen(), "it is heard again")


class NoBrain(http.server.BaseHTTPRequestHandler):
    """Whoever answers there is no brain of this version."""

    def do_GET(self) -> None:
        """Half of an answer."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"incidents": 7}' if "watch" not in self.path else b"data: {broken\n\n")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_odd_answers_end_no_thread() -> None:
    """They are said; the way to the brain goes on trying."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoBrain)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    status: Any = {"connected": True, "caught_up": True, "modes": []}
    line = Wire(Client(f"http://127.0.0.1:{server.server_address[1]}"), Words("en"), status)
    line.start()
    heard: list[Heard] = []
    try:
        while sum(isinstance(one, Cut) for one in heard) < 2:
            heard.append(line.heard.get(timeout=60))
        cuts = [one.why for one in heard if isinstance(one, Cut)]
        assert all("what answers there is no brain of this version" in why for why in cuts)
    finally:
        line.close()
        server.shutdown()
        server.server_close()


def test_notes_of_a_storm_are_taken_in_pieces() -> None:
    """The terminal draws between them, however many come."""
    line = Wire(Client("http://127.0.0.1:9"), Words("en"), {})  # type: ignore[typeddict-item]  # it is not read here
    for _ in range(5):
        line.heard.put(NotesLost())
    taken: list[Heard] = []
    assert drained(line.heard, 3, taken.append) == 3
    assert drained(line.heard, 3, taken.append) == 2
    assert drained(line.heard, 3, taken.append) == 0
    assert len(taken) == 5


async def test_a_thousand_notes_in_one_go(tmp_path: Path) -> None:
    """None is lost, the newest stands first, and keys work meanwhile."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.sees("waits for an approval")

            def storm(story: Story) -> None:
                now = story.engine.state.now
                for number in range(900):
                    text = f"ann holds node/n1: look {number}"
                    note = Note(
                        id=f"storm-{number}", at=now, kind="node.seen", text=text, incident="", run="",
                        scope="node/n1", caused_by="storm", data={},
                    )  # fmt: skip
                    story.time.notes.append(note)

            whole.play(storm)
            await at.press("5")
            await at.until(lambda: len(told(at)) == 900, "all are told")
            assert told(at) == list(range(900))
            await at.sees("look 899")
            assert at.app.tab is Tab.NOTES


async def test_it_ends_at_once(tmp_path: Path) -> None:
    """Also while its threads wait for the network."""
    with served(tmp_path, link_down()) as whole:
        client = whole.client()
        app = Top(client, Words("en"), await asyncio.to_thread(client.get, "status"))
        async with app.run_test() as pilot:
            await pilot.pause()
            await pilot.press("q")
        assert isinstance(app.wire, Wire)
        assert app.wire._ended.is_set()


async def test_what_comes_when_it_has_ended_is_nobodys(tmp_path: Path) -> None:
    """A row that is told of as somebody types `q`, a terminal that is resized then: no traceback is left on the screen."""
    with served(tmp_path, link_down()) as whole:
        async with terminal(whole) as at:
            await at.until(lambda: len(at.app.view.shown) == 3, "the list is there")
            view = at.app.view
        at.app.on_row_view_moved(view.Moved(view))
        at.app.on_resize(Resize(Size(80, 24), Size(80, 24)))
