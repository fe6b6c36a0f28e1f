"""A brain without a log, for tests of the console's door: what the door needs of a brain is its folder and its notes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from brain import config
from brain.config import BrainConfig
from brain.console.brain_view import BrainView, BundleView
from brain.core.state import State


@dataclass(slots=True, kw_only=True)
class FolderView:
    """The configuration, and the notes that were written."""

    config: BrainConfig
    notes: list[tuple[str, str]] = field(default_factory=list)
    # What a test puts there
    reader: Any = None
    state: State = field(default_factory=State)
    bundles: Mapping[str, BundleView] = field(default_factory=dict)

    @property
    def live(self) -> Any:
        """Its log is read, and empty."""
        return SimpleNamespace(caught_up=True, state=self.state)

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
