"""A brain without a log, for tests of the console's door: what the door needs of a brain is its folder and its notes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agent.contract.errors import Unreachable
from brain import config
from brain.config import BrainConfig
from brain.console.brain_view import BrainView, BundleView
from brain.console.feed import Feed
from brain.core.inputs import OperatorCommand, Reported
from brain.core.state import State


@dataclass(slots=True, kw_only=True)
class FolderView:
    """The configuration, and the notes that were written."""

    config: BrainConfig
    notes: list[tuple[str, str]] = field(default_factory=list)
    # What a test puts there
    reader: Any = field(default_factory=lambda: SimpleNamespace(notes_page=lambda **_: []))
    feed: Feed = field(default_factory=Feed)
    state: State = field(default_factory=State)
    bundles: Mapping[str, BundleView] = field(default_factory=dict)
    # What was put on the log; `deaf`: it takes nothing
    said: list[OperatorCommand | Reported] = field(default_factory=list)
    deaf: bool = False
    caught_up: bool = True

    @property
    def disk(self) -> Any:
        """Its own disk is well."""
        return SimpleNamespace(trouble="", readable=True, hangs=False)

    @property
    def live(self) -> Any:
        """Its log is read, and empty."""
        return SimpleNamespace(caught_up=self.caught_up, state=self.state, reached=self._reached)

    async def look_up(self, work: Callable[[Any], Any]) -> Any:
        """It has no notes."""
        return work(SimpleNamespace(notes_caused_by=lambda _: [], incident=lambda _: None))

    def troubles(self) -> list[tuple[str, str, float]]:
        """None of its own."""
        return []

    def newest_beats(self) -> Mapping[str, Any]:
        """No node is heard."""
        return {}

    async def submit(self, given: OperatorCommand) -> int:
        """Keeps it. Unreachable: it is deaf."""
        return await self._put(given)

    async def report(self, given: Reported) -> int:
        """The same."""
        return await self._put(given)

    async def _put(self, given: OperatorCommand | Reported) -> int:
        if self.deaf:
            raise Unreachable("the log did not take it")
        self.said.append(given)
        return len(self.said)

    async def _reached(self, _seq: int, _within_s: float) -> bool:
        return True

    @classmethod
    def of(cls, folder: Path, **more: Any) -> BrainView:
        """The view of a brain with this data folder."""
        folder.mkdir(exist_ok=True)
        return cast(BrainView, cls(config=config.parse({"data_dir": str(folder)} | more, "test", folder)))

    async def evidence(self, node: str, command: str) -> BundleView | None:
        """One of the test's."""
        return self.bundles.get(f"{node}/{command}")

    def note(self, kind: str, text: str, who: str = "") -> None:
        """Keeps a note."""
        self.notes.append((kind, text))
