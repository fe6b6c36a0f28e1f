"""`gpuward evidence` in a folder where others write: what they have laid under a bundle's name is neither followed nor filled."""

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from brain.cli.client import Client
from brain.cli.main import group
from tests.security.figures import Record, attacked

NAME, BUNDLE = "n1-inc-7.r1.s1.a1.tar.gz", b"command lines"


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command, in the folder, with the bundle that a brain would send."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Client, "fetch", lambda *_: (NAME, BUNDLE))

    def run(*more: str) -> Result:
        return CliRunner().invoke(group({}), ["evidence", "inc-7", *more])

    return run


@pytest.mark.parametrize("out", [(), ("--out", NAME)])
def test_what_others_have_laid_is_not_followed(
    tmp_path: Path, fetched: Any, out: tuple[str, ...], record_property: Record
) -> None:
    """A link to a file, a link to nothing, a pipe: refused with what to do, and nothing is written through it."""
    victim, at = tmp_path / "victim", tmp_path / NAME
    victim.write_text("kept")
    for what in ("a link to victim", "a link to nowhere", "no regular file"):
        if what.startswith("a link"):
            at.symlink_to(what.rpartition(" ")[2])
        else:
            os.mkfifo(at)
        done = fetched(*out)
        assert done.exit_code == 1
        assert f"{NAME} is {what}" in done.output
        assert "remove it, or name another file with --out" in done.output
        assert (victim.read_text(), (tmp_path / "nowhere").exists()) == ("kept", False)
        at.unlink()
    attacked(record_property, 3)


def test_a_second_name_gives_nobody_the_bundle(tmp_path: Path, fetched: Any) -> None:
    """A file of one's own is replaced, not filled: neither its other name nor its mode gives the bundle to others."""
    other, at = tmp_path / "other", tmp_path / NAME
    other.write_text("kept")
    other.chmod(0o666)
    at.hardlink_to(other)
    assert fetched().output == f"{NAME}: 13 bytes\n"
    assert (other.read_text(), at.read_bytes(), at.stat().st_mode & 0o777) == ("kept", BUNDLE, 0o600)


@pytest.mark.root
def test_a_file_of_another_user_is_left_to_them(tmp_path: Path, fetched: Any) -> None:
    """Who owns it could read what is written there."""
    at = tmp_path / NAME
    at.write_text("theirs")
    os.chown(at, 12345, 12345)
    assert "is a file of another user" in fetched().output
    assert at.read_text() == "theirs"
