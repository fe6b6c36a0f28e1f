"""docs/topology.md: every command is run, with the files beside it, and prints what the page shows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from brain.core.pack.topology import WIDE
from brain.topology import kubernetes, places_file
from tests import manual

PAGE = "topology.md"
FILES = manual.EXAMPLES / "topology"


def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    """Status 0, and the shown lines, in the order of the page: what one command writes the next one reads."""
    folder = Path(shutil.copytree(FILES, tmp_path / "site"))
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder)}
    commands = list(manual.typed(PAGE))
    assert len(commands) >= 6
    for one in commands:
        done = subprocess.run(
            ["bash", "-c", one.command], cwd=folder, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout + done.stderr
        assert manual.Ids().seen(one.shows, printed) == "", f"$ {one.command}\n{printed}"


def test_the_shown_files_are_those_that_the_commands_read() -> None:
    """And can be read."""
    shown = [block for block in manual.blocks(PAGE) if block.language == "yaml"]
    assert shown
    for block in shown:
        assert block.text == (FILES / block.title).read_text(encoding="utf-8")
        assert places_file.read_places(FILES / block.title)


def test_the_page_names_every_kind_and_every_label() -> None:
    """A reader finds what can be said, and which labels are read as what."""
    text = (manual.ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    assert [kind for kind in WIDE if f"`{kind}`" not in text] == []
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for label, kind in kubernetes.LABELS.items():
        assert any(f"`{label}`" in row and row.endswith(f"| `{kind}` |") for row in rows), label
