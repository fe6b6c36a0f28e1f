"""A brain of an engine, a history and the real server, without NATS; and `gpuward top` in front of it."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from textual.pilot import Pilot

from brain import config
from brain.adapters.readmodel import ReadModel
from brain.cli.client import Client
from brain.cli.top.app import Top
from brain.console.brain_view import BrainView, History
from brain.console.feed import Feed
from brain.console.server import Console
from brain.console.words import Words
from brain.core.inputs import OperatorCommand
from brain.core.pack.spec import Mode
from brain.core.state import State
from tests import people
from tests.brain.world import GPU, Story, pack

T = TypeVar("T")
USERS: dict[str, Any] = {
    "ann": {"role": "administrator"},
    "olga": {"role": "operator"},
    "vic": {"role": "viewer"},
}
WITHIN_S = 60.0  # until something is seen, on a machine under load
SIZE = (120, 40)


class StoryBrain:
    """What the server asks of a brain, answered by a story. Used in the server's own thread only, but for what `Served` says."""

    name = "b1"
    disk = SimpleNamespace(hangs=False)
    archive = SimpleNamespace(failing="")

    def __init__(self, folder: Path, story: Story, **console: Any) -> None:
        self.config = config.parse(
            {"data_dir": str(folder), "console": {"port": 0, "users": USERS} | console}, "test", folder
        )
        self.story = story
        self.started_at = time.time()
        self.model = ReadModel(folder / "history.sqlite")
        self.model.begin("log-1")
        self.reader: History = self.model.reader(lambda: None)
        self.feed = Feed()
        self.is_connected = True
        self.trouble: list[tuple[str, str, float]] = []
        self.beats: dict[str, Any] = {}
        self._told = 0
        self.tell()

    @property
    def live(self) -> Any:
        """The engine's memory, all read."""
        return SimpleNamespace(
            state=self.state,
            seq=self._told,
            caught_up=True,
            stopped="",
            inputs=self._told,
            busy_s=0.0,
            leads=lambda: True,
            look=self.story.engine.look,
            reached=self._reached,
        )

    @property
    def state(self) -> State:
        """The engine's memory."""
        return self.story.engine.state

    def tell(self) -> None:
        """Writes what came of the story into the history, and tells the watchers."""
        fresh = list(enumerate(self.story.time.notes, 1))[self._told :]
        self._told += len(fresh)
        self.model.write(self._told, fresh, self.story.time.incidents.values(), self.story.time.runs.values())
        for seq, note in fresh:
            self.feed.publish(note, seq)

    async def submit(self, command: OperatorCommand) -> int:
        """The engine hears it at once."""
        self.story.time.feed(command, self.state.now + 0.01)
        self.story.run(self.state.now + 0.02)
        self.tell()
        return self._told

    async def _reached(self, _seq: int, _within_s: float) -> bool:
        return True

    async def look_up(self, work: Callable[[History], T]) -> T:
        """Asks the history."""
        return work(self.reader)

    def connected(self) -> bool:
        """As the test says."""
        return self.is_connected

    def newest_beats(self) -> Mapping[str, Any]:
        """As the test says."""
        return self.beats

    def agent_versions(self) -> Mapping[str, str]:
        """Of nobody."""
        return {}

    def troubles(self) -> list[tuple[str, str, float]]:
        """As the test says."""
        return self.trouble

    def pack_sources(self, _version: str) -> Mapping[tuple[str, str], str]:
        """None."""
        return {}

    def history_behind(self) -> int:
        """Nothing."""
        return 0

    def note(self, kind: str, text: str, who: str = "") -> None:
        """Kept by nobody."""


class Served:
    """The server in a thread of its own, so that the terminal in front of it waits for it as for any other."""

    def __init__(self, folder: Path, story: Story, **more: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.tokens = {name: people.token_file(folder, name) for name in USERS}
        self.brain = StoryBrain(folder, story, **more)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._console: Console | None = None
        self.url = ""

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def start(self) -> "Served":
        """Until it listens; once more, on the port that it had."""
        if not self._thread.is_alive():
            self._thread.start()
        self._console = Console(cast(BrainView, self.brain))
        self.url = self.do(self._console.start())
        port = int(self.url.rpartition(":")[2])
        given = self.brain.config.console
        object.__setattr__(given, "port", port)
        return self

    def stop(self) -> None:
        """As a brain that is ended: its watchers' connections end."""
        if self._console is not None:
            self.brain.feed.end()
            self.do(self._console.stop())
            self._console = None

    def do(self, work: Any) -> Any:
        """Runs a coroutine in the server's thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def play(self, change: Callable[[Story], object]) -> None:
        """Lets something happen in the story, and tells it."""

        async def played() -> None:
            change(self.brain.story)
            self.brain.tell()

        self.do(played())

    def end(self) -> None:
        """All of it."""
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(60)
        self.loop.close()

    def client(self, who: str = "ann") -> Client:
        """Of one of USERS; `nobody` has no token."""
        return Client(self.url, self.tokens.get(who) or self._none())

    def _none(self) -> Path:
        path = self.folder / "none.token"
        path.write_text("")
        return path


@contextlib.contextmanager
def served(folder: Path, story: Story, **more: Any) -> Iterator[Served]:
    """A server, ended whatever happens."""
    whole = Served(folder / "brain", story, **more)
    try:
        yield whole.start()
    finally:
        whole.end()


class Terminal:
    """Somebody in front of `gpuward top`."""

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, look: Callable[[], object], what: str) -> None:
        """Waits for something on the screen, or behind it."""
        deadline = time.monotonic() + WITHIN_S
        while not look():
            assert time.monotonic() < deadline, f"not within {WITHIN_S} s: {what}\n{self.screen()}"
            await self.pilot.pause(0.02)

    async def sees(self, *texts: str) -> None:
        """Waits until all of these stand on the screen."""
        await self.until(lambda: all(text in self.screen() for text in texts), f"{texts} are seen")

    async def press(self, *keys: str) -> None:
        """Types."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def screen(self) -> str:
        """The text on the screen, line by line."""
        lines = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join(one.text.rstrip() for one in lines)


@contextlib.asynccontextmanager
async def terminal(
    whole: Served, who: str = "ann", size: tuple[int, int] = SIZE, language: str = "en"
) -> AsyncIterator[Terminal]:
    """`gpuward top`, as this person starts it."""
    client = whole.client(who)
    app = Top(client, Words(language), await asyncio.to_thread(client.get, "status"))
    async with app.run_test(size=size) as pilot:
        yield Terminal(app, pilot)


def link_down() -> Story:
    """A link that is down since ten minutes, and whose run asks for an approval; beside it a GPU that is lost."""
    began = time.time() - 600
    story = Story(pack(Mode.APPROVE))
    story.event(began, "link.state", "link/eth0", up=False)
    story.event(began + 1, "gpu.xid", GPU, "n2", code=79)
    return story.run(time.time())
