"""What the doctor says of a signing key that is there and cannot be read, and of one that is gone from under a running brain."""

import os
from pathlib import Path

import pytest

from agent.shared.words import t
from brain import config as brain_config
from brain.adapters import keys
from brain.cli import doctor
from brain.cli.checkup import keys as checkup
from brain.cli.checkup.installation import BrainAnswers, Installation
from brain.cli.checkup.lines import Health, HealthLine
from tests.passable import passable

NOBODY = 65534


def said(folder: Path, brain: BrainAnswers | None = None) -> HealthLine:
    """The doctor's line about the key in this data folder."""
    config = brain_config.parse({"data_dir": str(folder)}, "brain.toml", folder)
    found = Installation(
        file=None, config=config, warnings=(), brain=brain, silent_why="", login=False, now=0.0
    )
    (line,) = doctor._read(checkup.signing, found)
    return line


@pytest.mark.root
def test_a_key_of_another_owner_is_not_lost(tmp_path: Path) -> None:
    """Whoever reads "restore it" at night puts an old key back, which no node obeys: only its owner is wrong."""
    folder = tmp_path / "data"
    folder.mkdir()
    keys.load_signer(folder / "signing.key")
    passable(tmp_path)
    os.chown(folder, NOBODY, NOBODY)
    os.chown(folder / "signing.key", 0, 0)
    line = said(folder)
    assert line.health is Health.FAIL
    assert "Permission denied" in line.text
    assert line.action == t(
        "it is only its owner or mode: what the line about files says, and nothing is lost"
    )


def test_a_key_that_is_gone_while_its_brain_runs(tmp_path: Path) -> None:
    """It has read it: the next start would be the one that fails."""
    here = BrainAnswers(status={"data_dir": str(tmp_path)}, nodes=(), here=True)
    line = said(tmp_path, here)
    assert line.health is Health.FAIL
    assert "before the brain is restarted" in line.action
    elsewhere = BrainAnswers(status={"data_dir": "/elsewhere"}, nodes=(), here=True)
    assert "is this brain's brain.toml the one that runs?" in said(tmp_path, elsewhere).action
